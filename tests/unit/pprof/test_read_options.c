/* SPDX-License-Identifier: BSD-2-Clause */
#include "read_fixture.h"

#include "base/cleanup.h"

/* Two stacks of one process and one of another; the second file has the first process alone. */
static void read_two(struct profile_reader *reader)
{
	CLEANUP(fixture_release) struct fixture f = {0};
	struct frame frame[2];
	OWNED_MEM void *bytes = NULL;
	size_t size;

	fixture_init(&f);
	frame[0] = python_frame(&f, "work", "/app/w.py", 12, 10);
	frame[1] = python_frame(&f, "main", "/app/w.py", 20, 18);
	add_sample(&f, frame, 1, 5, 41, "a");
	add_sample(&f, frame, 2, 6, 41, "a");
	assert_int_equal(profile_encode_pprof(f.profile, &bytes, &size), 0);
	assert_int_equal(read_bytes(reader, bytes, size), 0);
	free(TAKE(bytes));
	add_sample(&f, frame + 1, 1, 7, 42, "a");
	assert_int_equal(profile_encode_pprof(f.profile, &bytes, &size), 0);
	assert_int_equal(read_bytes(reader, bytes, size), 0);
}

static void profile_read__without_stacks_rows_differ_in_labels_alone(void **state)
{
	static const struct profile_read_options options = {.drop_stacks = true};
	OWNED(profile_reader) struct profile_reader *reader = new_reader(&options);
	OWNED(profile_reader) struct profile_reader *whole = new_reader(NULL);
	const struct profile *p;

	(void)state;
	read_two(reader);
	read_two(whole);
	assert_int_equal(profile_reader_profile(whole)->row_count, 3);
	p = profile_reader_profile(reader);
	assert_int_equal(p->row_count, 2);
	assert_int_equal(profile_row_values(p, 0)[0], 2 * (5 + 6));
	assert_int_equal(profile_row_values(p, 1)[0], 7);
	assert_int_equal(profile_find_label(p, p->row[1].label_set, "pid")->value, 42);
	assert_int_equal(p->stacks.stack[p->row[0].stack].count, 0);
	assert_int_equal(p->row[0].stack, p->row[1].stack);
}

/* As `go tool pprof -diff_base` and `-base` write them: with the label, or with signs alone. */
static void profile_read__shares_of_a_difference_are_of_its_base(void **state)
{
	static const char *const none[] = {NULL};
	static const struct profile_read_options options = {.keep_labels = none};

	(void)state;
	for (unsigned int has_label = 0; has_label < 2; has_label++) {
		OWNED(profile_reader) struct profile_reader *reader = new_reader(&options);
		CLEANUP(fixture_release) struct fixture f = {0};
		const struct profile_label base = {.key = PROFILE_BASE_LABEL};
		OWNED_MEM void *bytes = NULL;
		struct profile_sample sample = {.frame_count = 1, .value = {-6, -60}};
		struct frame frame;
		size_t size;

		fixture_init(&f);
		frame = python_frame(&f, "work", "/app/w.py", 12, 10);
		add_sample(&f, &frame, 1, 5, 41, "a");
		sample.frame = &frame;
		sample.label[0] = base;
		sample.label[0].string = frame.name;
		sample.label_count = has_label;
		assert_int_equal(profile_add(f.profile, &sample), 0);
		assert_int_equal(profile_encode_pprof(f.profile, &bytes, &size), 0);
		assert_int_equal(read_bytes(reader, bytes, size), 0);
		assert_true(profile_reader_profile(reader)->signs.has_negative);
		assert_int_equal(profile_signed_whole(profile_reader_profile(reader)),
				 has_label ? 60 : 5 * 10101010 + 60);
		/* What the base had stays apart. */
		assert_int_equal(profile_reader_profile(reader)->row_count, 1 + has_label);
		/* A file that breaks off changes nothing. */
		assert_int_not_equal(read_bytes(reader, bytes, size / 2), 0);
		assert_int_equal(profile_signed_whole(profile_reader_profile(reader)),
				 has_label ? 60 : 5 * 10101010 + 60);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(profile_read__without_stacks_rows_differ_in_labels_alone),
		cmocka_unit_test(profile_read__shares_of_a_difference_are_of_its_base),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
