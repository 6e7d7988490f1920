/* SPDX-License-Identifier: BSD-2-Clause */
/* What a merged file says of its windows as a whole, read by another decoder than the product's. */
#include "store/merge_store.h"

#include "../profile/fixture.h"
#include "store_fixture.h"

#define START_MS 1795273200000ULL /* five minutes begin */
#define NOW_MS (START_MS + MERGE_SLOT_MS + MERGE_AFTER_MS)
#define NS_PER_MS 1000000ULL

static struct store_file file_of(uint64_t start_ms, uint64_t duration_ms, const char *kind)
{
	struct store_file file = {.start_ms = start_ms, .duration_ms = duration_ms};

	snprintf(file.kind, sizeof(file.kind), "%s", kind);
	return file;
}

/* Writes a window in which two programs ran, the second for longer.  It began a bit later than its
 * name says. */
static void put_window(const char *store, const struct store_file *file)
{
	const struct profile_options options = {.kind = file->kind,
						.value_type = {{"samples", "count"},
							       {"cpu", "nanoseconds"}},
						.value_count = 2,
						.default_value_type = "cpu",
						.period_type = {"cpu", "nanoseconds"},
						.period = 10101010,
						.start_wall_ns = file->start_ms * NS_PER_MS + 5,
						.duration_ns = file->duration_ms * NS_PER_MS + 3};
	OWNED_MEM void *bytes = NULL;
	struct fixture f = {0};
	struct frame frame;
	char own[32];
	size_t size;

	assert_int_equal(intern_new(&f.strings), 0);
	assert_int_equal(profile_new(&options, f.strings, &f.profile), 0);
	for (uint32_t i = 0; i < 2; i++) {
		const char *path = i ? "/usr/bin/second" : "/usr/bin/first";

		frame = code_frame(&f, FRAME_NATIVE, "main",
				   add_module(&f, path, "", 0x1000, 0x2000, 0), 0x1100);
		add_sample(&f, &frame, 1, 10 + 10 * i, 7 + i, NULL);
	}
	snprintf(own, sizeof(own), "start=%lu", (unsigned long)file->start_ms);
	assert_int_equal(profile_add_comment(f.profile, own), 0);
	assert_int_equal(profile_add_comment(f.profile, "host=a"), 0);
	assert_int_equal(profile_encode_pprof(f.profile, &bytes, &size), 0);
	write_bytes(store, file, bytes, size);
	fixture_release(&f);
}

/* Writes windows of which the second one ends last. */
static void put_windows(const char *store, const char *kind)
{
	const struct store_file file[] = {file_of(START_MS, 10000, kind),
					  file_of(START_MS + 10000, 60000, kind),
					  file_of(START_MS + 20000, 10000, kind)};

	for (size_t i = 0; i < ARRAY_SIZE(file); i++)
		put_window(store, &file[i]);
}

static int merge_all(const char *store)
{
	struct merge_refused refused = {0};
	const struct merge_pass pass = {.refused = &refused};

	return merge_store(store, NOW_MS, &pass);
}

/* The only file that is left. */
static pprof *read_merged(const char *store, struct store_file *ret_file)
{
	const struct store_range all = {.until_ms = UINT64_MAX};
	CLEANUP(store_listing_release) struct store_listing listing = {0};
	OWNED_MEM uint8_t *raw = NULL;
	char bytes[8192];
	size_t size;
	FILE *in;

	assert_int_equal(store_list(store, &all, &listing), 0);
	assert_int_equal(listing.count, 1);
	*ret_file = listing.entry[0].file;
	in = fopen(listing.entry[0].path, "r");
	assert_non_null(in);
	size = fread(bytes, 1, sizeof(bytes), in);
	assert_true(feof(in));
	fclose(in);
	raw = inflate_all(bytes, size, &size);
	return decode((struct wire){raw, raw + size});
}

static void merged_file__lasts_to_the_end_of_the_last_window(void **state)
{
	struct store_file file;
	pprof *p;

	put_windows(*state, "cpu");
	assert_int_equal(merge_all(*state), 0);
	p = read_merged(*state, &file);
	assert_true(file.is_merged);
	assert_string_equal(file.kind, "cpu");
	assert_int_equal(file.start_ms, START_MS);
	assert_int_equal(file.duration_ms, 70000);
	assert_int_equal(p->time_nanos, START_MS * NS_PER_MS + 5);
	/* of all windows, as a rate is by time that was watched */
	assert_int_equal(p->duration_nanos, 80000 * NS_PER_MS + 3 * 3);
	assert_int_equal(p->period, 10101010);
	pprof_free(p);
}

/* go tool pprof calls the profile by its first mapping. */
static void merged_file__program_that_ran_most_is_the_first_mapping(void **state)
{
	struct store_file file;
	pprof *p;

	put_windows(*state, "cpu");
	assert_int_equal(merge_all(*state), 0);
	p = read_merged(*state, &file);
	assert_int_equal(p->n_mapping, 2);
	assert_string_equal(text(p, p->mapping[0].filename), "/usr/bin/second");
	assert_string_equal(text(p, p->mapping[1].filename), "/usr/bin/first");
	pprof_free(p);
}

/* Samples of one stack lie together, which takes less room. */
static void merged_file__samples_are_by_stack(void **state)
{
	struct store_file file;
	unsigned int changes = 0;
	pprof *p;

	put_windows(*state, "cpu");
	assert_int_equal(merge_all(*state), 0);
	p = read_merged(*state, &file);
	assert_int_equal(p->n_sample, 3 * 2);
	for (size_t i = 0; i < p->n_sample; i++) {
		assert_int_equal(p->sample[i].n_location_id, 1);
		changes += i && p->sample[i].location_id[0] != p->sample[i - 1].location_id[0];
	}
	assert_int_equal(changes, 1);
	pprof_free(p);
}

static bool has_comment(const pprof *p, const char *wanted)
{
	for (size_t i = 0; i < p->n_comment; i++)
		if (!strcmp(text(p, p->comment[i]), wanted))
			return true;
	return false;
}

/* A comment of one window bears its offset. */
static void merged_file__comment_of_all_windows_is_there_once(void **state)
{
	struct store_file file;
	char own[64];
	pprof *p;

	put_windows(*state, "cpu");
	assert_int_equal(merge_all(*state), 0);
	p = read_merged(*state, &file);
	assert_int_equal(p->n_comment, 3 /* marks */ + 3 + 1);
	assert_true(has_comment(p, "host=a"));
	for (uint64_t i = 0; i < 3; i++) {
		snprintf(own, sizeof(own), "window=%lu start=%lu", (unsigned long)i * 10000,
			 (unsigned long)(START_MS + i * 10000));
		assert_true(has_comment(p, own));
	}
	pprof_free(p);
}

/* More milliseconds than a number has: the end of time. */
static void merged_file__window_without_an_end_ends_with_time(void **state)
{
	const struct store_file odd = file_of(START_MS + 10000, UINT64_MAX, "cpu"),
				first = file_of(START_MS, 10000, "cpu");
	struct store_file file;

	put_window(*state, &first);
	put_window(*state, &odd);
	assert_int_equal(merge_all(*state), 0);
	pprof_free(read_merged(*state, &file));
	assert_int_equal(file.duration_ms, UINT64_MAX - START_MS);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make_store, remove_directory)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(merged_file__lasts_to_the_end_of_the_last_window),
		TEST(merged_file__program_that_ran_most_is_the_first_mapping),
		TEST(merged_file__samples_are_by_stack),
		TEST(merged_file__comment_of_all_windows_is_there_once),
		TEST(merged_file__window_without_an_end_ends_with_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
