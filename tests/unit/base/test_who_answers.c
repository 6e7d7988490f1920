/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/who_answers.h"

#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/io.h"

#define USERS                                                                                      \
	"root:x:0:0:root:/root:/bin/sh\nalice:x:1001:1001::/:\nbob:x:1002:1002::/:\n"              \
	"# carol:x:1003:1003::/:\nbad\nworse:x:-1:0\ndave:x:100500:1::/:\n"

static struct who_ranges ranges;

static void parse(const char *subordinates)
{
	who_ranges_release(&ranges);
	assert_int_equal(who_ranges_parse(subordinates, USERS, &ranges), 0);
}

static uint32_t who(uint32_t uid)
{
	return who_ranges_find(&ranges, uid);
}

static void who__of_a_range_is_its_owner_by_name_or_number(void **state)
{
	(void)state;
	parse("alice:100000:500\nbob:165536:65536\n1009:300000:10");
	assert_int_equal(who(99999), 99999);
	assert_int_equal(who(100000), 1001);
	assert_int_equal(who(100499), 1001);
	assert_int_equal(who(165535), 165535);
	assert_int_equal(who(165536 + 65535), 1002);
	assert_int_equal(who(300009), 1009);
	assert_int_equal(who(300010), 300010);
	/* Users answer for themselves. */
	assert_int_equal(who(0), 0);
	assert_int_equal(who(1001), 1001);
	assert_int_equal(who(UINT32_MAX), UINT32_MAX);
}

static void who__of_an_owner_without_a_number_is_the_first_id(void **state)
{
	(void)state;
	parse("elsewhere:200000:100\n");
	assert_int_equal(who(200000), 200000);
	assert_int_equal(who(200099), 200000);
}

static void who__in_roots_range_is_each(void **state)
{
	(void)state;
	parse("root:100000:65536\n0:300000:65536\n");
	assert_int_equal(who(100001), 100001);
	assert_int_equal(who(300001), 300001);
	assert_int_equal(ranges.count, 0);
}

/* A range goes around those who have a name of their own. */
static void who__user_in_anothers_range_answers_for_himself(void **state)
{
	(void)state;
	parse("alice:100000:65536\n");
	assert_int_equal(who(100499), 1001);
	assert_int_equal(who(100500), 100500);
	assert_int_equal(who(100501), 1001);
	parse("bob:0:4294967294\n");
	assert_int_equal(who(0), 0);
	assert_int_equal(who(1), 1002);
	assert_int_equal(who(1001), 1001);
	assert_int_equal(who(4294967293U), 1002);
}

static void who__of_two_ranges_is_that_of_the_first(void **state)
{
	(void)state;
	parse("bob:100100:100\nalice:100000:150\nbob:100000:20\n");
	assert_int_equal(who(100000), 1001);
	assert_int_equal(who(100149), 1001);
	assert_int_equal(who(100150), 1002);
	assert_int_equal(who(100199), 1002);
}

static void who__owner_may_be_anothers_id(void **state)
{
	(void)state;
	parse("alice:100000:10\n100005:200000:10\n200001:200000:5\n");
	assert_int_equal(who(200007), 1001);
}

static void parse__leaves_out_lines_that_are_none(void **state)
{
	(void)state;
	parse("\nalice\nalice:\nalice:100000\nalice:100000:\nalice:x:5\nalice:100000:0\n:100000:5\n"
	      "alice:-1:5\nalice:99999999999999999999:5\n# alice:100000:5\nalice:100010:5:more\n");
	assert_int_equal(who(100000), 100000);
	assert_int_equal(who(100010), 1001);
	assert_int_equal(ranges.count, 1);
	parse("alice:4294967290:4294967290\n");
	assert_int_equal(who(4294967294U), 1001);
	assert_int_equal(who(4294967295U), 4294967295U);
}

static void parse__has_a_bound_and_says_so(void **state)
{
	const size_t lines = PP_USER_RANGES + 5, size = lines * 24;
	char *text = calloc(1, size), *at = text;

	(void)state;
	for (size_t i = 0; i < lines; i++)
		at += snprintf(at, size - (size_t)(at - text), "%zu:%zu:5\n", 2000 + i,
			       100000 + 10 * i);
	parse(text);
	free(text);
	assert_int_equal(ranges.count, PP_USER_RANGES);
	assert_int_equal(ranges.left_out, 5);
	assert_int_equal(who(100004), 2000);
	assert_int_equal(who(100000 + 10 * (PP_USER_RANGES - 1)), 2000 + PP_USER_RANGES - 1);
	assert_int_equal(who(100000 + 10 * PP_USER_RANGES), 100000 + 10 * PP_USER_RANGES);
	/* Neighbours of one owner are one. */
	parse("alice:100000:10\nalice:100010:10\n");
	assert_int_equal(ranges.count, 1);
	assert_int_equal(ranges.left_out, 0);
}

/* ---- the machine's ---- */

static const char *texts[PROCESS_TEXTS]; /* NULL: it is not there */
static bool is_late;

static int read_text(void *context, pid_t tid, enum process_text which, size_t max_bytes,
		     char **ret_text, size_t *ret_size)
{
	(void)context;
	assert_int_equal(tid, getpid());
	assert_int_equal(max_bytes, PROCESS_TEXT_MAX_BYTES);
	if (is_late)
		return -ETIMEDOUT;
	if (!texts[which])
		return -ESRCH;
	*ret_text = strdup(texts[which]);
	*ret_size = strlen(texts[which]);
	return 0;
}

static void follow__reads_the_files_and_tells_of_changes(void **state)
{
	static const struct process_access access = {.read_text = read_text};
	const struct who_ranges *found = NULL;

	(void)state;
	process_access_by(&access, NULL);
	assert_int_equal(who_answers(100003), 100003);
	assert_true(who_answers_follow(&found));
	assert_int_equal(found->count, 0);
	assert_false(who_answers_follow(&found));
	texts[PROCESS_SUBORDINATES] = "alice:100000:10\n";
	assert_true(who_answers_follow(&found));
	assert_int_equal(found->range[0].owner, 100000);
	texts[PROCESS_USERS] = USERS;
	is_late = true;
	assert_false(who_answers_follow(&found));
	assert_int_equal(who_answers(100003), 100000);
	is_late = false;
	assert_true(who_answers_follow(&found));
	assert_int_equal(who_answers(100003), 1001);
	texts[PROCESS_SUBORDINATES] = NULL;
	assert_true(who_answers_follow(&found));
	assert_int_equal(who_answers(100003), 100003);
	process_access_by(NULL, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(who__of_a_range_is_its_owner_by_name_or_number),
		cmocka_unit_test(who__of_an_owner_without_a_number_is_the_first_id),
		cmocka_unit_test(who__in_roots_range_is_each),
		cmocka_unit_test(who__user_in_anothers_range_answers_for_himself),
		cmocka_unit_test(who__of_two_ranges_is_that_of_the_first),
		cmocka_unit_test(who__owner_may_be_anothers_id),
		cmocka_unit_test(parse__leaves_out_lines_that_are_none),
		cmocka_unit_test(parse__has_a_bound_and_says_so),
		cmocka_unit_test(follow__reads_the_files_and_tells_of_changes),
	};

	int failed = cmocka_run_group_tests_name("base/who_answers", tests, NULL, NULL);

	who_ranges_release(&ranges);
	return failed;
}
