/* SPDX-License-Identifier: BSD-2-Clause */
/* Windows of kind alloc: what is held at their ends. */
#include "read_fixture.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/kinds.h"
#include "profile/profile_data.h"

#define VALUES 4U

/* A window in which two stacks allocated 10 and 1 bytes, and hold so many at its end.  0: the stack
 * is not in the file. */
static void encode(uint64_t start_ns, const char *kind, int64_t first, int64_t second,
		   void **ret_bytes, size_t *ret_size)
{
	const struct profile_options options = {.kind = kind,
						.value_type = {{"alloc_space", "bytes"},
							       {"alloc_objects", "count"},
							       {"inuse_space", "bytes"},
							       {"inuse_objects", "count"}},
						.value_count = VALUES,
						.default_value_type = "alloc_space",
						.start_wall_ns = start_ns,
						.duration_ns = 5};
	const int64_t held[] = {first, second}, allocated[] = {10, 1};
	OWNED(intern) struct intern *strings = NULL;
	OWNED(profile) struct profile *profile = NULL;

	assert_int_equal(intern_new(&strings), 0);
	assert_int_equal(profile_new(&options, strings, &profile), 0);
	for (uint32_t i = 0; i < 2; i++) {
		struct frame frame = {.kind = FRAME_PYTHON, .line = i + 1};
		const struct profile_sample sample = {.frame = &frame,
						      .frame_count = 1,
						      .value = {allocated[i], 1, held[i],
								held[i] / 2}};

		if (!held[i])
			continue;
		assert_int_equal(intern_string(strings, i ? "second" : "first", &frame.name), 0);
		assert_int_equal(intern_string(strings, "/a.py", &frame.file), 0);
		assert_int_equal(profile_add(profile, &sample), 0);
	}
	assert_int_equal(profile_encode_pprof(profile, ret_bytes, ret_size), 0);
}

static int read_window(struct profile_reader *reader, uint64_t start_ns, int64_t first,
		       int64_t second)
{
	OWNED_MEM void *bytes = NULL;
	size_t size;

	encode(start_ns, "alloc", first, second, &bytes, &size);
	return read_bytes(reader, bytes, size);
}

static int64_t value_of(const struct profile_reader *reader, const char *name, unsigned int index)
{
	const struct profile *profile = profile_reader_profile(reader);

	for (uint32_t i = 0; i < profile->row_count; i++)
		if (!strcmp(name_of(profile, i, 0), name))
			return profile_row_values(profile, i)[index];
	fail_msg("no row %s", name);
	return 0;
}

static void levels__are_those_of_the_last_window(void **state)
{
	OWNED(profile_reader) struct profile_reader *reader = new_reader(NULL);

	(void)state;
	assert_int_equal(read_window(reader, 100, 50, 4), 0);
	assert_int_equal(read_window(reader, 300, 70, 0), 0);
	assert_int_equal(read_window(reader, 200, 60, 8), 0);
	assert_int_equal(value_of(reader, "first", 0), 30);
	assert_int_equal(value_of(reader, "first", 1), 3);
	assert_int_equal(value_of(reader, "first", 2), 70);
	assert_int_equal(value_of(reader, "first", 3), 35);
	assert_int_equal(value_of(reader, "second", 0), 2);
	assert_int_equal(value_of(reader, "second", 2), 0);
}

/* Two processes of one moment, each in a file of its own. */
static void levels__of_one_moment_are_summed_up(void **state)
{
	OWNED(profile_reader) struct profile_reader *reader = new_reader(NULL);

	(void)state;
	assert_int_equal(read_window(reader, 100, 50, 4), 0);
	assert_int_equal(read_window(reader, 100, 20, 0), 0);
	assert_int_equal(value_of(reader, "first", 2), 70);
	assert_int_equal(value_of(reader, "second", 2), 4);
}

static void levels__stay_when_a_later_file_is_broken(void **state)
{
	OWNED(profile_reader) struct profile_reader *reader = new_reader(NULL);
	OWNED_MEM void *bytes = NULL;
	size_t size;

	(void)state;
	assert_int_equal(read_window(reader, 100, 50, 4), 0);
	encode(200, "alloc", 7, 7, &bytes, &size);
	assert_int_not_equal(read_bytes(reader, bytes, size - 9), 0);
	assert_int_equal(value_of(reader, "first", 0), 10);
	assert_int_equal(value_of(reader, "first", 2), 50);
	assert_int_equal(read_window(reader, 150, 60, 0), 0);
	assert_int_equal(value_of(reader, "first", 2), 60);
}

/* Whoever merges windows into one file keeps each one's. */
static void levels__of_windows_that_stay_apart_are_all_kept(void **state)
{
	OWNED(profile_reader) struct profile_reader *reader = new_reader(NULL);
	const struct profile *profile;
	int64_t sum = 0;

	(void)state;
	profile_reader_set_window(reader, 0);
	assert_int_equal(read_window(reader, 100, 50, 4), 0);
	profile_reader_set_window(reader, 10);
	assert_int_equal(read_window(reader, 200, 60, 4), 0);
	profile = profile_reader_profile(reader);
	assert_int_equal(profile->row_count, 4);
	for (uint32_t i = 0; i < 4; i++)
		sum += profile_row_values(profile, i)[2];
	assert_int_equal(sum, 50 + 4 + 60 + 4);
}

struct seen {
	unsigned int windows;
	int64_t total;
	bool is_level;
};

static int window_done(void *context, struct profile *profile, const struct profile_window *window)
{
	struct seen *seen = context;

	(void)profile;
	seen->windows++;
	seen->total += window->total;
	seen->is_level = window->is_level;
	return 0;
}

static void window_done__gets_each_windows_own_level(void **state)
{
	struct seen seen = {0};
	struct profile_read_options options = {
		.sample_type = "inuse_space", .window_done = window_done, .context = &seen};
	OWNED(profile_reader) struct profile_reader *reader = new_reader(&options);

	(void)state;
	assert_int_equal(read_window(reader, 100, 50, 4), 0);
	assert_int_equal(read_window(reader, 200, 60, 4), 0);
	assert_int_equal(seen.windows, 2);
	assert_int_equal(seen.total, 50 + 4 + 60 + 4);
	assert_true(seen.is_level);
}

static void window_done__what_was_allocated_is_no_level(void **state)
{
	struct seen seen = {0};
	struct profile_read_options options = {.window_done = window_done, .context = &seen};
	OWNED(profile_reader) struct profile_reader *reader = new_reader(&options);

	(void)state;
	assert_int_equal(read_window(reader, 100, 50, 4), 0);
	assert_false(seen.is_level);
	assert_int_equal(seen.total, 11);
}

/* ---- records: the most of all windows, and values behind those of another kind ---- */

/* A window of a process with two rows, which become one without their labels. */
static void encode_records(uint64_t start_ns, const char *kind, const int64_t *peak,
			   void **ret_bytes, size_t *ret_size)
{
	struct profile_options options = {.kind = kind, .start_wall_ns = start_ns};
	const enum pp_profile kinds[] = {PP_PROFILE_MEM, PP_PROFILE_RESIDENT};
	OWNED(intern) struct intern *strings = NULL;
	OWNED(profile) struct profile *profile = NULL;
	const bool is_mem = !strcmp(kind, "mem");

	for (unsigned int i = is_mem ? 0 : 1; i < 2; i++)
		for (const struct kind_value *value = kind_get(kinds[i])->value; value->type;
		     value++)
			options.value_type[options.value_count++] =
				(struct profile_value_type){value->type, value->unit};
	options.default_value_type = options.value_type[0].type;
	assert_int_equal(intern_new(&strings), 0);
	assert_int_equal(profile_new(&options, strings, &profile), 0);
	for (uint32_t i = 0; i < 3; i++) {
		struct profile_sample sample = {
			.label = {{.key = "row", .number = i, .is_number = 1}}, .label_count = 1};

		if (i < 2)
			sample.value[(is_mem ? 3 : 0) + PP_RESIDENT_PEAK] = peak[i];
		else
			sample.value[0] = is_mem ? 77 : 0;
		assert_int_equal(profile_add(profile, &sample), 0);
	}
	assert_int_equal(profile_encode_pprof(profile, ret_bytes, ret_size), 0);
}

static int read_records(struct profile_reader *reader, uint64_t start_ns, const char *kind,
			int64_t first, int64_t second)
{
	OWNED_MEM void *bytes = NULL;
	OWNED_FD int fd = memfd_create("records", 0);
	size_t size;

	encode_records(start_ns, kind, (const int64_t[]){first, second}, &bytes, &size);
	assert_int_equal(write(fd, bytes, size), size);
	assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
	return profile_reader_add(reader, fd, "resident");
}

static void maxima__are_sums_of_a_window_and_the_most_of_all(void **state)
{
	static const char *const none[] = {NULL};
	const struct profile_read_options options = {.keep_labels = none};
	OWNED(profile_reader) struct profile_reader *reader = NULL;

	(void)state;
	assert_int_equal(profile_reader_new(&options, &reader), 0);
	assert_int_equal(read_records(reader, 100, "resident", 3, 4), 0);
	assert_int_equal(read_records(reader, 300, "resident", 5, 5), 0);
	assert_int_equal(read_records(reader, 200, "resident", 6, 2), 0);
	assert_int_equal(profile_reader_profile(reader)->row_count, 1);
	assert_int_equal(profile_row_values(profile_reader_profile(reader), 0)[PP_RESIDENT_PEAK],
			 10);
}

static void records__are_read_from_a_file_of_another_kind(void **state)
{
	const struct profile_read_options options = {0};
	OWNED(profile_reader) struct profile_reader *reader = NULL;
	const struct profile *profile;

	(void)state;
	assert_int_equal(profile_reader_new(&options, &reader), 0);
	assert_int_equal(read_records(reader, 100, "mem", 3, 4), 0);
	profile = profile_reader_profile(reader);
	assert_string_equal(profile_kind(profile), "resident");
	assert_int_equal(profile->options.value_count, kind_value_count(PP_PROFILE_RESIDENT));
	/* What has no value of the kind is no record. */
	assert_int_equal(profile->row_count, 2);
	assert_int_equal(profile_row_values(profile, 1)[PP_RESIDENT_PEAK], 4);
}

static void records__where_there_are_none_are_an_error(void **state)
{
	const struct profile_read_options options = {0};
	OWNED(profile_reader) struct profile_reader *reader = NULL;
	OWNED_MEM void *bytes = NULL;
	OWNED_FD int fd = memfd_create("alloc", 0);
	size_t size;

	(void)state;
	encode(100, "alloc", 5, 5, &bytes, &size);
	assert_int_equal(write(fd, bytes, size), size);
	assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
	assert_int_equal(profile_reader_new(&options, &reader), 0);
	assert_int_equal(profile_reader_add(reader, fd, "resident"), -EPROTO);
	assert_null(profile_reader_profile(reader));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(levels__are_those_of_the_last_window),
		cmocka_unit_test(levels__of_one_moment_are_summed_up),
		cmocka_unit_test(levels__stay_when_a_later_file_is_broken),
		cmocka_unit_test(levels__of_windows_that_stay_apart_are_all_kept),
		cmocka_unit_test(maxima__are_sums_of_a_window_and_the_most_of_all),
		cmocka_unit_test(records__are_read_from_a_file_of_another_kind),
		cmocka_unit_test(records__where_there_are_none_are_an_error),
		cmocka_unit_test(window_done__gets_each_windows_own_level),
		cmocka_unit_test(window_done__what_was_allocated_is_no_level),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
