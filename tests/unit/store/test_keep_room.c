/* SPDX-License-Identifier: BSD-2-Clause */
/* sources: store/keep_room.c store/kept.c base/io.c */
#include "store/keep_room.h"

#include <cmocka.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"

#define ENTRIES 64U
#define PATH_CHARS 256U

/* What is kept, oldest first. */
struct room {
	struct kept_entry kept[ENTRIES];
	struct keep_room_entry entry[ENTRIES];
	size_t count;
};

static void add(struct room *room, uint32_t uid, const char *comm, uint64_t bytes)
{
	struct kept_entry *kept = &room->kept[room->count];

	kept->is.reason = comm ? KEPT_OOM : KEPT_SIGNAL;
	snprintf(kept->is.comm, sizeof(kept->is.comm), "%s", comm ? comm : "");
	snprintf(kept->name, sizeof(kept->name), "%zu", room->count);
	kept->bytes = bytes;
	room->entry[room->count++] = (struct keep_room_entry){.kept = kept, .uid = uid};
}

/* Asserts which ones go, as a string of '-' and 'x'. */
static void assert_gone(struct room *room, uint64_t max_bytes, const char *newest,
			const char *expected)
{
	char gone[ENTRIES + 1] = "";
	size_t count = keep_room_choose(room->entry, room->count, max_bytes, newest), found = 0;

	for (size_t i = 0; i < room->count; i++) {
		gone[i] = room->entry[i].must_go ? 'x' : '-';
		found += room->entry[i].must_go;
	}
	assert_string_equal(gone, expected);
	assert_int_equal(count, found);
}

static void room__that_is_enough_costs_nothing(void **state)
{
	struct room room = {0};

	(void)state;
	add(&room, 1, "a", 50);
	add(&room, 1, "a", 50);
	assert_gone(&room, 100, "1", "--");
}

static void room__is_made_by_the_oldest(void **state)
{
	struct room room = {0};

	(void)state;
	for (int i = 0; i < 4; i++)
		add(&room, 1, "a", 50);
	assert_gone(&room, 100, "3", "xx--");
}

/* User 2 has his programs ended again and again. */
static void room__is_made_by_who_takes_most(void **state)
{
	struct room room = {0};

	(void)state;
	add(&room, 1, "a", 40);
	add(&room, 2, "b", 30);
	add(&room, 2, "c", 30);
	add(&room, 2, "d", 30);
	assert_gone(&room, 100, "3", "-x--");
}

static void room__newest_stays_though_its_user_takes_most(void **state)
{
	struct room room = {0};

	(void)state;
	add(&room, 1, "a", 40);
	add(&room, 2, "b", 90);
	assert_gone(&room, 100, "1", "x-");
}

static void program__has_eight_at_most(void **state)
{
	struct room room = {0};

	(void)state;
	add(&room, 1, "other", 1);
	for (int i = 0; i < 10; i++)
		add(&room, 1, "loop", 1);
	add(&room, 2, "loop", 1);
	assert_gone(&room, 100, "10", "-xx---------");
}

static void signals__are_no_program(void **state)
{
	struct room room = {0};

	(void)state;
	for (int i = 0; i < 12; i++)
		add(&room, KEEP_NO_USER, NULL, 1);
	assert_gone(&room, 100, "11", "------------");
}

static void user__is_read_out_of_about(void **state)
{
	(void)state;
	assert_int_equal(keep_room_user("reason=oom\npid=7\nuid=1000\ntime=x\n"), 1000);
	assert_int_equal(keep_room_user("uid=0\n"), 0);
	assert_int_equal(keep_room_user("reason=signal\n"), KEEP_NO_USER);
	assert_int_equal(keep_room_user(""), KEEP_NO_USER);
	assert_int_equal(keep_room_user("xuid=1\n"), KEEP_NO_USER);
	assert_int_equal(keep_room_user("uid=1"), KEEP_NO_USER);
	assert_int_equal(keep_room_user("uid=-1\n"), KEEP_NO_USER);
	assert_int_equal(keep_room_user("uid=99999999999999999999\n"), KEEP_NO_USER);
}

static int remove_entry(const char *path, const struct stat *stat, int type, struct FTW *ftw)
{
	(void)stat;
	(void)type;
	(void)ftw;
	return remove(path);
}

static void put(const char *kept, const char *name, const char *about, size_t bytes)
{
	char path[PATH_CHARS];
	FILE *out;

	snprintf(path, sizeof(path), "%s/%s", kept, name);
	assert_int_equal(mkdir(path, 0700), 0);
	snprintf(path, sizeof(path), "%s/%s/about", kept, name);
	out = fopen(path, "w");
	assert_non_null(out);
	fprintf(out, "%s", about);
	for (size_t i = strlen(about); i < bytes; i++)
		fputc('\n', out);
	assert_int_equal(fclose(out), 0);
}

static bool is_there(const char *kept, const char *name)
{
	char path[PATH_CHARS];
	struct stat stat;

	snprintf(path, sizeof(path), "%s/%s", kept, name);
	return !lstat(path, &stat);
}

static void make__removes_from_the_disk(void **state)
{
	char kept[] = "/tmp/test_keep_room_XXXXXX";
	OWNED_FD int fd = -1;
	uint32_t removed;

	(void)state;
	assert_non_null(mkdtemp(kept));
	put(kept, "2026-01-01T000000Z-oom-1-a", "uid=1\n", 40);
	put(kept, "2026-01-01T000001Z-oom-2-a", "uid=2\n", 60);
	put(kept, "2026-01-01T000002Z-oom-3-b", "uid=2\n", 60);
	fd = open(kept, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_int_equal(keep_room_make(fd, 100, "2026-01-01T000002Z-oom-3-b", &removed), 0);
	assert_int_equal(removed, 1);
	assert_true(is_there(kept, "2026-01-01T000000Z-oom-1-a"));
	assert_false(is_there(kept, "2026-01-01T000001Z-oom-2-a"));
	assert_true(is_there(kept, "2026-01-01T000002Z-oom-3-b"));
	assert_int_equal(nftw(kept, remove_entry, 16, FTW_DEPTH | FTW_PHYS), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(room__that_is_enough_costs_nothing),
		cmocka_unit_test(room__is_made_by_the_oldest),
		cmocka_unit_test(room__is_made_by_who_takes_most),
		cmocka_unit_test(room__newest_stays_though_its_user_takes_most),
		cmocka_unit_test(program__has_eight_at_most),
		cmocka_unit_test(signals__are_no_program),
		cmocka_unit_test(user__is_read_out_of_about),
		cmocka_unit_test(make__removes_from_the_disk),
	};

	return cmocka_run_group_tests_name("merge/keep_room", tests, NULL, NULL);
}
