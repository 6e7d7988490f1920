/* SPDX-License-Identifier: BSD-2-Clause */
#include "fixture.h"

#include <dirent.h>

#include "base/cleanup.h"
#include "store/kept.h"
#include "store/store_query.h"

/* 2026-11-27T22:40:59Z, by `date -u -d @1795819259`. */
#define TIME_MS 1795819259000ULL
#define OOM_NAME "2026-11-27T224059Z-oom-4711-1000-python3.11"
#define NAME_CHARS 128U
#define SIGNAL_NAME "2026-11-27T224059Z-signal"

static void name__tells_time_process_and_program(void **state)
{
	const struct kept_name oom = {.time_ms = TIME_MS + 999,
				      .reason = KEPT_OOM,
				      .pid = 4711,
				      .uid = 1000,
				      .comm = "python3.11"};
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
	assert_int_equal(kept.uid, 1000);
	assert_string_equal(kept.comm, "python3.11");
	assert_true(kept_name_parse(SIGNAL_NAME, &kept));
	assert_int_equal(kept.reason, KEPT_SIGNAL);
	assert_true(kept_name_parse("2026-11-27T224059Z-oom-1-0-a-b-c", &kept));
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
		"2026-11-27T224059Z-oom-4711-python",
		"2026-11-27T224059Z-oom-4711-1000",
		"2026-11-27T224059Z-oom-4711-1000-",
		"2026-11-27T224059Z-oom-x-1000-python",
		"2026-11-27T224059Z-oom-04711-1000-python",
		"2026-11-27T224059Z-oom-4711-01000-python",
		"2026-11-27T224059Z-oom--1-1000-python",
		"2026-11-27T224059Z-oom-4294967296-1000-python",
		"2026-11-27T224059Z-oom-1-4294967296-python",
		"2026-11-27T224059Z-oom-1-1000-sixteen_letters_",
		"2026-11-27T224059Z-oom-1-1000-a/b",
		"2026-11-27T224059Z-oom-1-1000-a\nb",
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
	OWNED_FD int store_fd = open_store(state);
	char path[PATH_CHARS];

	list.count = list.bytes = 7;
	assert_int_equal(kept_list(store_fd, &list), 0);
	assert_int_equal(list.count, 0);
	assert_int_equal(list.bytes, 0);
	put(state, SIGNAL_NAME, "12345");
	put(state, "2025-01-01T000000Z-oom-7-0-a", "123");
	put(state, "notes", "not ours");
	put(state, ".2026-01-01T000000Z-signal.tmp", "half");
	assert_int_equal(
		symlink("/etc", in_directory(state, "kept/2026-01-01T000000Z-signal", path)), 0);
	assert_int_equal(kept_list(store_fd, &list), 0);
	assert_int_equal(list.count, 2);
	assert_string_equal(list.entry[0].name, "2025-01-01T000000Z-oom-7-0-a");
	assert_int_equal(list.entry[0].bytes, 3);
	assert_int_equal(list.entry[1].bytes, 5);
	assert_int_equal(list.bytes, 8);
}

static void list__does_not_follow_a_link(void **state)
{
	CLEANUP(kept_list_release) struct kept_list list = {0};
	OWNED_FD int store_fd = open_store(state);
	char path[PATH_CHARS];
	uint64_t bytes;

	assert_int_equal(symlink("/tmp", in_directory(state, KEPT_DIRECTORY, path)), 0);
	assert_true(kept_list(store_fd, &list) < 0);
	assert_true(kept_trim(store_fd, 1000, NULL, &bytes) < 0);
	assert_int_equal(bytes, 0);
}

/* ---- room ---- */

/* What is kept: a directory a second, each with a file of some bytes. */
struct room {
	void **state;
	size_t count;
	char name[64][KEPT_NAME_CHARS];
};

/* comm NULL: of a signal. */
static void add(struct room *room, uint32_t uid, const char *comm, off_t bytes)
{
	struct kept_name name = {.time_ms = TIME_MS + room->count * 1000,
				 .reason = comm ? KEPT_OOM : KEPT_SIGNAL,
				 .pid = 7,
				 .uid = uid};
	char file[NAME_CHARS], path[PATH_CHARS];

	snprintf(name.comm, sizeof(name.comm), "%s", comm ? comm : "");
	kept_name_format(&name, room->name[room->count]);
	put(room->state, room->name[room->count], "");
	snprintf(file, sizeof(file), KEPT_DIRECTORY "/%s/cpu.pb.gz", room->name[room->count++]);
	assert_int_equal(truncate(in_directory(room->state, file, path), bytes), 0);
}

static size_t count_names(void **state)
{
	char path[PATH_CHARS];
	DIR *directory = opendir(in_directory(state, KEPT_DIRECTORY, path));
	size_t count = 0;

	assert_non_null(directory);
	while (readdir(directory))
		count++;
	closedir(directory);
	return count - 2; /* itself and its parent */
}

/* Asserts which ones go, as a string of '-' and 'x'; of those nothing is left. */
static void assert_gone(const struct room *room, uint64_t max_bytes, const char *newest,
			const char *expected)
{
	OWNED_FD int store_fd = open_store(room->state);
	char gone[65] = "";
	size_t names = count_names(room->state);
	uint64_t bytes;

	assert_int_equal(kept_trim(store_fd, max_bytes, newest, &bytes), 0);
	for (size_t i = 0; i < room->count; i++) {
		gone[i] = is_there(room->state, room->name[i]) ? '-' : 'x';
		names -= gone[i] == 'x';
	}
	assert_string_equal(gone, expected);
	assert_int_equal(count_names(room->state), names);
}

static void room__that_is_enough_costs_nothing(void **state)
{
	struct room room = {.state = state};
	OWNED_FD int store_fd = open_store(state);
	uint64_t bytes;

	add(&room, 1, "a", 50);
	add(&room, 1, "a", 50);
	assert_gone(&room, 100, NULL, "--");
	assert_int_equal(kept_trim(store_fd, 100, NULL, &bytes), 0);
	assert_int_equal(bytes, 100);
}

static void room__is_made_by_the_oldest(void **state)
{
	struct room room = {.state = state};

	for (int i = 0; i < 4; i++)
		add(&room, 1, "a", 50);
	assert_gone(&room, 100, room.name[3], "xx--");
}

/* User 2 has his programs ended again and again. */
static void room__is_made_by_who_takes_most(void **state)
{
	struct room room = {.state = state};

	add(&room, 1, "a", 40);
	add(&room, 2, "b", 30);
	add(&room, 2, "c", 30);
	add(&room, 2, "d", 30);
	assert_gone(&room, 100, room.name[3], "-x--");
}

/* Of users who take as much, the one of the oldest. */
static void room__is_made_by_the_oldest_of_equal_users(void **state)
{
	struct room room = {.state = state};

	add(&room, 2, "b", 50);
	add(&room, 1, "a", 50);
	add(&room, 3, "c", 50);
	assert_gone(&room, 100, room.name[2], "x--");
}

/* The least that there can be. */
static void room__of_one_byte_is_made_by_another_user(void **state)
{
	struct room room = {.state = state};

	add(&room, 1, "a", 1);
	add(&room, 2, "b", 1);
	assert_gone(&room, 1, room.name[1], "x-");
}

static void room__newest_stays_though_its_user_takes_most(void **state)
{
	struct room room = {.state = state};

	add(&room, 1, "a", 40);
	add(&room, 2, "b", 90);
	assert_gone(&room, 100, room.name[1], "x-");
}

/* Windows that several have linked take the disk's room once, and all of them bear it. */
static void room__of_a_file_is_shared_by_its_links(void **state)
{
	struct room room = {.state = state};
	char from[PATH_CHARS], to[PATH_CHARS], file[NAME_CHARS];

	for (int i = 0; i < 3; i++)
		add(&room, 1, "a", 0);
	snprintf(file, sizeof(file), KEPT_DIRECTORY "/%s/w", room.name[0]);
	write_text(in_directory(state, file, from), "90 bytes");
	assert_int_equal(truncate(from, 90), 0);
	for (int i = 1; i < 3; i++) {
		snprintf(file, sizeof(file), KEPT_DIRECTORY "/%s/w", room.name[i]);
		assert_int_equal(link(from, in_directory(state, file, to)), 0);
	}
	assert_gone(&room, 100, NULL, "---");
	assert_gone(&room, 89, NULL, "x--");
}

/* Each counts as a 64th of the room at least: so many small ones are kept. */
static void directories__are_bounded_in_number(void **state)
{
	struct room room = {.state = state};
	char expected[65] = "", comm[KEPT_COMM_CHARS];

	for (unsigned int i = 0; i < 64; i++) {
		snprintf(comm, sizeof(comm), "p%u", i);
		add(&room, 1, comm, 1);
	}
	memset(expected, '-', 64);
	assert_gone(&room, 64 * 10, NULL, expected);
	add(&(struct room){.state = state, .count = 63}, 2, "late", 1);
	expected[0] = 'x';
	assert_gone(&room, 64 * 10, NULL, expected);
}

static void program__has_eight_at_most(void **state)
{
	struct room room = {.state = state};

	add(&room, 1, "other", 1);
	for (int i = 0; i < 10; i++)
		add(&room, 1, "loop", 1);
	add(&room, 2, "loop", 1);
	assert_gone(&room, 100, room.name[10], "-xx---------");
}

static void signals__are_no_program(void **state)
{
	struct room room = {.state = state};

	for (int i = 0; i < 12; i++)
		add(&room, 0, NULL, 1);
	assert_gone(&room, 100, room.name[11], "------------");
}

static void trim__takes_what_is_half(void **state)
{
	OWNED_FD int store_fd = open_store(state);
	uint64_t bytes;

	put(state, OOM_NAME, "123");
	put(state, "." OOM_NAME ".tmp", "half");
	put(state, ".notes.tmp", "not ours");
	put(state, "x" OOM_NAME ".tmp", "not ours");
	put(state, "." OOM_NAME ".tmq", "not ours");
	assert_int_equal(kept_trim(store_fd, 1000, NULL, &bytes), 0);
	assert_int_equal(bytes, 3);
	assert_false(is_there(state, "." OOM_NAME ".tmp"));
	assert_true(is_there(state, OOM_NAME));
	assert_true(is_there(state, ".notes.tmp"));
	assert_true(is_there(state, "x" OOM_NAME ".tmp"));
	assert_true(is_there(state, "." OOM_NAME ".tmq"));
}

/* ---- linking ---- */

#define END_MS TIME_MS /* 22:40:59 */
#define ROOM_BYTES 4000U

static void put_window(void **state, uint64_t start_ms, uint64_t duration_ms, const char *rest)
{
	char name[NAME_CHARS], path[PATH_CHARS];
	char hour[4];

	store_hour_name(start_ms, hour);
	(void)mkdir(in_directory(state, "2026-11-27", path), 0700);
	snprintf(name, sizeof(name), "2026-11-27/%s", hour);
	(void)mkdir(in_directory(state, name, path), 0700);
	snprintf(name, sizeof(name), "2026-11-27/%s/%lu-%lu-%s", hour, (unsigned long)start_ms,
		 (unsigned long)duration_ms, rest);
	write_text(in_directory(state, name, path), "ten bytes.");
}

static const struct kept_request last_minutes = {
	.name = {.time_ms = END_MS, .reason = KEPT_OOM, .pid = 4711, .uid = 1000, .comm = "a"},
	.from_ms = END_MS - 600000,
	.until_ms = END_MS + 1,
	.max_bytes = ROOM_BYTES};

static bool has(void **state, const struct kept_result *result, uint64_t start_ms,
		uint64_t duration_ms, const char *rest)
{
	char name[NAME_CHARS], path[PATH_CHARS];
	struct stat stat;

	snprintf(name, sizeof(name), KEPT_DIRECTORY "/%s/%lu-%lu-%s", result->name,
		 (unsigned long)start_ms, (unsigned long)duration_ms, rest);
	return !lstat(in_directory(state, name, path), &stat) && S_ISREG(stat.st_mode);
}

static void link__takes_windows_of_the_minutes_alone(void **state)
{
	OWNED_FD int store_fd = open_store(state);
	char name[NAME_CHARS], path[PATH_CHARS];
	struct kept_result result;

	put_window(state, END_MS - 620000, 10000, "cpu.pb.gz"); /* too old */
	put_window(state, END_MS - 605000, 10000, "cpu.pb.gz");
	put_window(state, END_MS - 5000, 10000, "cpu.pb.gz");
	put_window(state, END_MS - 5000, 10000, "mem.pb.gz");
	put_window(state, END_MS + 5000, 10000, "cpu.pb.gz"); /* too new */
	put_window(state, END_MS - 500000, 300000, "cpu.merged.pb.gz");
	put_window(state, END_MS - 4000, 10, "x.txt");
	assert_int_equal(kept_link(store_fd, &last_minutes, &result), 0);
	assert_string_equal(result.name, "2026-11-27T224059Z-oom-4711-1000-a");
	assert_int_equal(result.files, 3);
	assert_int_equal(result.bytes, 30);
	assert_int_equal(result.span_ms, 610000);
	assert_true(has(state, &result, END_MS - 605000, 10000, "cpu.pb.gz"));
	assert_true(has(state, &result, END_MS - 5000, 10000, "cpu.pb.gz"));
	assert_true(has(state, &result, END_MS - 5000, 10000, "mem.pb.gz"));
	snprintf(name, sizeof(name), KEPT_DIRECTORY "/%s", result.name);
	assert_mode(in_directory(state, name, path), 0750);
	assert_mode(in_directory(state, KEPT_DIRECTORY, path), 0750);
}

/* Windows of ten minutes, the first of which began in the hour before. */
static void link__finds_windows_of_the_hour_before(void **state)
{
	struct kept_request request = last_minutes;
	const uint64_t hour_ms = END_MS - END_MS % 3600000;
	OWNED_FD int store_fd = open_store(state);
	struct kept_result result;

	request.until_ms = hour_ms + 300000;
	request.from_ms = hour_ms - 300000;
	put_window(state, hour_ms - 890000, 600000, "cpu.pb.gz");
	put_window(state, hour_ms - 290000, 600000, "cpu.pb.gz");
	assert_int_equal(kept_link(store_fd, &request, &result), 0);
	assert_int_equal(result.files, 2);
	assert_int_equal(result.span_ms, 1200000);
}

/* A quarter of the room is for one: the newest windows are in it. */
static void link__leaves_out_the_oldest_windows_without_room(void **state)
{
	struct kept_request request = last_minutes;
	OWNED_FD int store_fd = open_store(state);
	struct kept_result result;

	for (uint64_t i = 1; i <= 5; i++)
		put_window(state, END_MS - i * 10000, 10000, "cpu.pb.gz");
	request.max_bytes = 4 * 35;
	assert_int_equal(kept_link(store_fd, &request, &result), 0);
	assert_int_equal(result.files, 3);
	assert_int_equal(result.span_ms, 30000);
	assert_true(has(state, &result, END_MS - 30000, 10000, "cpu.pb.gz"));
	request.name.pid++;
	request.max_bytes = 4 * 30;
	assert_int_equal(kept_link(store_fd, &request, &result), 0);
	assert_int_equal(result.files, 3);
	request.max_bytes = 4 * 9;
	assert_int_equal(kept_link(store_fd, &request, &result), -EFBIG);
}

static void link__of_nothing_leaves_nothing(void **state)
{
	OWNED_FD int store_fd = open_store(state);
	struct kept_result result;
	char path[PATH_CHARS];
	struct stat stat;

	assert_int_equal(kept_link(store_fd, &last_minutes, &result), -ENODATA);
	assert_int_equal(lstat(in_directory(state, KEPT_DIRECTORY, path), &stat), -1);
	put_window(state, END_MS - 5000, 10000, "cpu.pb.gz");
	write_text(in_directory(state, KEPT_DIRECTORY, path), "a file");
	assert_int_equal(kept_link(store_fd, &last_minutes, &result), -ENOTDIR);
}

static void link__of_the_same_second_has_another_name(void **state)
{
	OWNED_FD int store_fd = open_store(state);
	struct kept_result result;

	put_window(state, END_MS - 5000, 10000, "cpu.pb.gz");
	for (unsigned int i = 0; i < 60; i++)
		assert_int_equal(kept_link(store_fd, &last_minutes, &result), 0);
	assert_string_equal(result.name, "2026-11-27T224158Z-oom-4711-1000-a");
	assert_int_equal(kept_link(store_fd, &last_minutes, &result), -EEXIST);
}

/* A link in the place of a window, of an hour, or of what is being made is not followed. */
static void link__follows_no_symbolic_link(void **state)
{
	OWNED_FD int store_fd = open_store(state);
	char path[PATH_CHARS], name[NAME_CHARS];
	struct kept_result result;

	put_window(state, END_MS - 5000, 10000, "cpu.pb.gz");
	snprintf(name, sizeof(name), "2026-11-27/22/%lu-1-mem.pb.gz", (unsigned long)END_MS - 9);
	assert_int_equal(symlink("/etc/passwd", in_directory(state, name, path)), 0);
	assert_int_equal(kept_link(store_fd, &last_minutes, &result), 0);
	assert_int_equal(result.files, 1);
	snprintf(name, sizeof(name), KEPT_DIRECTORY "/.2026-11-27T224100Z-oom-4711-1000-a.tmp");
	assert_int_equal(symlink("/tmp", in_directory(state, name, path)), 0);
	assert_true(kept_link(store_fd, &last_minutes, &result) < 0);
	assert_false(has(state, &result, END_MS - 5000, 10000, "cpu.pb.gz"));
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
		in_a_store(list__does_not_follow_a_link),
		in_a_store(room__that_is_enough_costs_nothing),
		in_a_store(room__is_made_by_the_oldest),
		in_a_store(room__is_made_by_who_takes_most),
		in_a_store(room__is_made_by_the_oldest_of_equal_users),
		in_a_store(room__of_one_byte_is_made_by_another_user),
		in_a_store(room__newest_stays_though_its_user_takes_most),
		in_a_store(room__of_a_file_is_shared_by_its_links),
		in_a_store(directories__are_bounded_in_number),
		in_a_store(program__has_eight_at_most),
		in_a_store(signals__are_no_program),
		in_a_store(trim__takes_what_is_half),
		in_a_store(link__takes_windows_of_the_minutes_alone),
		in_a_store(link__finds_windows_of_the_hour_before),
		in_a_store(link__leaves_out_the_oldest_windows_without_room),
		in_a_store(link__of_nothing_leaves_nothing),
		in_a_store(link__of_the_same_second_has_another_name),
		in_a_store(link__follows_no_symbolic_link),
	};

	return cmocka_run_group_tests_name("store/kept", tests, NULL, NULL);
}
