/* SPDX-License-Identifier: BSD-2-Clause */
#include "fixture.h"

#include "libc.h"

#include <pthread.h>
#include <stdatomic.h>

#include "base/cleanup.h"
#include "store/store_query.h"

struct fixture {
	char directory[64];
};

static void touch(const struct fixture *f, const char *name)
{
	char path[256], *slash;
	OWNED_FD int fd = -1;

	snprintf(path, sizeof(path), "%s/%s", f->directory, name);
	for (slash = strchr(path + strlen(f->directory) + 1, '/'); slash;
	     slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		(void)mkdir(path, 0700);
		*slash = '/';
	}
	fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
}

static void fixture_release(struct fixture *f)
{
	char command[128];

	snprintf(command, sizeof(command), "rm -rf %s", f->directory);
	assert_int_equal(system(command), 0);
}

static void fixture_init(struct fixture *f)
{
	snprintf(f->directory, sizeof(f->directory), "/tmp/test_store_query.XXXXXX");
	assert_non_null(mkdtemp(f->directory));
	touch(f, "2026-11-21/15/1795273360165-10000-cpu.pb.gz");
	touch(f, "2026-11-21/15/1795273360165-10000-offcpu.pb.gz");
	touch(f, "2026-11-21/15/1795273350165-10000-cpu.pb.gz");
	touch(f, "2026-11-21/16/1795276960165-10000-cpu.pb.gz");
	touch(f, "2026-11-21/16/.1795276970165-10000-cpu.pb.gz.tmp");
	touch(f, "2026-11-21/16/notes.txt");
	touch(f, "other/16/1795276960165-10000-cpu.pb.gz");
	touch(f, "kept/2026-11-21T160940Z-signal/cpu.pb.gz");
	touch(f, "kept/16/1795276960165-10000-cpu.pb.gz");
}

static size_t count(const struct fixture *f, struct store_range range, uint64_t *first_ms)
{
	CLEANUP(store_listing_release) struct store_listing listing = {0};

	assert_int_equal(store_list(f->directory, &range, &listing), 0);
	*first_ms = listing.count ? listing.entry[0].file.start_ms : 0;
	return listing.count;
}

static void store_list__finds_windows_in_order(void **state)
{
	CLEANUP(fixture_release) struct fixture f = {0};
	uint64_t first_ms;

	(void)state;
	fixture_init(&f);
	assert_int_equal(count(&f, (struct store_range){.until_ms = UINT64_MAX}, &first_ms), 4);
	assert_int_equal(first_ms, 1795273350165);
	assert_int_equal(count(&f, (struct store_range){.until_ms = UINT64_MAX, .kind = "offcpu"},
			       &first_ms),
			 1);
}

static void store_list__takes_windows_that_overlap(void **state)
{
	CLEANUP(fixture_release) struct fixture f = {0};
	uint64_t first_ms;

	(void)state;
	fixture_init(&f);
	/* Ends at ...370165: two of that time, and the hour after. */
	assert_int_equal(
		count(&f, (struct store_range){.since_ms = 1795273370000, .until_ms = UINT64_MAX},
		      &first_ms),
		3);
	assert_int_equal(count(&f, (struct store_range){.until_ms = 1795273360165}, &first_ms), 1);
}

static void store_list__is_sorted_by_start_and_then_by_kind(void **state)
{
	static const char *const order[] = {
		"2026-11-21/15/1795273350165-10000-cpu.pb.gz",
		"2026-11-21/15/1795273360165-10000-cpu.pb.gz",
		"2026-11-21/15/1795273360165-10000-gil.pb.gz",
		"2026-11-21/15/1795273360165-10000-offcpu.pb.gz",
		"2026-11-21/15/1795273360165-10000-wall.pb.gz",
		"2026-11-21/16/1795276960165-10000-cpu.pb.gz",
	};
	const struct store_range range = {.until_ms = UINT64_MAX};
	CLEANUP(store_listing_release) struct store_listing listing = {0};
	CLEANUP(fixture_release) struct fixture f = {0};

	(void)state;
	fixture_init(&f);
	touch(&f, order[4]);
	touch(&f, order[2]);
	/* What is in the way is passed over: files with the name of a day, an hour, links to
	 * nothing. */
	touch(&f, "2026-11-20");
	touch(&f, "2026-11-21/14");
	touch(&f, "2026-11-21/15/1-1-cpu.txt");
	assert_int_equal(store_list(f.directory, &range, &listing), 0);
	assert_int_equal(listing.count, 6);
	for (size_t i = 0; i < listing.count; i++)
		assert_string_equal(listing.entry[i].path + strlen(f.directory) + 1, order[i]);
	store_listing_release(&listing);
	assert_null(listing.entry);
	assert_int_equal(listing.count, 0);
}

/* A window whose end would not fit into 64 bits has no end. */
static void store_list__merged_files_come_before_what_begins_with_them(void **state)
{
	const struct store_range range = {.until_ms = UINT64_MAX, .kind = "gil"};
	CLEANUP(store_listing_release) struct store_listing listing = {0};
	CLEANUP(fixture_release) struct fixture f;

	(void)state;
	fixture_init(&f);
	touch(&f, "2026-11-21/17/1795280000000-10000-gil.pb.gz");
	touch(&f, "2026-11-21/17/1795280000000-300000-gil.merging.pb.gz");
	touch(&f, "2026-11-21/17/.1795280000000-300000-gil.merged.pb.gz.tmp");
	assert_int_equal(store_list(f.directory, &range, &listing), 0);
	assert_int_equal(listing.count, 2);
	assert_true(listing.entry[0].file.is_merging);
	assert_false(listing.entry[1].file.is_merged);
}

static void store_list__window_without_an_end(void **state)
{
	CLEANUP(fixture_release) struct fixture f = {0};
	uint64_t first_ms;

	(void)state;
	fixture_init(&f);
	touch(&f, "18446744073709551610-90-cpu.pb.gz");
	touch(&f, "7-3-cpu.pb.gz");
	assert_int_equal(
		count(&f, (struct store_range){.since_ms = UINT64_MAX - 1, .until_ms = UINT64_MAX},
		      &first_ms),
		1);
	assert_int_equal(first_ms, UINT64_MAX - 5);
	assert_int_equal(count(&f, (struct store_range){.since_ms = 9, .until_ms = 8}, &first_ms),
			 1);
	assert_int_equal(count(&f, (struct store_range){.since_ms = 11, .until_ms = 8}, &first_ms),
			 0);
	assert_int_equal(count(&f, (struct store_range){.since_ms = 0, .until_ms = 7}, &first_ms),
			 0);
}

static void store_list__out_of_descriptors_is_an_error(void **state)
{
	const struct store_range range = {.until_ms = UINT64_MAX};
	CLEANUP(fixture_release) struct fixture f = {0};
	struct store_listing listing;
	char name[32];

	(void)state;
	fixture_init(&f);
	for (int i = 0; i < 50; i++) { /* some come before the day's directory, wherever that is */
		snprintf(name, sizeof(name), "%d-1-cpu.pb.gz", i);
		touch(&f, name);
	}
	for (unsigned int more = 0; more <= 3; more++) {
		struct rlimit before = allow_files(more);
		int err = store_list(f.directory, &range, &listing);

		assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
		assert_int_equal(err, more < 3 ? -EMFILE : 0);
	}
	assert_int_equal(listing.count, 54);
	store_listing_release(&listing);
}

static void store_list__missing_directory_is_enoent(void **state)
{
	const struct store_range range = {.until_ms = UINT64_MAX};
	struct store_listing listing;

	(void)state;
	assert_int_equal(store_list("/nonexistent/store", &range, &listing), -ENOENT);
}

/* Renames one file of thousands, back and forth, until it is told to end. */
struct renamer {
	char name[2][128];
	useconds_t pause_us;
	atomic_bool has_to_end;
	unsigned int renames;
};

static void *rename_all_the_time(void *context)
{
	struct renamer *renamer = context;

	for (; !atomic_load(&renamer->has_to_end); renamer->renames++) {
		rename(renamer->name[renamer->renames % 2],
		       renamer->name[1 - renamer->renames % 2]);
		if (renamer->pause_us)
			usleep(renamer->pause_us);
	}
	return NULL;
}

/* Returns how many of so many listings missed the file; entry_most: of one listing. */
static unsigned int count_missed(const char *directory, unsigned int listings, size_t *entry_most)
{
	const struct store_range range = {.until_ms = UINT64_MAX, .kind = "gil"};
	unsigned int missed = 0;

	*entry_most = 0;
	for (unsigned int i = 0; i < listings; i++) {
		CLEANUP(store_listing_release) struct store_listing listing = {0};

		assert_int_equal(store_list(directory, &range, &listing), 0);
		missed += !listing.count;
		if (listing.count > *entry_most)
			*entry_most = listing.count;
	}
	return missed;
}

static void missed_while_renamed(useconds_t pause_us, unsigned int listings)
{
	CLEANUP(fixture_release) struct fixture f;
	struct renamer renamer = {.pause_us = pause_us};
	size_t entry_most;
	unsigned int missed;
	pthread_t thread;
	char name[128];

	fixture_init(&f);
	for (unsigned int i = 0; i < 4000; i++) {
		snprintf(name, sizeof(name), "2026-11-21/17/%u-10000-cpu.pb.gz", i);
		touch(&f, name);
	}
	touch(&f, "2026-11-21/17/2000-300000-gil.merging.pb.gz");
	snprintf(renamer.name[0], sizeof(renamer.name[0]),
		 "%s/2026-11-21/17/2000-300000-gil.merging.pb.gz", f.directory);
	snprintf(renamer.name[1], sizeof(renamer.name[1]),
		 "%s/2026-11-21/17/2000-300000-gil.merged.pb.gz", f.directory);
	assert_int_equal(pthread_create(&thread, NULL, rename_all_the_time, &renamer), 0);
	missed = count_missed(f.directory, listings, &entry_most);
	atomic_store(&renamer.has_to_end, true);
	pthread_join(thread, NULL);
	assert_true(renamer.renames > 10);
	assert_int_equal(missed, 0);
	assert_true(entry_most <= 2); /* each name once */
}

static void store_list__file_that_is_renamed_now_and_then_is_not_missed(void **state)
{
	(void)state;
	missed_while_renamed(3000, 20);
}

static void store_list__file_that_is_renamed_all_the_time_is_not_missed(void **state)
{
	(void)state;
	missed_while_renamed(0, 10);
}

/* [10, 20), and a range [since, until). */
static void store_list__window_that_ends_at_since_is_not_in_it(void **state)
{
	static const struct {
		uint64_t since_ms, until_ms, count;
	} cases[] = {{0, UINT64_MAX, 1}, {0, 10, 0},   {0, 11, 1},  {10, 11, 1}, {15, 16, 1},
		     {19, 20, 1},	 {20, 30, 0},  {21, 30, 0}, {5, 15, 1},	 {10, 20, 1},
		     {9, 21, 1},	 {19, 100, 1}, {0, 9, 0}};
	CLEANUP(fixture_release) struct fixture f = {0};
	uint64_t first_ms;

	(void)state;
	fixture_init(&f);
	touch(&f, "10-10-of.pb.gz");
	touch(&f, "30-0-nothing.pb.gz");
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		const struct store_range range = {
			.since_ms = cases[i].since_ms, .until_ms = cases[i].until_ms, .kind = "of"};

		if (count(&f, range, &first_ms) != cases[i].count)
			fail_msg("case %zu", i);
	}
	/* One that is shorter than a millisecond is where it begins. */
	for (uint64_t since_ms = 29; since_ms <= 31; since_ms++) {
		const struct store_range range = {
			.since_ms = since_ms, .until_ms = 31, .kind = "nothing"};

		assert_int_equal(count(&f, range, &first_ms), since_ms <= 30);
	}
}

/* DIR may be a link; the directories below it are not. */
static void store_list__follows_no_link_below_the_top(void **state)
{
	CLEANUP(fixture_release) struct fixture f = {0};
	struct fixture link;
	char path[256], other[256];
	uint64_t first_ms;

	(void)state;
	fixture_init(&f);
	snprintf(other, sizeof(other), "%s/2026-11-21", f.directory);
	snprintf(path, sizeof(path), "%s/2026-11-22", f.directory);
	assert_int_equal(symlink(other, path), 0);
	snprintf(path, sizeof(path), "%s/2026-11-21/17", f.directory);
	assert_int_equal(symlink("15", path), 0);
	assert_int_equal(count(&f, (struct store_range){.until_ms = UINT64_MAX}, &first_ms), 4);
	assert_true(snprintf(link.directory, sizeof(link.directory), "%s/top", f.directory) <
		    (int)sizeof(link.directory));
	assert_int_equal(symlink(f.directory, link.directory), 0);
	libc_begin();
	assert_int_equal(count(&link, (struct store_range){.until_ms = UINT64_MAX}, &first_ms), 4);
	assert_int_equal(common_flags & (O_DIRECTORY | O_CLOEXEC), O_DIRECTORY | O_CLOEXEC);
	assert_int_equal(bad_closes, 0);
}

/* A day, or an hour, that the agent deletes while we look at the store. */
static void store_list__directory_that_is_gone_is_passed_over(void **state)
{
	const struct store_range range = {.until_ms = UINT64_MAX};
	CLEANUP(fixture_release) struct fixture f = {0};
	struct store_listing listing;
	int next = next_descriptor();

	(void)state;
	fixture_init(&f);
	for (unsigned int skip = 1; skip <= 3; skip++) {
		CLEANUP(store_listing_release) struct store_listing some = {0};

		let_fail("open", ENOENT, skip, 1);
		assert_int_equal(store_list(f.directory, &range, &some), 0);
		/* The day; then the hour of three or that of one. */
		assert_true(skip == 1 ? some.count == 0 : some.count == 1 || some.count == 3);
		let_fail("open", EACCES, skip, 1);
		assert_int_equal(store_list(f.directory, &range, &listing), -EACCES);
	}
	failing.call = NULL;
	assert_int_equal(next_descriptor(), next);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(store_list__finds_windows_in_order),
		cmocka_unit_test(store_list__takes_windows_that_overlap),
		cmocka_unit_test(store_list__is_sorted_by_start_and_then_by_kind),
		cmocka_unit_test(store_list__merged_files_come_before_what_begins_with_them),
		cmocka_unit_test(store_list__window_without_an_end),
		cmocka_unit_test(store_list__file_that_is_renamed_now_and_then_is_not_missed),
		cmocka_unit_test(store_list__file_that_is_renamed_all_the_time_is_not_missed),
		cmocka_unit_test(store_list__out_of_descriptors_is_an_error),
		cmocka_unit_test(store_list__missing_directory_is_enoent),
		cmocka_unit_test(store_list__window_that_ends_at_since_is_not_in_it),
		cmocka_unit_test(store_list__follows_no_link_below_the_top),
		cmocka_unit_test(store_list__directory_that_is_gone_is_passed_over),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
