/* SPDX-License-Identifier: BSD-2-Clause */
/* sources: store/kept.c */
#include "fixture.h"

#include "base/cleanup.h"
#include "store/kept.h"

/* 2026-11-27T22:40:59Z, by `date -u -d @1795819259`. */
#define TIME_MS 1795819259000ULL
#define OOM_NAME "2026-11-27T224059Z-oom-4711-python3.11"
#define NAME_CHARS 128U
#define SIGNAL_NAME "2026-11-27T224059Z-signal"

static void name__tells_time_process_and_program(void **state)
{
	const struct kept_name oom = {
		.time_ms = TIME_MS + 999, .reason = KEPT_OOM, .pid = 4711, .comm = "python3.11"};
	const struct kept_name all = {.time_ms = TIME_MS, .reason = KEPT_SIGNAL};
	char name[KEPT_NAME_CHARS];

	(void)state;
	kept_name_format(&oom, name);
	assert_string_equal(name, OOM_NAME);
	kept_name_format(&all, name);
	assert_string_equal(name, SIGNAL_NAME);
}

static void name__comes_back(void **state)
{
	struct kept_name kept;

	(void)state;
	assert_true(kept_name_parse(OOM_NAME, &kept));
	assert_int_equal(kept.time_ms, TIME_MS);
	assert_int_equal(kept.reason, KEPT_OOM);
	assert_int_equal(kept.pid, 4711);
	assert_string_equal(kept.comm, "python3.11");
	assert_true(kept_name_parse(SIGNAL_NAME, &kept));
	assert_int_equal(kept.reason, KEPT_SIGNAL);
	assert_true(kept_name_parse("2026-11-27T224059Z-oom-1-a-b-c", &kept));
	assert_string_equal(kept.comm, "a-b-c");
}

static void name__of_somebody_else_is_none(void **state)
{
	static const char *const other[] = {
		"",
		"2026-11-27",
		"2026-11-27T224059Z",
		"2026-11-27T224059Z-signal2",
		"2026-11-27T224059Z-oom-",
		"2026-11-27T224059Z-oom-4711",
		"2026-11-27T224059Z-oom-4711-",
		"2026-11-27T224059Z-oom-x-python",
		"2026-11-27T224059Z-oom-04711-python",
		"2026-11-27T224059Z-oom--1-python",
		"2026-11-27T224059Z-oom-4294967296-python",
		"2026-11-27T224059Z-oom-1-sixteen_letters_",
		"2026-11-27T224059Z-oom-1-a/b",
		"2026-11-27T224059Z-oom-1-a\nb",
		"2026-13-27T224059Z-signal",
		"2026-02-31T224059Z-signal",
		"1969-12-31T235959Z-signal",
		".2026-11-27T224059Z-signal.tmp",
	};
	struct kept_name kept;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(other); i++)
		assert_false(kept_name_parse(other[i], &kept));
}

static void comm__keeps_to_what_a_name_can_have(void **state)
{
	char comm[KEPT_COMM_CHARS];

	(void)state;
	kept_comm("../../etc/passwd!", comm);
	assert_string_equal(comm, ".._.._etc_passw");
	kept_comm("a b\nc\xff", comm);
	assert_string_equal(comm, "a_b_c_");
	kept_comm("", comm);
	assert_string_equal(comm, "_");
}

static void bound__is_a_tenth_of_a_small_store(void **state)
{
	(void)state;
	assert_int_equal(kept_max_bytes(0), KEPT_MAX_BYTES);
	assert_int_equal(kept_max_bytes(1ULL << 40), KEPT_MAX_BYTES);
	assert_int_equal(kept_max_bytes(KEPT_MAX_BYTES), KEPT_MAX_BYTES / 10);
	assert_int_equal(kept_max_bytes(1000000), 100000);
}

static void put(void **state, const char *name, const char *text)
{
	char path[PATH_CHARS], file[NAME_CHARS];

	(void)mkdir(in_directory(state, KEPT_DIRECTORY, path), 0700);
	snprintf(file, sizeof(file), KEPT_DIRECTORY "/%s", name);
	assert_int_equal(mkdir(in_directory(state, file, path), 0700), 0);
	snprintf(file, sizeof(file), KEPT_DIRECTORY "/%s/cpu.pb.gz", name);
	write_text(in_directory(state, file, path), text);
}

static int open_store(void **state)
{
	return open(*state, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

static bool is_there(void **state, const char *name)
{
	char file[NAME_CHARS], path[PATH_CHARS];
	struct stat stat;

	snprintf(file, sizeof(file), KEPT_DIRECTORY "/%s", name);
	return !lstat(in_directory(state, file, path), &stat);
}

static void list__has_our_names_by_time(void **state)
{
	CLEANUP(kept_list_release) struct kept_list list = {0};
	OWNED_FD int store_fd = open_store(state), kept_fd = -1;
	char path[PATH_CHARS];

	assert_int_equal(kept_open(store_fd, &kept_fd), -ENOENT);
	assert_int_equal(kept_count_bytes(store_fd), 0);
	put(state, SIGNAL_NAME, "12345");
	put(state, "2025-01-01T000000Z-oom-7-a", "123");
	put(state, "notes", "not ours");
	put(state, ".2026-01-01T000000Z-signal.tmp", "half");
	assert_int_equal(
		symlink("/etc", in_directory(state, "kept/2026-01-01T000000Z-signal", path)), 0);
	assert_int_equal(kept_open(store_fd, &kept_fd), 0);
	assert_int_equal(kept_list(kept_fd, &list), 0);
	assert_int_equal(list.count, 2);
	assert_string_equal(list.entry[0].name, "2025-01-01T000000Z-oom-7-a");
	assert_int_equal(list.entry[0].bytes, 3);
	assert_int_equal(list.entry[1].bytes, 5);
	assert_int_equal(list.bytes, 8);
	assert_int_equal(kept_count_bytes(store_fd), 8);
}

static void remove__takes_one_and_what_is_half(void **state)
{
	OWNED_FD int store_fd = open_store(state), kept_fd = -1;

	put(state, SIGNAL_NAME, "12345");
	put(state, OOM_NAME, "123");
	put(state, "." OOM_NAME ".tmp", "half");
	put(state, ".notes.tmp", "not ours");
	assert_int_equal(kept_open(store_fd, &kept_fd), 0);
	assert_int_equal(kept_remove(kept_fd, SIGNAL_NAME), 0);
	assert_int_equal(kept_remove(kept_fd, SIGNAL_NAME), 0);
	assert_false(is_there(state, SIGNAL_NAME));
	assert_false(is_there(state, "." SIGNAL_NAME ".tmp"));
	kept_remove_temporary(kept_fd);
	assert_false(is_there(state, "." OOM_NAME ".tmp"));
	assert_true(is_there(state, OOM_NAME));
	assert_true(is_there(state, ".notes.tmp"));
}

static void directory__that_is_a_link_is_not_followed(void **state)
{
	OWNED_FD int store_fd = open_store(state), kept_fd = -1;
	char path[PATH_CHARS];

	assert_int_equal(symlink("/tmp", in_directory(state, KEPT_DIRECTORY, path)), 0);
	assert_true(kept_open(store_fd, &kept_fd) < 0);
	assert_int_equal(kept_count_bytes(store_fd), 0);
}

#define in_a_store(test) cmocka_unit_test_setup_teardown(test, make_directory, remove_directory)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(name__tells_time_process_and_program),
		cmocka_unit_test(name__comes_back),
		cmocka_unit_test(name__of_somebody_else_is_none),
		cmocka_unit_test(comm__keeps_to_what_a_name_can_have),
		cmocka_unit_test(bound__is_a_tenth_of_a_small_store),
		in_a_store(list__has_our_names_by_time),
		in_a_store(remove__takes_one_and_what_is_half),
		in_a_store(directory__that_is_a_link_is_not_followed),
	};

	return cmocka_run_group_tests_name("store/kept", tests, NULL, NULL);
}
