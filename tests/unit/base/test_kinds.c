/* SPDX-License-Identifier: BSD-2-Clause */
/* Checks that the tables of include/pyprofd/kinds.h are consistent, as a new row must leave
 * them. */
#include "base/kinds.h"

#include <cmocka.h>
#include <string.h>

#include "base/cleanup.h"

/* On the live socket and in files for ever: docs/design/live.md. */
_Static_assert(PP_PROFILE_CPU == 0 && PP_PROFILE_OFFCPU == 1 && PP_PROFILE_WALL == 2 &&
		       PP_PROFILE_GIL == 3 && PP_PROFILE_WAKER == 4,
	       "numbers of profiles never change");
_Static_assert(PP_KIND_CPU == 0 && PP_KIND_WAIT == 1 && PP_KIND_BLAME == 2 && PP_KIND_WAKE == 3,
	       "numbers of counters never change");
_Static_assert(PP_PROFILE_COUNT <= 32 && PP_CAPTURE_COUNT < 30, "each is a bit of 32");

struct feed {
	enum pp_count_kind from;
	enum pp_profile to;
	unsigned int index;
};
#define FEED(from, to, index, member, when) {PP_KIND_##from, PP_PROFILE_##to, index},
static const struct feed feeds[] = {PP_FEEDS(FEED)};

static void kinds__have_a_name_of_their_own_that_files_can_have(void **state)
{
	(void)state;
	for (unsigned int i = 0; i < PP_PROFILE_COUNT; i++) {
		const struct kind *kind = kind_get((enum pp_profile)i);
		enum pp_profile found = PP_PROFILE_COUNT;

		/* A number that no row has is a hole. */
		assert_non_null(kind->name);
		assert_in_range(strlen(kind->name), 1, 32);
		assert_int_equal(strspn(kind->name, "abcdefghijklmnopqrstuvwxyz0123456789_"),
				 strlen(kind->name));
		assert_true(kind_find(kind->name, strlen(kind->name), &found));
		assert_int_equal(found, i);
		assert_true(kind_is(kind->name, (enum pp_profile)i));
	}
}

static void kinds__have_values_and_what_feeds_them(void **state)
{
	(void)state;
	for (unsigned int i = 0; i < PP_PROFILE_COUNT; i++) {
		const struct kind *kind = kind_get((enum pp_profile)i);
		const size_t count = kind_value_count((enum pp_profile)i);

		assert_in_range(count, 1, PP_VALUES_MAX);
		assert_true(kind->default_value < count);
		for (unsigned int at = 0; at < count; at++) {
			unsigned int fed = 0;

			assert_null(strchr(kind->value[at].type, '-'));
			assert_non_null(kind->value[at].unit);
			for (size_t j = 0; j < ARRAY_SIZE(feeds); j++)
				fed += feeds[j].to == i && feeds[j].index == at;
			/* What reads records writes them itself. */
			assert_true(fed > 0 || kind_is_record((enum pp_profile)i));
		}
	}
	for (size_t j = 0; j < ARRAY_SIZE(feeds); j++)
		assert_true(feeds[j].index < kind_value_count(feeds[j].to));
}

static void counters__each_feeds_a_profile(void **state)
{
	(void)state;
	for (unsigned int from = 0; from < PP_KIND_COUNT; from++) {
		/* These become waits before there is a profile: drain/wait_shares.h. */
		bool is_divided = from == PP_KIND_WAIT_SITE || from == PP_KIND_WALKED ||
				  from == PP_KIND_WEIGHTED;
		unsigned int fed = 0;

		for (size_t j = 0; j < ARRAY_SIZE(feeds); j++)
			fed += feeds[j].from == from;
		assert_int_equal(fed > 0, !is_divided);
	}
}

static void captures__each_makes_a_profile_possible(void **state)
{
	uint32_t needed = 0;

	(void)state;
	for (unsigned int i = 0; i < PP_PROFILE_COUNT; i++) {
		const struct kind *kind = kind_get((enum pp_profile)i);

		assert_true(kind->needs != 0);
		needed |= kind->needs;
		/* A private capture has what the kind needs; kinds that it cannot have are not
		 * served. */
		if (KINDS_SERVED & 1U << i)
			assert_true(kind_is_captured((enum pp_profile)i, kind->private_captures));
		else
			assert_int_equal(kind->private_captures, 0);
	}
	assert_int_equal(needed, PP_CAPTURES_ALL);
	assert_int_equal(PP_CAPTURES_OF_WAITS,
			 PP_CAPTURE_OFFCPU | PP_CAPTURE_GIL | PP_CAPTURE_WAKERS);
}

#define NAME_FIRST(id, name, ...) name
#define NAME_NEXT(id, name, ...) "," name
#define PROFILE_FIRST(id, number, name, ...) name
#define PROFILE_NEXT(id, number, name, ...) "," name

static void capture_find__takes_whole_names_only(void **state)
{
	char names[CAPTURE_NAMES_CHARS];
	uint32_t found = 0, all = 0;

	(void)state;
	assert_false(capture_find("off", 3, &found));
	assert_false(capture_find("", 0, &found));
	assert_false(capture_find("wall", 4, &found));
	for (uint32_t bit = 1; bit <= PP_CAPTURES_ALL; bit <<= 1) {
		capture_names(bit, ",", names);
		assert_true(capture_find(names, strlen(names), &found));
		assert_int_equal(found, bit);
		all |= found;
	}
	assert_int_equal(all, PP_CAPTURES_ALL);
	capture_names(PP_CAPTURES_ALL, ",", names);
	assert_string_equal(names, PP_CAPTURES(NAME_FIRST, NAME_NEXT));
}

static void kind_names__are_joined(void **state)
{
	char names[KIND_NAMES_CHARS];

	(void)state;
	kind_names(0, ",", ",", names);
	assert_string_equal(names, "");
	kind_names(KINDS_SERVED, ",", ",", names);
	assert_int_equal(strncmp(names, "cpu,offcpu,wall,gil,gc,", 23), 0); /* no waker */
	kind_names(1U << PP_PROFILE_CPU | 1U << PP_PROFILE_GIL | 1U << PP_PROFILE_WALL, ", ",
		   " and ", names);
	assert_string_equal(names, "cpu, wall and gil");
	kind_names(UINT32_MAX, ",", ",", names);
	assert_string_equal(names, PP_PROFILES(PROFILE_FIRST, PROFILE_NEXT));
	kind_names(UINT32_MAX, ", ", " and ", names);
	assert_true(strlen(names) + 1 <= KIND_NAMES_CHARS);
}

static void kind_value_merge__is_last_of_what_is_held(void **state)
{
	(void)state;
	assert_int_equal(kind_value_merge("alloc", "inuse_space"), PP_MERGE_LAST);
	assert_int_equal(kind_value_merge("alloc", "inuse_objects"), PP_MERGE_LAST);
	assert_int_equal(kind_value_merge("cuda", "inuse_space"), PP_MERGE_LAST);
	assert_int_equal(kind_value_merge("cuda", "inuse_objects"), PP_MERGE_LAST);
	assert_int_equal(kind_value_merge("cuda", "cuda_bytes"), PP_MERGE_SUM);
	assert_int_equal(kind_value_merge("alloc", "alloc_space"), PP_MERGE_SUM);
	assert_int_equal(kind_value_merge("mem", "inuse_space"), PP_MERGE_SUM);
	/* Heap profiles of other programs are added up, as they are of several programs. */
	assert_int_equal(kind_value_merge("heap", "inuse_space"), PP_MERGE_SUM);
	/* Records may lie in a file of any kind. */
	assert_int_equal(kind_value_merge("resident", "resident"), PP_MERGE_LAST);
	assert_int_equal(kind_value_merge("mem", "resident"), PP_MERGE_LAST);
	assert_int_equal(kind_value_merge("alloc", "peak"), PP_MERGE_MAX);
	assert_int_equal(kind_value_merge("resident", "growth"), PP_MERGE_SUM);
	assert_int_equal(kind_value_merge("cpu", "gauge_max"), PP_MERGE_MAX);
	assert_int_equal(kind_value_merge("cuda", "gauge_sum"), PP_MERGE_SUM);
}

static void kind_find__takes_whole_names_only(void **state)
{
	enum pp_profile kind = PP_PROFILE_COUNT;

	(void)state;
	assert_true(kind_find("offcpu,", 6, &kind));
	assert_int_equal(kind, PP_PROFILE_OFFCPU);
	assert_false(kind_find("off", 3, &kind));
	assert_false(kind_find("offcpus", 7, &kind));
	assert_false(kind_find("", 0, &kind));
	assert_int_equal(kind, PP_PROFILE_OFFCPU);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(kinds__have_a_name_of_their_own_that_files_can_have),
		cmocka_unit_test(kinds__have_values_and_what_feeds_them),
		cmocka_unit_test(counters__each_feeds_a_profile),
		cmocka_unit_test(captures__each_makes_a_profile_possible),
		cmocka_unit_test(capture_find__takes_whole_names_only),
		cmocka_unit_test(kind_names__are_joined),
		cmocka_unit_test(kind_find__takes_whole_names_only),
		cmocka_unit_test(kind_value_merge__is_last_of_what_is_held),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
