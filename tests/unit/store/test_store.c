/* SPDX-License-Identifier: BSD-2-Clause */
#include "fixture.h"

#include "base/clock.h"
#include "libc.h"

#include <sys/mount.h>
#include <time.h>

#include "store/kept.h"
#include "store/store.h"

/* 2026-01-31T22:59:50Z, by `date -u -d @1769900390`. */
#define START_NS 1769900390000000000ULL
#define SECOND_NS 1000000000ULL
#define WINDOW_NS (10 * SECOND_NS)
#define WINDOW_MS 10000
#define HOUR_NS (3600 * SECOND_NS)

static const struct store_limits no_limits;

/* How far CLOCK_MONOTONIC is ahead of the machine's. */
static uint64_t ahead_s;

int clock_gettime(clockid_t clock, struct timespec *time)
{
	const int result = (int)syscall(SYS_clock_gettime, clock, time);

	if (clock == CLOCK_MONOTONIC)
		time->tv_sec += (time_t)ahead_s;
	return result;
}

static void open_store(void **state, uint64_t max_bytes, struct store **ret_store)
{
	const struct store_limits limits = {.max_bytes = max_bytes};

	assert_int_equal(store_open(*state, &limits, ret_store), 0);
}

static void put(struct store *store, uint64_t start_ns, const char *text)
{
	assert_int_equal(store_put(store, "cpu", start_ns, WINDOW_NS, text, strlen(text), NULL), 0);
}

static bool exists(void **state, const char *name)
{
	char path[PATH_CHARS];
	struct stat stat;

	return !lstat(in_directory(state, name, path), &stat);
}

static void store_put__name_holds_utc_start_duration_and_kind(void **state)
{
	OWNED(store) struct store *store = NULL;
	OWNED_MEM char *path = NULL;
	char expected[PATH_CHARS];
	struct store_stats stats;

	open_store(state, 0, &store);
	assert_int_equal(store_put(store, "gil_wait", START_NS + 7, WINDOW_NS, "bytes", 5, &path),
			 0);
	in_directory(state, "2026-01-31/22/1769900390000-10000-gil_wait.pb.gz", expected);
	assert_string_equal(path, expected);
	assert_content(path, "bytes");
	store_get_stats(store, &stats);
	assert_int_equal(stats.files, 1);
	assert_int_equal(stats.bytes, 5);
}

static void store_put__modes_do_not_depend_on_the_umask(void **state)
{
	static const mode_t umasks[] = {0, 0777};

	for (size_t i = 0; i < ARRAY_SIZE(umasks); i++) {
		OWNED(store) struct store *store = NULL;
		OWNED_MEM char *path = NULL;
		char directory[PATH_CHARS], below[PATH_CHARS + 32];
		char name[] = "store-0";
		mode_t old = umask(umasks[i]);

		name[6] = (char)('0' + i);
		in_directory(state, name, directory);
		assert_int_equal(store_open(directory, &no_limits, &store), 0);
		assert_int_equal(store_put(store, "cpu", START_NS, WINDOW_NS, "x", 1, &path), 0);
		umask(old);
		assert_mode(directory, 0750);
		snprintf(below, sizeof(below), "%s/2026-01-31", directory);
		assert_mode(below, 0750);
		snprintf(below, sizeof(below), "%s/2026-01-31/22", directory);
		assert_mode(below, 0750);
		assert_mode(path, 0640);
		snprintf(below, sizeof(below), "%s/.lock", directory);
		assert_mode(below, 0640);
	}
}

static void store_put__taken_name_is_not_replaced(void **state)
{
	OWNED(store) struct store *store = NULL;
	OWNED_MEM char *first = NULL;
	OWNED_MEM char *second = NULL;

	open_store(state, 0, &store);
	assert_int_equal(store_put(store, "cpu", START_NS, WINDOW_NS, "one", 3, &first), 0);
	assert_int_equal(store_put(store, "cpu", START_NS, WINDOW_NS, "two", 3, &second), 0);
	assert_content(first, "one");
	assert_content(second, "two");
	assert_non_null(strstr(second, "/1769900390001-10000-cpu.pb.gz"));
}

/* The clock was set back by a second, a thousand times: no older window is written over. */
static void store_put__thousand_taken_names_are_tried(void **state)
{
	OWNED(store) struct store *store = NULL;
	char path[PATH_CHARS], name[96];

	open_store(state, 0, &store);
	put(store, START_NS, "first");
	for (unsigned int i = 1; i < 1000; i++) {
		snprintf(name, sizeof(name), "2026-01-31/22/%llu-10000-cpu.pb.gz",
			 1769900390000ULL + i);
		if (i == 999)
			put(store, START_NS, "last");
		else
			write_text(in_directory(state, name, path), "taken");
	}
	assert_content(path, "taken");
	assert_content(in_directory(state, "2026-01-31/22/1769900390999-10000-cpu.pb.gz", path),
		       "last");
	assert_int_equal(store_put(store, "cpu", START_NS, WINDOW_NS, "x", 1, NULL), -EEXIST);
	assert_false(exists(state, "2026-01-31/22/.1769900390000-10000-cpu.pb.gz.tmp"));
	assert_false(exists(state, "2026-01-31/22/1769900391000-10000-cpu.pb.gz"));
	assert_content(path, "last");
}

/* A store that is too full is counted again first; what is deleted then makes room for a while. */
static void store_put__trim_frees_a_64th_and_only_when_the_count_says_so(void **state)
{
	OWNED(store) struct store *store = NULL;
	struct store_stats stats;
	char path[PATH_CHARS], text[65];

	memset(text, 'x', 64);
	text[64] = '\0';
	open_store(state, 640, &store);
	for (uint64_t i = 0; i < 10; i++)
		put(store, START_NS + i * WINDOW_NS, text);
	write_text(in_directory(state, "2026-01-31/22/.7-1-cpu.pb.gz.tmp", path), "being written");
	store_get_stats(store, &stats);
	assert_int_equal(stats.bytes, 640);
	assert_int_equal(stats.deleted_files, 0);
	/* 64 bytes are gone unseen; the next file makes 640 again. */
	assert_int_equal(
		unlink(in_directory(state, "2026-01-31/22/1769900390000-10000-cpu.pb.gz", path)),
		0);
	put(store, START_NS + 10 * WINDOW_NS, text);
	store_get_stats(store, &stats);
	assert_int_equal(stats.files, 10);
	assert_int_equal(stats.bytes, 640);
	assert_int_equal(stats.deleted_files, 0);
	/* One byte too much: 641 have to become 630 at most. */
	put(store, START_NS + 11 * WINDOW_NS, "1");
	store_get_stats(store, &stats);
	assert_int_equal(stats.files, 10);
	assert_int_equal(stats.bytes, 577);
	assert_int_equal(stats.deleted_files, 1);
	assert_true(exists(state, "2026-01-31/22/.7-1-cpu.pb.gz.tmp"));
}

static void store_put__kind_that_is_no_name_is_einval(void **state)
{
	static const char *const kinds[] = {
		"", "../x", "a-b", "CPU", "a.b", "a_kind_of_more_than_thirty_two_characters"};
	OWNED(store) struct store *store = NULL;

	open_store(state, 0, &store);
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
		assert_int_equal(store_put(store, kinds[i], START_NS, 1, "x", 1, NULL), -EINVAL);
	assert_false(exists(state, "2026-01-31"));
}

static void store_put__oldest_files_and_their_directories_go_first(void **state)
{
	OWNED(store) struct store *store = NULL;
	struct store_stats stats;

	open_store(state, 25, &store);
	/* 23 h, then 22 h: older, though it comes later; then the next day. */
	put(store, START_NS + HOUR_NS, "ten bytes.");
	put(store, START_NS, "ten bytes.");
	put(store, START_NS + 2 * HOUR_NS, "ten bytes.");
	store_get_stats(store, &stats);
	assert_int_equal(stats.files, 2);
	assert_int_equal(stats.bytes, 20);
	assert_int_equal(stats.deleted_files, 1);
	assert_false(exists(state, "2026-01-31/22"));
	assert_true(exists(state, "2026-01-31/23/1769903990000-10000-cpu.pb.gz"));
	put(store, START_NS + 3 * HOUR_NS, "ten bytes.");
	assert_false(exists(state, "2026-01-31"));
	assert_true(exists(state, "2026-02-01/00/1769907590000-10000-cpu.pb.gz"));
	assert_true(exists(state, "2026-02-01/01/1769911190000-10000-cpu.pb.gz"));
}

/* Starts of different lengths: not the order of their names. */
static void store_put__starts_are_compared_as_numbers(void **state)
{
	OWNED(store) struct store *store = NULL;

	open_store(state, 25, &store);
	put(store, 1000000000000000ULL, "ten bytes."); /* 1000000000 ms */
	put(store, 999999000000000ULL, "ten bytes.");  /* 999999000 ms */
	put(store, START_NS, "ten bytes.");
	assert_false(exists(state, "1970-01-12/13/999999000-10000-cpu.pb.gz"));
	assert_true(exists(state, "1970-01-12/13/1000000000-10000-cpu.pb.gz"));
}

static void store_put__file_just_written_stays_though_it_is_too_large(void **state)
{
	OWNED(store) struct store *store = NULL;
	struct store_stats stats;

	open_store(state, 4, &store);
	put(store, START_NS + HOUR_NS, "ten bytes.");
	put(store, START_NS, "ten bytes.");
	store_get_stats(store, &stats);
	assert_int_equal(stats.files, 1);
	assert_int_equal(stats.bytes, 10);
	assert_true(exists(state, "2026-01-31/22/1769900390000-10000-cpu.pb.gz"));
}

static void store_put__files_deleted_by_hand_leave_room(void **state)
{
	OWNED(store) struct store *store = NULL;
	char path[PATH_CHARS];
	struct store_stats stats;

	open_store(state, 25, &store);
	put(store, START_NS, "ten bytes.");
	put(store, START_NS + WINDOW_NS, "ten bytes.");
	assert_int_equal(
		unlink(in_directory(state, "2026-01-31/22/1769900390000-10000-cpu.pb.gz", path)),
		0);
	put(store, START_NS + 2 * WINDOW_NS, "ten bytes.");
	store_get_stats(store, &stats);
	assert_int_equal(stats.files, 2);
	assert_int_equal(stats.deleted_files, 0);
}

/* Puts a window that begins so long after the last one by the clock, and when so much time has
 * passed. */
static void put_after(struct store *store, uint64_t *start_ns, uint64_t clock_s, uint64_t time_s)
{
	*start_ns += clock_s * SECOND_NS;
	ahead_s += time_s;
	put(store, *start_ns, "ten bytes.");
}

static void store_put__what_is_too_old_goes_once_a_minute(void **state)
{
	const struct store_limits limits = {.max_age_ms = 400000};
	OWNED(store) struct store *store = NULL;
	uint64_t start_ns = START_NS;
	struct store_stats stats;

	assert_int_equal(store_open(*state, &limits, &store), 0);
	put_after(store, &start_ns, 0, 0);
	put_after(store, &start_ns, 10, 10);
	put_after(store, &start_ns, 390, 390);
	/* What ends as long ago as the bound is over; what ends later is not. */
	assert_false(exists(state, "2026-01-31/22/1769900390000-10000-cpu.pb.gz"));
	assert_true(exists(state, "2026-01-31/23/1769900400000-10000-cpu.pb.gz"));
	put_after(store, &start_ns, 59, 59);
	assert_true(exists(state, "2026-01-31/23/1769900400000-10000-cpu.pb.gz"));
	put_after(store, &start_ns, 1, 1);
	assert_false(exists(state, "2026-01-31/23/1769900400000-10000-cpu.pb.gz"));
	store_get_stats(store, &stats);
	assert_int_equal(stats.files, 3);
	assert_int_equal(stats.bytes, 30);
	assert_int_equal(stats.deleted_files, 2);
}

/* A machine begins with a wrong time, or gets one while it runs. */
static void store_put__clock_that_jumps_deletes_nothing_by_age(void **state)
{
	const struct store_limits limits = {.max_age_ms = 20 * WINDOW_MS};
	OWNED(store) struct store *store = NULL;
	uint64_t start_ns = START_NS;

	assert_int_equal(store_open(*state, &limits, &store), 0);
	put_after(store, &start_ns, 0, 0);
	store_free(TAKE(store));
	assert_int_equal(store_open(*state, &limits, &store), 0);
	put_after(store, &start_ns, 86400, 10);
	put_after(store, &start_ns, 290, 290);
	put_after(store, &start_ns, 86400, 10);
	put_after(store, &start_ns, 299, 299);
	assert_true(exists(state, "2026-01-31/22/1769900390000-10000-cpu.pb.gz"));
	put_after(store, &start_ns, 1, 1);
	assert_false(exists(state, "2026-01-31/22/1769900390000-10000-cpu.pb.gz"));
}

static void store_put__foreign_names_are_neither_counted_nor_deleted(void **state)
{
	static const char *const foreign[] = {
		"2026-01-30/10/notes.txt",
		"2026-01-30/10/1-1-cpu.pb",
		"2026-01-30/10/01-1-cpu.pb.gz",
		"2026-01-30/10/1-1-CPU.pb.gz",
		"2026-01-30/10/99999999999999999999-1-cpu.pb.gz",
		"2026-01-30/1-1-cpu.pb.gz",
		"2026-01-30/24/1-1-cpu.pb.gz",
		"1-1-cpu.pb.gz",
		"old/10/1-1-cpu.pb.gz",
	};
	OWNED(store) struct store *store = NULL;
	char path[PATH_CHARS];
	struct store_stats stats;

	assert_int_equal(mkdir(in_directory(state, "2026-01-30", path), 0700), 0);
	assert_int_equal(mkdir(in_directory(state, "2026-01-30/10", path), 0700), 0);
	assert_int_equal(mkdir(in_directory(state, "2026-01-30/24", path), 0700), 0);
	assert_int_equal(mkdir(in_directory(state, "old", path), 0700), 0);
	assert_int_equal(mkdir(in_directory(state, "old/10", path), 0700), 0);
	for (size_t i = 0; i < ARRAY_SIZE(foreign); i++)
		write_text(in_directory(state, foreign[i], path), "ten bytes.");
	write_text(in_directory(state, "2026-01-30/10/5-1-cpu.pb.gz", path), "four");
	open_store(state, 11, &store);
	store_get_stats(store, &stats);
	assert_int_equal(stats.files, 1);
	assert_int_equal(stats.bytes, 4);
	put(store, START_NS, "ten bytes.");
	assert_false(exists(state, "2026-01-30/10/5-1-cpu.pb.gz"));
	for (size_t i = 0; i < ARRAY_SIZE(foreign); i++)
		assert_true(exists(state, foreign[i]));
}

/* Makes kept/ hold one directory with a file of this text. */
static void keep(void **state, const char *text)
{
	static const char kept[] = "kept/2026-01-31T225950Z-signal";
	char name[128], path[PATH_CHARS];

	(void)mkdir(in_directory(state, "kept", path), 0700);
	(void)mkdir(in_directory(state, kept, path), 0700);
	snprintf(name, sizeof(name), "%s/cpu.pb.gz", kept);
	write_text(in_directory(state, name, path), text);
}

static void store_put__what_is_kept_takes_room_and_stays(void **state)
{
	OWNED(store) struct store *store = NULL;
	struct store_stats stats;
	char text[101];

	memset(text, 'x', 100);
	text[60] = '\0';
	keep(state, text);
	memset(text, 'x', 100);
	text[100] = '\0';
	open_store(state, 640, &store);
	for (uint64_t i = 0; i < 6; i++)
		put(store, START_NS + i * WINDOW_NS, text);
	store_get_stats(store, &stats);
	assert_int_equal(stats.bytes, 500);
	assert_int_equal(stats.deleted_files, 1);
	assert_true(exists(state, "kept/2026-01-31T225950Z-signal/cpu.pb.gz"));
}

/* Somebody has lowered --store-max, a tenth of which may be kept. */
static void store_put__what_is_kept_above_its_bound_goes(void **state)
{
	OWNED(store) struct store *store = NULL;
	char text[101];

	memset(text, 'x', 100);
	text[100] = '\0';
	keep(state, text);
	open_store(state, 640, &store);
	put(store, START_NS, text);
	assert_false(exists(state, "kept/2026-01-31T225950Z-signal"));
}

static void store_keep__windows_outlive_those_of_the_store(void **state)
{
	const uint64_t end_ms = (START_NS + 10 * WINDOW_NS) / NS_PER_MS;
	const struct kept_request request = {.name = {.reason = KEPT_SIGNAL, .time_ms = end_ms},
					     .from_ms = (START_NS + 8 * WINDOW_NS) / NS_PER_MS,
					     .until_ms = end_ms};
	OWNED(store) struct store *store = NULL;
	struct kept_result result;
	struct store_stats stats;
	char name[128];

	open_store(state, 8000, &store);
	for (uint64_t i = 0; i < 10; i++)
		put(store, START_NS + i * WINDOW_NS, "ten bytes.");
	assert_int_equal(store_keep(store, &request, &result), 0);
	assert_int_equal(result.files, 2);
	store_set_limits(store, &(struct store_limits){.max_bytes = 400});
	for (uint64_t i = 10; i < 60; i++)
		put(store, START_NS + i * WINDOW_NS, "ten bytes.");
	store_get_stats(store, &stats);
	assert_true(stats.bytes < 400);
	snprintf(name, sizeof(name), "kept/%s/%lu-%lu-cpu.pb.gz", result.name,
		 (unsigned long)((START_NS + 9 * WINDOW_NS) / NS_PER_MS),
		 (unsigned long)(WINDOW_NS / NS_PER_MS));
	assert_true(exists(state, name));
}

static void store_put__kept_is_counted_again_after_a_minute(void **state)
{
	OWNED(store) struct store *store = NULL;
	struct store_stats stats;
	char text[101];

	memset(text, 'x', 100);
	text[100] = '\0';
	open_store(state, 640, &store);
	for (uint64_t i = 0; i < 5; i++)
		put(store, START_NS + i * WINDOW_NS, text);
	text[60] = '\0';
	keep(state, text);
	text[60] = 'x';
	put(store, START_NS + 5 * WINDOW_NS, text);
	store_get_stats(store, &stats);
	assert_int_equal(stats.bytes, 600);
	ahead_s += 61;
	put(store, START_NS + 6 * WINDOW_NS, text);
	store_get_stats(store, &stats);
	assert_int_equal(stats.bytes, 500);
}

static void store_put__links_in_the_store_are_not_followed(void **state)
{
	OWNED(store) struct store *store = NULL;
	char path[PATH_CHARS], other[PATH_CHARS];

	assert_int_equal(mkdir(in_directory(state, "other", other), 0700), 0);
	assert_int_equal(mkdir(in_directory(state, "other/10", path), 0700), 0);
	write_text(in_directory(state, "other/10/5-1-cpu.pb.gz", path), "ten bytes.");
	assert_int_equal(symlink(other, in_directory(state, "2026-01-30", path)), 0);
	assert_int_equal(symlink(other, in_directory(state, "2026-01-31", path)), 0);
	open_store(state, 1, &store);
	assert_int_equal(store_put(store, "cpu", START_NS, WINDOW_NS, "x", 1, NULL), -ENOTDIR);
	put(store, START_NS + 24 * HOUR_NS, "ten bytes.");
	assert_true(exists(state, "other/10/5-1-cpu.pb.gz"));
	assert_true(exists(state, "2026-01-30"));
}

static void store_open__counts_what_is_there_and_removes_stale_temporary_files(void **state)
{
	const struct timespec old[2] = {{.tv_sec = 1}, {.tv_sec = 1}};
	OWNED(store) struct store *store = NULL;
	char path[PATH_CHARS];
	struct store_stats stats;

	open_store(state, 0, &store);
	put(store, START_NS, "ten bytes.");
	store_free(TAKE(store));
	write_text(in_directory(state, "2026-01-31/22/.7-1-cpu.pb.gz.tmp", path), "new");
	write_text(in_directory(state, "2026-01-31/22/.mine.tmp", path), "foreign");
	assert_int_equal(utimensat(AT_FDCWD, path, old, 0), 0);
	write_text(in_directory(state, "2026-01-31/22/.8-1-cpu.pb.gz.tmp", path), "stale");
	assert_int_equal(utimensat(AT_FDCWD, path, old, 0), 0);
	open_store(state, 0, &store);
	store_get_stats(store, &stats);
	assert_int_equal(stats.files, 1);
	assert_int_equal(stats.bytes, 10);
	assert_false(exists(state, "2026-01-31/22/.8-1-cpu.pb.gz.tmp"));
	assert_true(exists(state, "2026-01-31/22/.7-1-cpu.pb.gz.tmp"));
	assert_true(exists(state, "2026-01-31/22/.mine.tmp"));
}

static void store_put__left_over_of_a_crash_is_written_anew(void **state)
{
	OWNED(store) struct store *store = NULL;
	char path[PATH_CHARS];

	open_store(state, 0, &store);
	put(store, START_NS, "first");
	write_text(in_directory(state, "2026-01-31/22/.1769900391000-10000-cpu.pb.gz.tmp", path),
		   "a part of what");
	put(store, START_NS + SECOND_NS, "second");
	assert_content(in_directory(state, "2026-01-31/22/1769900391000-10000-cpu.pb.gz", path),
		       "second");
	assert_false(exists(state, "2026-01-31/22/.1769900391000-10000-cpu.pb.gz.tmp"));
}

static void store_open__second_instance_is_ebusy(void **state)
{
	OWNED(store) struct store *store = NULL;
	struct store *second = NULL;

	open_store(state, 0, &store);
	assert_int_equal(store_open(*state, &no_limits, &second), -EBUSY);
	assert_null(second);
	store_free(TAKE(store));
	open_store(state, 0, &store);
}

static void store_open__directory_that_cannot_be_is_an_error(void **state)
{
	struct store *store = NULL;
	char path[PATH_CHARS];

	assert_int_equal(store_open(in_directory(state, "no/such", path), &no_limits, &store),
			 -ENOENT);
	write_text(in_directory(state, "file", path), "");
	assert_int_equal(store_open(path, &no_limits, &store), -ENOTDIR);
	/* No file can be made there, the lock neither. */
	assert_int_equal(store_open("/proc/self", &no_limits, &store), -ENOENT);
	assert_null(store);
	assert_int_not_equal(fcntl(STDIN_FILENO, F_GETFD), -1);
}

static void store_put__full_disk_is_enospc_and_leaves_nothing(void **state)
{
	OWNED(store) struct store *store = NULL;
	OWNED_MEM char *large = calloc(1, 1 << 20);
	char path[PATH_CHARS];
	struct store_stats stats;

	in_directory(state, "disk", path);
	assert_int_equal(mkdir(path, 0700), 0);
	if (mount("tmpfs", path, "tmpfs", MS_NOSUID | MS_NODEV, "size=256k,mode=0700")) {
		print_message("skipped: cannot mount a tmpfs: %s\n", strerror(errno));
		skip();
	}
	assert_int_equal(store_open(path, &no_limits, &store), 0);
	assert_int_equal(store_put(store, "cpu", START_NS, WINDOW_NS, large, 1 << 20, NULL),
			 -ENOSPC);
	assert_false(exists(state, "disk/2026-01-31"));
	put(store, START_NS, "small");
	assert_int_equal(store_put(store, "cpu", START_NS, WINDOW_NS, large, 1 << 20, NULL),
			 -ENOSPC);
	store_get_stats(store, &stats);
	assert_int_equal(stats.files, 1);
	assert_int_equal(stats.bytes, 5);
	assert_int_equal(rmdir(in_directory(state, "disk/2026-01-31/22", path)), -1);
	assert_int_equal(unlink(in_directory(
				 state, "disk/2026-01-31/22/1769900390000-10000-cpu.pb.gz", path)),
			 0);
	/* That was all there was. */
	assert_int_equal(rmdir(in_directory(state, "disk/2026-01-31/22", path)), 0);
	store_free(TAKE(store));
	assert_int_equal(umount(in_directory(state, "disk", path)), 0);
}

static int unmount_and_remove_directory(void **state)
{
	char path[PATH_CHARS];

	umount2(in_directory(state, "disk", path), MNT_DETACH); /* left by a failed assertion */
	return remove_directory(state);
}

static ino_t file_number(void **state, const char *name)
{
	char path[PATH_CHARS];
	struct stat stat;

	assert_int_equal(lstat(in_directory(state, name, path), &stat), 0);
	return stat.st_ino;
}

/* From the directories that are new to the file and then its name: a power cut loses nothing. */
static void store_put__is_synced(void **state)
{
	OWNED(store) struct store *store = NULL;
	const int before = next_descriptor();
	int next;

	open_store(state, 0, &store);
	next = next_descriptor();
	libc_begin();
	put(store, START_NS, "first");
	assert_int_equal(synced_count, 4);
	assert_int_equal(synced[0], file_number(state, "2026-01-31"));
	assert_int_equal(synced[1], file_number(state, "."));
	assert_int_equal(synced[2],
			 file_number(state, "2026-01-31/22/1769900390000-10000-cpu.pb.gz"));
	assert_int_equal(synced[3], file_number(state, "2026-01-31/22"));
	libc_begin();
	put(store, START_NS + HOUR_NS, "another hour");
	assert_int_equal(synced_count, 3);
	assert_int_equal(synced[0], file_number(state, "2026-01-31"));
	assert_int_equal(synced[2], file_number(state, "2026-01-31/23"));
	libc_begin();
	put(store, START_NS + SECOND_NS, "the same hour");
	assert_int_equal(synced_count, 2);
	assert_int_equal(synced[0],
			 file_number(state, "2026-01-31/22/1769900391000-10000-cpu.pb.gz"));
	assert_int_equal(synced[1], file_number(state, "2026-01-31/22"));
	assert_int_equal(next_descriptor(), next);
	assert_int_equal(bad_closes, 0);
	store_free(TAKE(store));
	assert_int_equal(next_descriptor(), before);
}

static void store_put__failed_step_leaves_nothing(void **state)
{
	static const struct {
		const char *call;
		unsigned int skip;
	} steps[] = {{"fsync", 0},  {"fsync", 1},  {"fsync", 2},   {"fsync", 3},
		     {"fchmod", 0}, {"fchmod", 1}, {"fchmod", 2},  {"open", 0},
		     {"open", 1},   {"open", 2},   {"renameat", 0}};
	OWNED(store) struct store *store = NULL;
	struct store_stats stats;
	int next;

	open_store(state, 0, &store);
	next = next_descriptor();
	for (size_t i = 0; i < ARRAY_SIZE(steps); i++) {
		libc_begin();
		let_fail(steps[i].call, EIO, steps[i].skip, 1);
		if (store_put(store, "cpu", START_NS, WINDOW_NS, "x", 1, NULL) != -EIO)
			fail_msg("%s %u", steps[i].call, steps[i].skip);
		if (exists(state, "2026-01-31"))
			fail_msg("%s %u left something", steps[i].call, steps[i].skip);
		assert_int_equal(next_descriptor(), next);
	}
	store_get_stats(store, &stats);
	assert_int_equal(stats.files, 0);
	put(store, START_NS, "x");
}

static void store_put__opens_with_care(void **state)
{
	OWNED(store) struct store *store = NULL;

	open_store(state, 0, &store);
	libc_begin();
	put(store, START_NS, "x");
	assert_int_equal(opened, 4); /* the last one is kept/ */
	assert_int_equal(common_flags & (O_CLOEXEC | O_NOFOLLOW), O_CLOEXEC | O_NOFOLLOW);
	assert_int_equal(opened_flags & O_EXCL, O_EXCL);
}

/* A directory that goes as soon as it is there. */
static void store_open__directory_that_goes_at_once_is_enoent(void **state)
{
	struct store *store = NULL;
	char path[PATH_CHARS];

	libc_begin();
	let_fail("open", ENOENT, 0, 1);
	assert_int_equal(store_open(in_directory(state, "new", path), &no_limits, &store), -ENOENT);
	/* The directory exists already: mkdir() says so, but open() knows more. */
	let_fail("open", EACCES, 0, 1);
	assert_int_equal(store_open(path, &no_limits, &store), -EACCES);
	let_fail("open", ENOENT, 0, 1);
	assert_int_equal(store_open(path, &no_limits, &store), -EEXIST);
	assert_null(store);
}

static void store_open__that_cannot_count_is_an_error(void **state)
{
	struct store *store = NULL;
	int next = next_descriptor();

	libc_begin();
	let_fail("open", EIO, 3, 1); /* after the directory and both attempts for the lock */
	assert_int_equal(store_open(*state, &no_limits, &store), -EIO);
	assert_null(store);
	assert_int_equal(next_descriptor(), next);
}

static void assert_owner(void **state, const char *name, uid_t uid)
{
	char path[PATH_CHARS];
	struct stat stat;

	assert_int_equal(lstat(in_directory(state, name, path), &stat), 0);
	assert_int_equal(stat.st_uid, uid);
	assert_int_equal(stat.st_gid, uid ? uid + 1 : 0);
}

/* A service without root is to go on in the store, which root wrote into by hand. */
static void store_put__of_root_gives_files_to_the_directory_s_owner(void **state)
{
	OWNED(store) struct store *store = NULL;
	char path[PATH_CHARS];

	if (geteuid())
		skip();
	assert_int_equal(chown(*state, 4711, 4712), 0);
	open_store(state, 0, &store);
	put(store, START_NS, "bytes");
	assert_owner(state, ".lock", 4711);
	assert_owner(state, "2026-01-31", 4711);
	assert_owner(state, "2026-01-31/22", 4711);
	assert_owner(state, "2026-01-31/22/1769900390000-10000-cpu.pb.gz", 4711);
	/* It is root again for all else. */
	assert_int_equal(mkdir(in_directory(state, "own", path), 0700), 0);
	assert_owner(state, "own", 0);
}

/* As a version of ours did that knew nothing of owners: what is root's stays readable to none but
 * root, and the store goes on. */
static void store_put__of_root_goes_on_where_root_s_files_are(void **state)
{
	OWNED(store) struct store *before = NULL;

	if (geteuid())
		skip();
	open_store(state, 0, &before);
	put(before, START_NS, "bytes");
	store_free(TAKE(before));
	assert_int_equal(chown(*state, 4711, 4712), 0);
	{
		OWNED(store) struct store *store = NULL;
		struct store_stats stats;

		open_store(state, 0, &store);
		store_get_stats(store, &stats);
		assert_int_equal(stats.files, 1);
		put(store, START_NS + 2 * SECOND_NS, "bytes");
		assert_owner(state, "2026-01-31/22/1769900392000-10000-cpu.pb.gz", 0);
		put(store, START_NS + HOUR_NS, "bytes");
		/* An hour of its own, in a day of root's. */
		assert_owner(state, "2026-01-31/23", 0);
		put(store, START_NS + 24 * HOUR_NS, "bytes");
		assert_owner(state, "2026-02-01", 4711);
	}
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make_directory, remove_directory)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(store_put__name_holds_utc_start_duration_and_kind),
		TEST(store_put__modes_do_not_depend_on_the_umask),
		TEST(store_put__taken_name_is_not_replaced),
		TEST(store_put__thousand_taken_names_are_tried),
		TEST(store_put__trim_frees_a_64th_and_only_when_the_count_says_so),
		TEST(store_put__kind_that_is_no_name_is_einval),
		TEST(store_put__oldest_files_and_their_directories_go_first),
		TEST(store_put__starts_are_compared_as_numbers),
		TEST(store_put__file_just_written_stays_though_it_is_too_large),
		TEST(store_put__files_deleted_by_hand_leave_room),
		TEST(store_put__what_is_too_old_goes_once_a_minute),
		TEST(store_put__clock_that_jumps_deletes_nothing_by_age),
		TEST(store_put__foreign_names_are_neither_counted_nor_deleted),
		TEST(store_put__what_is_kept_takes_room_and_stays),
		TEST(store_put__what_is_kept_above_its_bound_goes),
		TEST(store_keep__windows_outlive_those_of_the_store),
		TEST(store_put__kept_is_counted_again_after_a_minute),
		TEST(store_put__links_in_the_store_are_not_followed),
		TEST(store_open__counts_what_is_there_and_removes_stale_temporary_files),
		TEST(store_put__left_over_of_a_crash_is_written_anew),
		TEST(store_open__second_instance_is_ebusy),
		TEST(store_open__directory_that_cannot_be_is_an_error),
		TEST(store_put__of_root_gives_files_to_the_directory_s_owner),
		TEST(store_put__of_root_goes_on_where_root_s_files_are),
		TEST(store_put__is_synced),
		TEST(store_put__failed_step_leaves_nothing),
		TEST(store_put__opens_with_care),
		TEST(store_open__directory_that_goes_at_once_is_enoent),
		TEST(store_open__that_cannot_count_is_an_error),
		cmocka_unit_test_setup_teardown(store_put__full_disk_is_enospc_and_leaves_nothing,
						make_directory, unmount_and_remove_directory),
	};

	return cmocka_run_group_tests_name("store/store", tests, NULL, NULL);
}
