/* SPDX-License-Identifier: BSD-2-Clause */
#include "fixture.h"

#include "libc.h"

#include <dlfcn.h>
#include <sys/mount.h>
#include <sys/wait.h>

#include "base/cleanup.h"
#include "store/store.h"

#define USER 54321

/* Later than all, so that nothing is from the future. */
static const struct store_file nothing_kept = {.start_ms = UINT64_MAX, .kind = "none"};

/* Writes a file of that many bytes and the directories of its name. */
static void add(void **state, const char *name, int bytes)
{
	char path[PATH_CHARS], text[PATH_CHARS];

	in_directory(state, name, path);
	for (char *slash = strchr(path + strlen(*state) + 1, '/'); slash;
	     slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		(void)mkdir(path, 0755);
		*slash = '/';
	}
	snprintf(text, sizeof(text), "%0*d", bytes, 0);
	write_text(path, text);
}

static bool exists(void **state, const char *name)
{
	char path[PATH_CHARS];
	struct stat stat;

	return !lstat(in_directory(state, name, path), &stat);
}

static int open_top(void **state)
{
	int fd = open(*state, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	assert_true(fd >= 0);
	return fd;
}

/* Four files of ten bytes in three hours of two days, and what is in the way between them. */
static void fill(void **state)
{
	add(state, "2026-01-30/10/1000-1-cpu.pb.gz", 10);
	add(state, "2026-01-30/11", 10);
	add(state, "2026-01-30/12/2000-1-cpu.pb.gz", 10);
	add(state, "2026-01-30/12/2000-1-gil.pb.gz", 10);
	add(state, "2026-01-31", 10);
	add(state, "2026-02-01/00/3000-1-cpu.pb.gz", 10);
}

static void retention_count__files_in_place_of_directories_are_passed_over(void **state)
{
	OWNED_FD int fd = open_top(state);
	struct retention_totals totals = {0};
	char path[PATH_CHARS];

	fill(state);
	assert_int_equal(symlink("2026-01-30", in_directory(state, "2026-01-29", path)), 0);
	assert_int_equal(symlink("10", in_directory(state, "2026-01-30/09", path)), 0);
	assert_int_equal(retention_count(fd, 0, &totals), 0);
	assert_int_equal(totals.files, 4);
	assert_int_equal(totals.bytes, 40);
}

/* Runs as a user whom modes bind; returns what `run` returns. */
static int as_user(void **state, int (*run)(int fd, struct retention_totals *totals),
		   struct retention_totals *ret_totals)
{
	struct {
		struct retention_totals totals;
		int err;
	} result = {0};
	int ends[2], status;
	pid_t child;

	assert_int_equal(chmod(*state, 0755), 0);
	assert_int_equal(pipe(ends), 0);
	child = fork();
	assert_true(child >= 0);
	if (!child) {
		int fd = setresuid(USER, USER, USER) ? -1 : open(*state, O_RDONLY | O_DIRECTORY);

		result.err = fd < 0 ? -EXDEV : run(fd, &result.totals);
		_exit(write(ends[1], &result, sizeof(result)) != sizeof(result));
	}
	assert_int_equal(read(ends[0], &result, sizeof(result)), sizeof(result));
	assert_int_equal(waitpid(child, &status, 0), child);
	close(ends[0]);
	close(ends[1]);
	*ret_totals = result.totals;
	return result.err;
}

static int count_all(int fd, struct retention_totals *totals)
{
	return retention_count(fd, 0, totals);
}

static void retention_count__directory_that_may_not_be_read_is_passed_over(void **state)
{
	struct retention_totals totals = {0};
	char path[PATH_CHARS];

	if (geteuid()) {
		print_message("skipped: only root can become somebody else\n");
		skip();
	}
	fill(state);
	assert_int_equal(chmod(in_directory(state, "2026-01-30/10", path), 0), 0);
	assert_int_equal(as_user(state, count_all, &totals), 0);
	assert_int_equal(totals.files, 3);
	assert_int_equal(chmod(in_directory(state, "2026-01-30", path), 0), 0);
	assert_int_equal(as_user(state, count_all, &totals), 0);
	assert_int_equal(totals.files, 1);
}

/* An error that is not the directory's own is told: what was counted is not all. */
static void retention_count__out_of_descriptors_is_an_error(void **state)
{
	OWNED_FD int fd = open_top(state);
	struct retention_totals totals = {.files = 77};

	fill(state);
	/* A day, its hour, and the list of its files. */
	for (unsigned int more = 1; more <= 3; more++) {
		struct rlimit before = allow_files(more);
		int err = retention_count(fd, 0, &totals);

		assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
		if (more < 3)
			assert_int_equal(err, -EMFILE);
		else
			assert_int_equal(err, 0);
		assert_int_equal(totals.files, more < 3 ? 77 : 4);
	}
}

static void retention_count__temporary_files_go_when_they_are_stale(void **state)
{
	const struct timespec at[2] = {{.tv_sec = 1000}, {.tv_sec = 1000}};
	OWNED_FD int fd = open_top(state);
	struct retention_totals totals = {0};
	char path[PATH_CHARS];

	add(state, "2026-01-30/10/.7-1-cpu.pb.gz.tmp", 10);
	in_directory(state, "2026-01-30/10/.7-1-cpu.pb.gz.tmp", path);
	assert_int_equal(utimensat(AT_FDCWD, path, at, 0), 0);
	assert_int_equal(retention_count(fd, 1000, &totals), 0);
	assert_true(exists(state, "2026-01-30/10/.7-1-cpu.pb.gz.tmp"));
	assert_int_equal(retention_count(fd, 1001, &totals), 0);
	assert_false(exists(state, "2026-01-30/10/.7-1-cpu.pb.gz.tmp"));
	assert_int_equal(totals.files, 0);
	assert_int_equal(totals.bytes, 0);
}

/* From the oldest on, until what is left is no more than the bound; empty hours and days go,
 * too. */
static void retention_trim__deletes_until_the_bound_and_no_more(void **state)
{
	static const struct {
		uint64_t max_bytes, deleted;
	} cases[] = {{40, 0}, {39, 1}, {30, 1}, {29, 2}, {20, 2}, {19, 3}, {10, 3}, {9, 4}, {0, 4}};
	static const char *const order[] = {"2026-01-30/10/1000-1-cpu.pb.gz",
					    "2026-01-30/12/2000-1-cpu.pb.gz",
					    "2026-01-30/12/2000-1-gil.pb.gz",
					    "2026-02-01/00/3000-1-cpu.pb.gz"};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		OWNED_FD int fd = open_top(state);
		struct retention_totals totals = {.files = 4, .bytes = 40};
		uint64_t deleted = 77;

		fill(state);
		assert_int_equal(retention_trim(fd, cases[i].max_bytes, &nothing_kept, &totals,
						&deleted),
				 0);
		assert_int_equal(deleted, cases[i].deleted);
		assert_int_equal(totals.files, 4 - deleted);
		assert_int_equal(totals.bytes, 40 - 10 * deleted);
		for (size_t k = 0; k < 4; k++)
			assert_int_equal(exists(state, order[k]), k >= deleted);
		assert_int_equal(exists(state, "2026-01-30/10"), deleted < 1);
		assert_int_equal(exists(state, "2026-01-30/12"), deleted < 3);
		assert_int_equal(exists(state, "2026-02-01"), deleted < 4);
		assert_true(exists(state, "2026-01-30/11"));
		assert_true(exists(state, "2026-01-31"));
		for (size_t k = 0; k < 4; k++) {
			char path[PATH_CHARS];

			unlink(in_directory(state, order[k], path));
		}
		unlink("2026-01-31");
	}
}

/* Start, duration and kind together are a file's name. */
static void retention_trim__keeps_the_one_that_was_just_written(void **state)
{
	const struct store_file keep = {.start_ms = 5, .duration_ms = 6, .kind = "cpu"};
	OWNED_FD int fd = open_top(state);
	struct retention_totals totals = {.files = 5, .bytes = 50};
	uint64_t deleted;

	add(state, "2026-01-30/10/5-6-cpu.pb.gz", 10);
	add(state, "2026-01-30/10/5-6-gil.pb.gz", 10);
	add(state, "2026-01-30/10/5-7-cpu.pb.gz", 10);
	add(state, "2026-01-30/10/4-6-cpu.pb.gz", 10);
	add(state, "2026-01-30/10/.5-6-gil.pb.gz.tmp", 10);
	assert_int_equal(retention_trim(fd, 0, &keep, &totals, &deleted), 0);
	assert_int_equal(deleted, 3);
	assert_true(exists(state, "2026-01-30/10/5-6-cpu.pb.gz"));
	assert_true(exists(state, "2026-01-30/10/.5-6-gil.pb.gz.tmp"));
}

/* The clock was a year ahead, and was set back: what was written then is older than all that is
 * written now, whatever its name says. */
static void retention_trim__files_from_the_future_go_before_what_was_written_since(void **state)
{
	static const char *const order[] = {"2027-01-30/10/31536003000-1-cpu.pb.gz",
					    "2027-01-30/11/31536004000-1-cpu.pb.gz",
					    "2026-01-30/10/1000-1-cpu.pb.gz",
					    "2026-01-30/10/2000-1-cpu.pb.gz"};
	/* Of the same window, and one of the same name moved on. */
	static const char *const stay[] = {"2026-01-30/10/3000-10-cpu.pb.gz",
					   "2026-01-30/10/3000-10-gil.pb.gz",
					   "2026-01-30/10/4010-10-gil.pb.gz"};
	const struct store_file keep = {.start_ms = 3000, .duration_ms = 10, .kind = "cpu"};
	OWNED_FD int fd = open_top(state);

	for (uint64_t gone = 1; gone <= ARRAY_SIZE(order); gone++) {
		struct retention_totals totals = {.files = 7, .bytes = 70};
		uint64_t deleted;

		for (size_t i = 0; i < ARRAY_SIZE(order); i++)
			add(state, order[i], 10);
		for (size_t i = 0; i < ARRAY_SIZE(stay); i++)
			add(state, stay[i], 10);
		assert_int_equal(retention_trim(fd, 70 - 10 * gone, &keep, &totals, &deleted), 0);
		assert_int_equal(deleted, gone);
		for (size_t i = 0; i < ARRAY_SIZE(order); i++)
			assert_int_equal(exists(state, order[i]), i >= gone);
		for (size_t i = 0; i < ARRAY_SIZE(stay); i++)
			assert_true(exists(state, stay[i]));
		assert_int_equal(exists(state, "2027-01-30"), gone < 2);
	}
}

/* The totals were those of a count; files may have grown or come since. */
static void retention_trim__totals_do_not_fall_below_nothing(void **state)
{
	OWNED_FD int fd = open_top(state);
	struct retention_totals totals = {.files = 0, .bytes = 4};
	uint64_t deleted;

	add(state, "2026-01-30/10/5-6-cpu.pb.gz", 10);
	assert_int_equal(retention_trim(fd, 3, &nothing_kept, &totals, &deleted), 0);
	assert_int_equal(deleted, 1);
	assert_int_equal(totals.files, 0);
	assert_int_equal(totals.bytes, 0);
}

static void retention_trim__file_that_cannot_be_deleted_is_an_error(void **state)
{
	struct retention_totals totals = {.files = 4, .bytes = 40};
	uint64_t deleted = 77;
	int fd, err;

	if (mount("tmpfs", *state, "tmpfs", MS_NOSUID | MS_NODEV, "size=256k,mode=0700")) {
		print_message("skipped: cannot mount a tmpfs: %s\n", strerror(errno));
		skip();
	}
	fill(state);
	fd = open_top(state);
	assert_int_equal(mount("tmpfs", *state, "tmpfs", MS_REMOUNT | MS_RDONLY, "size=256k"), 0);
	err = retention_trim(fd, 0, &nothing_kept, &totals, &deleted);
	close(fd);
	assert_int_equal(umount2(*state, MNT_DETACH), 0);
	assert_int_equal(err, -EROFS);
	assert_int_equal(deleted, 0);
	assert_int_equal(totals.files, 4);
}

/* Whatever has the name of a file: directories and links are neither counted nor deleted. */
static void retention__leaves_alone_what_is_no_file(void **state)
{
	OWNED_FD int fd = open_top(state);
	struct retention_totals totals = {0};
	uint64_t deleted;
	char path[PATH_CHARS];

	fill(state);
	assert_int_equal(mkdir(in_directory(state, "2026-01-30/10/7-1-cpu.pb.gz", path), 0700), 0);
	assert_int_equal(symlink("1000-1-cpu.pb.gz",
				 in_directory(state, "2026-01-30/10/8-1-cpu.pb.gz", path)),
			 0);
	assert_int_equal(retention_count(fd, 0, &totals), 0);
	assert_int_equal(totals.files, 4);
	assert_int_equal(totals.bytes, 40);
	assert_int_equal(retention_trim(fd, 0, &nothing_kept, &totals, &deleted), 0);
	assert_int_equal(deleted, 4);
	assert_true(exists(state, "2026-01-30/10/7-1-cpu.pb.gz"));
	assert_true(exists(state, "2026-01-30/10/8-1-cpu.pb.gz"));
	assert_false(exists(state, "2026-02-01"));
}

/* Whoever is about to write into a new directory shall still have it. */
static void retention_count__removes_no_directory(void **state)
{
	OWNED_FD int fd = open_top(state);
	struct retention_totals totals = {0};
	char path[PATH_CHARS];
	int next = next_descriptor();

	libc_begin();
	assert_int_equal(mkdir(in_directory(state, "2026-01-30", path), 0700), 0);
	assert_int_equal(mkdir(in_directory(state, "2026-01-30/10", path), 0700), 0);
	assert_int_equal(mkdir(in_directory(state, "2026-01-31", path), 0700), 0);
	assert_int_equal(retention_count(fd, 0, &totals), 0);
	assert_int_equal(totals.files, 0);
	assert_true(exists(state, "2026-01-30/10"));
	assert_true(exists(state, "2026-01-31"));
	assert_int_equal(next_descriptor(), next);
	assert_int_equal(bad_closes, 0);
}

/* The first day, the first hour: gone, or not for us. */
static void retention_count__directory_that_cannot_be_opened_is_passed_over(void **state)
{
	static const int errs[] = {ENOENT, ENOTDIR, ELOOP, EACCES};
	OWNED_FD int fd = open_top(state);

	fill(state);
	for (size_t i = 0; i < ARRAY_SIZE(errs); i++) {
		struct retention_totals totals = {0};

		/* The top, then the first day. */
		let_fail("open", errs[i], 1, 1);
		assert_int_equal(retention_count(fd, 0, &totals), 0);
		assert_int_equal(totals.files, 1);
		/* Its names, and the first of its hours. */
		let_fail("open", errs[i], 3, 1);
		assert_int_equal(retention_count(fd, 0, &totals), 0);
		assert_int_equal(totals.files, 3);
		let_fail("open", EIO, i, 1);
		assert_int_equal(retention_count(fd, 0, &totals), -EIO);
		assert_int_equal(totals.files, 3);
	}
	failing.call = NULL;
}

/* Somebody else deletes the same files. */
static void retention_trim__file_that_is_gone_is_no_error(void **state)
{
	OWNED_FD int fd = open_top(state);
	struct retention_totals totals = {.files = 4, .bytes = 40};
	uint64_t deleted;

	fill(state);
	let_fail("unlinkat", ENOENT, 0, 1);
	assert_int_equal(retention_trim(fd, 30, &nothing_kept, &totals, &deleted), 0);
	assert_int_equal(deleted, 1);
	assert_int_equal(totals.bytes, 30);
	assert_false(exists(state, "2026-01-30/12/2000-1-cpu.pb.gz"));
	assert_true(exists(state, "2026-01-30/12/2000-1-gil.pb.gz"));
	let_fail("unlinkat", ENOENT, 0, 1);
	assert_int_equal(retention_trim(fd, 20, &nothing_kept, &totals, &deleted), 0);
	assert_int_equal(deleted, 1);
	assert_false(exists(state, "2026-02-01/00/3000-1-cpu.pb.gz"));
	failing.call = NULL;
}

static bool is_endless;
static unsigned int entries_read;

struct dirent *readdir(DIR *dir)
{
	static struct dirent other = {.d_name = "other"};
	struct dirent *(*next)(DIR *) = (struct dirent * (*)(DIR *)) dlsym(RTLD_NEXT, "readdir");

	entries_read++;
	return is_endless ? &other : next(dir);
}

static void retention_count__looks_at_100000_names_of_a_directory(void **state)
{
	OWNED_FD int fd = open_top(state);
	struct retention_totals totals = {.files = 77};

	is_endless = true;
	entries_read = 0;
	assert_int_equal(retention_count(fd, 0, &totals), 0);
	is_endless = false;
	assert_int_equal(entries_read, 100000);
	assert_int_equal(totals.files, 0);
}

static int unmount_and_remove_directory(void **state)
{
	umount2(*state, MNT_DETACH); /* left by a failed assertion */
	return remove_directory(state);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make_directory, remove_directory)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(retention_count__files_in_place_of_directories_are_passed_over),
		TEST(retention_count__directory_that_may_not_be_read_is_passed_over),
		TEST(retention_count__out_of_descriptors_is_an_error),
		TEST(retention_count__temporary_files_go_when_they_are_stale),
		TEST(retention_trim__deletes_until_the_bound_and_no_more),
		TEST(retention_trim__keeps_the_one_that_was_just_written),
		TEST(retention_trim__files_from_the_future_go_before_what_was_written_since),
		TEST(retention_trim__totals_do_not_fall_below_nothing),
		TEST(retention__leaves_alone_what_is_no_file),
		TEST(retention_count__removes_no_directory),
		TEST(retention_count__directory_that_cannot_be_opened_is_passed_over),
		TEST(retention_trim__file_that_is_gone_is_no_error),
		TEST(retention_count__looks_at_100000_names_of_a_directory),
		cmocka_unit_test_setup_teardown(
			retention_trim__file_that_cannot_be_deleted_is_an_error, make_directory,
			unmount_and_remove_directory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
