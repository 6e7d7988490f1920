/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>

#include "fixture.h"
#include "profile/profile_data.h"

static struct profile_sample numbered_sample(const struct frame *frame, int64_t pid, int64_t tid)
{
	return (struct profile_sample){
		.frame = frame,
		.frame_count = 1,
		.value = {1, 10},
		.label = {{.key = "pid", .number = pid, .is_number = 1},
			  {.key = "tid", .number = tid, .is_number = 1}},
		.label_count = 2,
	};
}

static void profile_add__equal_frames_and_labels_are_merged(void **state)
{
	CLEANUP(fixture_release) struct fixture f = {0};
	struct frame frame[2];

	(void)state;
	fixture_init(&f);
	frame[0] = python_frame(&f, "leaf", "/a.py", 3, 1);
	frame[1] = python_frame(&f, "root", "/a.py", 9, 8);
	for (int i = 0; i < 100; i++)
		add_sample(&f, frame, 2, 1, 5, "t");
	assert_int_equal(profile_sample_count(f.profile), 1);
	add_sample(&f, frame, 1, 1, 5, "t");
	add_sample(&f, frame, 2, 1, 6, "t");
	add_sample(&f, frame, 2, 1, 5, "u");
	add_sample(&f, frame, 2, 1, 5, NULL);
	assert_int_equal(profile_sample_count(f.profile), 5);
}

static void profile_add_values__rows_have_0_and_go_on(void **state)
{
	static const struct profile_value_type more[] = {{"more", "count"}, {"most", "bytes"}};
	CLEANUP(fixture_release) struct fixture f = {0};
	struct frame frame;
	size_t before, count;
	int64_t pid = 5;

	(void)state;
	fixture_init(&f);
	frame = python_frame(&f, "leaf", "/a.py", 3, 1);
	/* As many as an array begins with, and some. */
	while (pid < 75)
		add_sample(&f, &frame, 1, 1, pid++, "t");
	before = f.profile->options.value_count;
	assert_int_equal(profile_add_values(f.profile, more, 2), 0);
	while (pid < 115)
		add_sample(&f, &frame, 1, 1, pid++, "t");
	assert_int_equal(f.profile->options.value_count, before + 2);
	assert_string_equal(f.profile->options.value_type[before + 1].type, "most");
	for (uint32_t row = 0; row < 110; row++) {
		assert_int_equal(profile_row_values(f.profile, row)[0], 1);
		assert_int_equal(profile_row_values(f.profile, row)[before], 0);
		assert_int_equal(profile_row_values(f.profile, row)[before + 1], 0);
	}
	for (count = before + 2; count < PROFILE_MAX_VALUES; count++)
		assert_int_equal(profile_add_values(f.profile, more, 1), 0);
	assert_int_equal(profile_add_values(f.profile, more, 1), -E2BIG);
	assert_int_equal(profile_row_values(f.profile, 1)[0], 1);
}

/* What the agent's bounds go by. */
static void profile_bytes__are_those_of_all_that_came(void **state)
{
	enum { STACKS = 2000, DEEP = 8 };
	CLEANUP(fixture_release) struct fixture f = {0};
	struct frame frame[DEEP];
	size_t before;

	(void)state;
	fixture_init(&f);
	before = profile_bytes(f.profile);
	frame[0] = python_frame(&f, "leaf", "/a.py", 3, 1);
	for (size_t i = 1; i < DEEP; i++)
		frame[i] = frame[0];
	for (uint32_t i = 0; i < STACKS; i++) {
		for (uint32_t at = 0; at < DEEP; at++)
			frame[at].line = 1 + i * DEEP + at;
		add_sample(&f, frame, DEEP, 1, 5, "t");
	}
	assert_true(profile_bytes(f.profile) - before >
		    STACKS * DEEP * (sizeof(struct frame) + sizeof(uint32_t)));
	assert_true(profile_bytes(f.profile) - before <
		    5 * STACKS * DEEP * (sizeof(struct frame) + sizeof(uint32_t)));
}

/* Rows that differ in the last label alone lie together, whatever order they came in. */
static void profile_order_rows__by_stack_then_labels_then_the_last_one(void **state)
{
	static const struct {
		uint32_t stack;
		int64_t pid, window, tid; /* 0: it has none */
	} row[] = {{0, 0, 0, 0}, {0, 0, 7, 0}, {0, 1, 0, 0}, {0, 1, 2, 0}, {0, 1, 9, 0},
		   {0, 1, 3, 4}, {0, 1, 1, 5}, {0, 2, 1, 0}, {1, 1, 2, 0}, {1, 1, 9, 0}};

	(void)state;
	for (size_t begin = 0; begin < ARRAY_SIZE(row); begin++) {
		CLEANUP(fixture_release) struct fixture f = {0};
		struct frame frame;
		uint32_t stack[2], location;

		fixture_init(&f);
		assert_int_equal(profile_order_rows(f.profile, "window"), 0);
		for (uint32_t i = 0; i < 2; i++) {
			frame = python_frame(&f, i ? "b" : "a", "/a.py", 3, 1);
			assert_int_equal(profile_add_location(f.profile, &frame, &location), 0);
			assert_int_equal(profile_add_stack(f.profile, &location, 1, &stack[i]), 0);
		}
		for (size_t i = 0; i < ARRAY_SIZE(row); i++) {
			const size_t at = (begin + 3 * i) % ARRAY_SIZE(row);
			const int64_t number[] = {row[at].pid, row[at].window, row[at].tid};
			static const char *const key[] = {"pid", "window", "tid"};
			const int64_t values[] = {(int64_t)at, 100 + (int64_t)at};
			struct profile_label label[3];
			uint32_t set, added;
			size_t count = 0;

			for (size_t k = 0; k < 3; k++)
				if (number[k])
					label[count++] = (struct profile_label){
						.key = key[k], .number = number[k], .is_number = 1};
			assert_int_equal(profile_add_label_set(f.profile, label, count, &set), 0);
			assert_int_equal(profile_add_row(f.profile, stack[row[at].stack], set,
							 values, &added),
					 0);
		}
		assert_int_equal(profile_order_rows(f.profile, "window"), 0);
		for (uint32_t i = 0; i < ARRAY_SIZE(row); i++) {
			assert_int_equal(profile_row_values(f.profile, i)[0], i);
			assert_int_equal(profile_row_values(f.profile, i)[1], 100 + i);
			assert_int_equal(f.profile->row[i].stack, stack[row[i].stack]);
		}
	}
}

static void profile_add__every_field_of_a_frame_tells_stacks_apart(void **state)
{
	CLEANUP(fixture_release) struct fixture f = {0};
	struct frame frame[9];

	(void)state;
	fixture_init(&f);
	for (size_t i = 0; i < ARRAY_SIZE(frame); i++)
		frame[i] = (struct frame){.kind = FRAME_NATIVE, .name = id(&f, "f")};
	frame[1].kind = FRAME_JIT;
	frame[2].name = id(&f, "g");
	frame[3].system_name = id(&f, "g");
	frame[4].file = id(&f, "g");
	frame[5].line = 1;
	frame[6].start_line = 1;
	frame[7].module = add_module(&f, "m", "", 0, 0, 0);
	frame[8].address = 1ULL << 40;
	for (size_t i = 0; i < ARRAY_SIZE(frame); i++)
		add_sample(&f, &frame[i], 1, 1, 0, NULL);
	assert_int_equal(profile_sample_count(f.profile), 9);
}

static void profile_add__order_of_labels_does_not_matter(void **state)
{
	CLEANUP(fixture_release) struct fixture f = {0};
	struct profile_sample sample;
	struct profile_label swap;
	struct frame frame;

	(void)state;
	fixture_init(&f);
	frame = python_frame(&f, "leaf", "/a.py", 3, 1);
	sample = numbered_sample(&frame, 1, 2);
	assert_int_equal(profile_add(f.profile, &sample), 0);
	swap = sample.label[0];
	sample.label[0] = sample.label[1];
	sample.label[1] = swap;
	assert_int_equal(profile_add(f.profile, &sample), 0);
	assert_int_equal(profile_sample_count(f.profile), 1);
	sample = numbered_sample(&frame, 2, 1);
	assert_int_equal(profile_add(f.profile, &sample), 0);
	assert_int_equal(profile_sample_count(f.profile), 2);
}

static void profile_add__equal_keys_at_other_addresses_are_one_key(void **state)
{
	CLEANUP(fixture_release) struct fixture f = {0};
	struct profile_sample sample;
	struct frame frame;
	char key[] = "pid";

	(void)state;
	fixture_init(&f);
	frame = python_frame(&f, "leaf", "/a.py", 3, 1);
	sample = numbered_sample(&frame, 1, 2);
	assert_int_equal(profile_add(f.profile, &sample), 0);
	sample.label[0].key = key;
	assert_int_equal(profile_add(f.profile, &sample), 0);
	assert_int_equal(profile_sample_count(f.profile), 1);
}

static void profile_add_module__differing_modules_get_their_own_index(void **state)
{
	CLEANUP(fixture_release) struct fixture f = {0};
	uint32_t first, other;

	(void)state;
	fixture_init(&f);
	first = add_module(&f, "/lib/a.so", "aa", 1, 2, 3);
	assert_int_equal(first, 1);
	assert_int_equal(add_module(&f, "/lib/a.so", "aa", 1, 2, 3), first);
	other = add_module(&f, "/lib/a.so", "bb", 1, 2, 3);
	assert_int_equal(other, 2);
	assert_int_equal(add_module(&f, "/lib/a.so", "aa", 1, 2, 4), 3);
}

static void profile_kind__is_the_literal_of_the_options_and_outlives_the_profile(void **state)
{
	static const char *const kinds[] = {"cpu", "offcpu", "gil_wait"};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		const struct profile_options options = {
			.kind = kinds[i], .value_type = {{"samples", "count"}}, .value_count = 1};
		OWNED(intern) struct intern *strings = NULL;
		struct profile *profile;
		const char *kind;

		assert_int_equal(intern_new(&strings), 0);
		assert_int_equal(profile_new(&options, strings, &profile), 0);
		kind = profile_kind(profile);
		profile_free(profile);
		assert_ptr_equal(kind, kinds[i]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			profile_kind__is_the_literal_of_the_options_and_outlives_the_profile),
		cmocka_unit_test(profile_add__equal_frames_and_labels_are_merged),
		cmocka_unit_test(profile_add_values__rows_have_0_and_go_on),
		cmocka_unit_test(profile_bytes__are_those_of_all_that_came),
		cmocka_unit_test(profile_order_rows__by_stack_then_labels_then_the_last_one),
		cmocka_unit_test(profile_add__every_field_of_a_frame_tells_stacks_apart),
		cmocka_unit_test(profile_add__order_of_labels_does_not_matter),
		cmocka_unit_test(profile_add__equal_keys_at_other_addresses_are_one_key),
		cmocka_unit_test(profile_add_module__differing_modules_get_their_own_index),
	};

	return cmocka_run_group_tests_name("profile/profile", tests, NULL, NULL);
}
