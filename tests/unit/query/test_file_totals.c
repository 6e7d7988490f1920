/* SPDX-License-Identifier: BSD-2-Clause */
/* Real profiles in a directory; whether a file is read again is told by what it has meanwhile, with
 * the same inode, size and time. */
#include "query/file_totals.h"

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "pprof/pprof.h"
#include "profile/comments.h"
#include "profile/profile_data.h"

#define LONG_NS 60000000000ULL
#define FILES_MAX 16U

struct fixture {
	char directory[64];
	char *path[FILES_MAX]; /* owned */
	unsigned int files;
	struct file_totals *totals;
	/* of the last call */
	struct file_totals_state state;
	int64_t known;
	uint64_t known_windows, pending_ms, left_out_ms;
};

static void fixture_init(struct fixture *f, uint32_t windows_max)
{
	*f = (struct fixture){.directory = "/tmp/test_totals.XXXXXX"};
	assert_non_null(mkdtemp(f->directory));
	assert_int_equal(file_totals_new(windows_max, &f->totals), 0);
}

static void fixture_release(struct fixture *f)
{
	for (unsigned int i = 0; i < f->files; i++) {
		unlink(f->path[i]);
		free(f->path[i]);
	}
	rmdir(f->directory);
	file_totals_free(f->totals);
}

static const char *path_of(struct fixture *f, const char *name)
{
	assert_true(f->files < FILES_MAX);
	assert_true(asprintf(&f->path[f->files], "%s/%s", f->directory, name) > 0);
	return f->path[f->files++];
}

/* The same path gets the same inode and, as nothing is compressed away, about the same size. */
static void write_bytes(const char *path, const void *bytes, size_t size)
{
	int fd = open(path, O_CREAT | O_WRONLY | O_TRUNC | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, bytes, size), size);
	close(fd);
}

static void add_row(struct profile *profile, const struct profile_label *label, size_t labels,
		    int64_t value)
{
	const int64_t values[] = {1, value};
	uint32_t stack, set, row;

	assert_int_equal(profile_add_stack(profile, NULL, 0, &stack), 0);
	assert_int_equal(profile_add_label_set(profile, label, labels, &set), 0);
	assert_int_equal(profile_add_row(profile, stack, set, values, &row), 0);
}

/* Adds a window of 10 to a merged file, with its mark. */
static void add_window(struct profile *profile, uint64_t first_ms, uint64_t start_ms, int64_t value)
{
	const struct window_mark mark = {.offset_ms = start_ms - first_ms,
					 .start_ms = start_ms,
					 .duration_ms = 10,
					 .start_wall_ns = start_ms * 1000000,
					 .duration_ns = 10000000,
					 .period = 1};
	const struct profile_label label = {.key = WINDOW_LABEL,
					    .unit = WINDOW_LABEL_UNIT,
					    .is_number = 1,
					    .number = (int64_t)mark.offset_ms};
	char text[WINDOW_MARK_CHARS];

	window_mark_format(&mark, text);
	assert_int_equal(profile_add_comment(profile, text), 0);
	if (value)
		add_row(profile, &label, 1, value);
}

/* Writes a profile of cpu: one window with values[0], or a merged one of several windows of 10. */
static void write_profile(const char *path, const char *kind, uint64_t start_ms,
			  const int64_t *values, size_t windows)
{
	const struct profile_options options = {.kind = kind,
						.value_type = {{"samples", "count"},
							       {"cpu", "nanoseconds"}},
						.value_count = 2,
						.default_value_type = "cpu",
						.period_type = {"cpu", "nanoseconds"},
						.period = 1,
						.start_wall_ns = start_ms * 1000000,
						.duration_ns = 10000000};
	struct intern *strings = NULL;
	struct profile *profile = NULL;
	void *bytes;
	size_t size;

	assert_int_equal(intern_new(&strings), 0);
	assert_int_equal(profile_new(&options, strings, &profile), 0);
	if (windows == 1)
		add_row(profile, NULL, 0, values[0]);
	for (size_t i = 0; windows > 1 && i < windows; i++)
		add_window(profile, start_ms, start_ms + 10 * i, values[i]);
	assert_int_equal(profile_encode_pprof(profile, &bytes, &size), 0);
	write_bytes(path, bytes, size);
	free(bytes);
	profile_free(profile);
	intern_free(strings);
}

/* A file of one window of cpu. */
static const char *put(struct fixture *f, const char *name, uint64_t start_ms, int64_t value)
{
	const char *path = path_of(f, name);

	write_profile(path, "cpu", start_ms, &value, 1);
	return path;
}

/* ---- calls ---- */

static void known(void *context, uint64_t start_ms, uint64_t duration_ms, int64_t value)
{
	struct fixture *f = context;

	assert_true(start_ms && duration_ms);
	f->known += value;
	f->known_windows++;
}

static void pending(void *context, uint64_t start_ms, uint64_t duration_ms)
{
	(void)start_ms;
	((struct fixture *)context)->pending_ms += duration_ms;
}

static void left_out(void *context, uint64_t start_ms, uint64_t duration_ms)
{
	(void)start_ms;
	((struct fixture *)context)->left_out_ms += duration_ms;
}

static int64_t ask(struct fixture *f, const char *kind, uint64_t since_ms, uint64_t until_ms,
		   uint64_t budget_ns)
{
	const struct store_range range = {.since_ms = since_ms, .until_ms = until_ms};
	const struct file_totals_calls calls = {
		.known = known, .pending = pending, .left_out = left_out, .context = f};

	f->known = 0;
	f->known_windows = f->pending_ms = f->left_out_ms = 0;
	assert_int_equal(file_totals_read(f->totals, f->directory, kind, &range, budget_ns, &calls,
					  &f->state),
			 0);
	return f->known;
}

static int64_t ask_all(struct fixture *f)
{
	return ask(f, "cpu", 0, UINT64_MAX, LONG_NS);
}

/* Gives a file other bytes without a trace: same inode, size and time. */
static void spoil(const char *path)
{
	struct stat status;
	char *zeros;
	int fd;

	assert_int_equal(stat(path, &status), 0);
	zeros = calloc(1, (size_t)status.st_size);
	assert_non_null(zeros);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, zeros, (size_t)status.st_size), status.st_size);
	assert_int_equal(futimens(fd, (const struct timespec[]){status.st_atim, status.st_mtim}),
			 0);
	close(fd);
	free(zeros);
}

/* ---- tests ---- */

static void file__is_read_once_whatever_its_name(void **state)
{
	CLEANUP(fixture_release) struct fixture f;
	const char *path;

	(void)state;
	fixture_init(&f, FILE_TOTALS_WINDOWS_MAX);
	path = put(&f, "1000-10-cpu.pb.gz", 1000, 7);
	put(&f, "1010-10-cpu.pb.gz", 1010, 5);
	assert_int_equal(ask_all(&f), 12);
	assert_string_equal(f.state.unit, "nanoseconds");
	assert_int_equal(f.state.files, 2);
	spoil(path);
	assert_int_equal(ask_all(&f), 12);
	assert_int_equal(rename(path, path_of(&f, "1000-10-cpu.pb.gz.")), 0);
	assert_int_equal(ask_all(&f), 5);
	assert_int_equal(rename(f.path[2], path), 0);
	assert_int_equal(ask(&f, "cpu", 0, UINT64_MAX, 0), 12);
}

static void file__that_changes_is_read_again(void **state)
{
	CLEANUP(fixture_release) struct fixture f;
	const char *path;
	struct stat status;

	(void)state;
	fixture_init(&f, FILE_TOTALS_WINDOWS_MAX);
	path = put(&f, "1000-10-cpu.pb.gz", 1000, 7);
	assert_int_equal(ask_all(&f), 7);
	write_profile(path, "cpu", 1000, &(int64_t){9}, 1);
	/* The clock of a file system goes in steps. */
	assert_int_equal(stat(path, &status), 0);
	status.st_mtim.tv_sec++;
	assert_int_equal(utimensat(AT_FDCWD, path,
				   (const struct timespec[]){status.st_atim, status.st_mtim}, 0),
			 0);
	assert_int_equal(ask_all(&f), 9);
}

static void budget__leaves_files_pending_and_the_next_call_goes_on(void **state)
{
	CLEANUP(fixture_release) struct fixture f;

	(void)state;
	fixture_init(&f, FILE_TOTALS_WINDOWS_MAX);
	put(&f, "1000-10-cpu.pb.gz", 1000, 7);
	put(&f, "1010-10-cpu.pb.gz", 1010, 5);
	assert_int_equal(ask(&f, "cpu", 0, UINT64_MAX, 0), 0);
	assert_int_equal(f.state.pending, 2);
	assert_int_equal(f.pending_ms, 20);
	assert_int_equal(ask(&f, "cpu", 1010, UINT64_MAX, LONG_NS), 5);
	assert_int_equal(ask(&f, "cpu", 0, UINT64_MAX, 0), 5);
	assert_int_equal(f.state.pending, 1);
	assert_int_equal(ask_all(&f), 12);
	assert_int_equal(f.state.pending, 0);
}

/* The newest are kept; who asks again gets the same, and is told how much is missing. */
static void bound__leaves_the_oldest_out_for_good(void **state)
{
	CLEANUP(fixture_release) struct fixture f;

	(void)state;
	fixture_init(&f, 2);
	put(&f, "1000-10-cpu.pb.gz", 1000, 1);
	put(&f, "1010-15-cpu.pb.gz", 1010, 2);
	put(&f, "1030-10-cpu.pb.gz", 1030, 4);
	put(&f, "1040-10-cpu.pb.gz", 1040, 8);
	for (unsigned int i = 0; i < 3; i++) {
		assert_int_equal(ask_all(&f), 12);
		assert_int_equal(f.state.left_out, 2);
		assert_int_equal(f.left_out_ms, 25);
		assert_int_equal(f.state.pending, 0);
		assert_int_equal(f.pending_ms, 0);
	}
}

static void bound__forgets_what_is_not_asked_for(void **state)
{
	CLEANUP(fixture_release) struct fixture f;
	const char *old;

	(void)state;
	fixture_init(&f, 2);
	old = put(&f, "1000-10-cpu.pb.gz", 1000, 1);
	put(&f, "1010-10-cpu.pb.gz", 1010, 2);
	put(&f, "1020-10-cpu.pb.gz", 1020, 4);
	put(&f, "1030-10-cpu.pb.gz", 1030, 8);
	assert_int_equal(ask(&f, "cpu", 0, 1020, LONG_NS), 3);
	assert_int_equal(ask(&f, "cpu", 1020, UINT64_MAX, LONG_NS), 12);
	assert_int_equal(f.left_out_ms, 0);
	/* It would be read again. */
	spoil(old);
	assert_int_equal(ask(&f, "cpu", 0, 1020, LONG_NS), 2);
	assert_int_equal(f.state.broken, 1);
}

static void file__that_is_broken_is_counted_and_not_tried_again(void **state)
{
	CLEANUP(fixture_release) struct fixture f;

	(void)state;
	fixture_init(&f, FILE_TOTALS_WINDOWS_MAX);
	put(&f, "1000-10-cpu.pb.gz", 1000, 7);
	write_bytes(path_of(&f, "1010-10-cpu.pb.gz"), "no profile", 10);
	assert_int_equal(ask_all(&f), 7);
	assert_int_equal(f.state.broken, 1);
	assert_int_equal(f.pending_ms, 0);
	assert_int_equal(ask(&f, "cpu", 0, UINT64_MAX, 0), 7);
	assert_int_equal(f.state.broken, 1);
	assert_int_equal(f.state.pending, 0);
}

/* A socket under the name of a profile: nobody can open it, root neither. */
static void file__that_cannot_be_opened_is_counted_and_not_pending(void **state)
{
	CLEANUP(fixture_release) struct fixture f;
	const char *path;

	(void)state;
	fixture_init(&f, FILE_TOTALS_WINDOWS_MAX);
	put(&f, "1000-10-cpu.pb.gz", 1000, 7);
	path = path_of(&f, "1010-10-cpu.pb.gz");
	assert_int_equal(mknod(path, S_IFSOCK | 0600, 0), 0);
	for (unsigned int i = 0; i < 2; i++) {
		assert_int_equal(ask(&f, "cpu", 0, UINT64_MAX, i ? 0 : LONG_NS), 7);
		assert_int_equal(f.state.unreadable, 1);
		assert_int_equal(f.state.pending, 0);
		assert_int_equal(f.pending_ms, 0);
	}
	/* With other rights it may be another story: it is tried again. */
	assert_int_equal(chmod(path, 0640), 0);
	assert_int_equal(ask(&f, "cpu", 0, UINT64_MAX, 0), 7);
	assert_int_equal(f.state.unreadable, 0);
	assert_int_equal(f.state.pending, 1);
}

static void file__that_vanishes_is_nothing(void **state)
{
	CLEANUP(fixture_release) struct fixture f;
	const char *path;

	(void)state;
	fixture_init(&f, FILE_TOTALS_WINDOWS_MAX);
	path = put(&f, "1000-10-cpu.pb.gz", 1000, 7);
	put(&f, "1010-10-cpu.pb.gz", 1010, 5);
	assert_int_equal(ask_all(&f), 12);
	unlink(path);
	assert_int_equal(ask_all(&f), 5);
	assert_int_equal(f.state.unreadable + f.state.broken + f.state.pending, 0);
}

static void merged_file__has_several_windows(void **state)
{
	static const int64_t values[] = {1, 0, 4};
	CLEANUP(fixture_release) struct fixture f;

	(void)state;
	fixture_init(&f, FILE_TOTALS_WINDOWS_MAX);
	write_profile(path_of(&f, "1000-30-cpu.merged.pb.gz"), "cpu", 1000, values, 3);
	assert_int_equal(ask_all(&f), 5);
	assert_int_equal(f.known_windows, 3);
	assert_int_equal(ask(&f, "cpu", 1020, UINT64_MAX, 0), 4);
	assert_int_equal(f.known_windows, 1);
}

/* The windows of a kind without a file there are known by cpu's, which is opened within the budget
 * and once. */
static void windows__of_cpu_alone_are_listed_within_the_budget(void **state)
{
	static const int64_t values[] = {1, 2, 4};
	CLEANUP(fixture_release) struct fixture f;
	const char *path;

	(void)state;
	fixture_init(&f, FILE_TOTALS_WINDOWS_MAX);
	path = path_of(&f, "1000-30-cpu.merged.pb.gz");
	write_profile(path, "cpu", 1000, values, 3);
	assert_int_equal(ask(&f, "gil", 0, UINT64_MAX, 0), 0);
	assert_int_equal(f.known_windows, 0);
	assert_int_equal(f.pending_ms, 30);
	assert_int_equal(ask(&f, "gil", 0, UINT64_MAX, LONG_NS), 0);
	assert_int_equal(f.known_windows, 3);
	assert_int_equal(f.pending_ms, 0);
	/* What it lists is not what it has. */
	assert_int_equal(ask(&f, "cpu", 0, UINT64_MAX, 0), 0);
	assert_int_equal(f.state.pending, 1);
	assert_int_equal(ask_all(&f), 7);
	spoil(path);
	assert_int_equal(ask(&f, "gil", 0, UINT64_MAX, LONG_NS), 0);
	assert_int_equal(f.known_windows, 3);
}

static void wall__has_no_files(void **state)
{
	static const struct store_range all = {.until_ms = UINT64_MAX};
	static const struct file_totals_calls none = {.known = known};
	CLEANUP(fixture_release) struct fixture f;

	(void)state;
	fixture_init(&f, FILE_TOTALS_WINDOWS_MAX);
	assert_int_equal(file_totals_read(f.totals, f.directory, "wall", &all, 0, &none, &f.state),
			 -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(file__is_read_once_whatever_its_name),
		cmocka_unit_test(file__that_changes_is_read_again),
		cmocka_unit_test(budget__leaves_files_pending_and_the_next_call_goes_on),
		cmocka_unit_test(bound__leaves_the_oldest_out_for_good),
		cmocka_unit_test(bound__forgets_what_is_not_asked_for),
		cmocka_unit_test(file__that_is_broken_is_counted_and_not_tried_again),
		cmocka_unit_test(file__that_cannot_be_opened_is_counted_and_not_pending),
		cmocka_unit_test(file__that_vanishes_is_nothing),
		cmocka_unit_test(merged_file__has_several_windows),
		cmocka_unit_test(windows__of_cpu_alone_are_listed_within_the_budget),
		cmocka_unit_test(wall__has_no_files),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
