/* SPDX-License-Identifier: BSD-2-Clause */
/* The agent beside a child that is this program: the real one, or one that the variable MERGE_CHILD
 * tells what to do. */
#include "store/merger.h"

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "child/children.h"

#define LIMIT_NS (20 * NS_PER_SEC)

static void say(enum merge_what what, uint64_t start_ms, int err)
{
	const struct merge_message message = {
		.start_ms = start_ms, .what = what, .err = err, .kind = "cpu"};

	if (send(CHILD_STORE_SOCKET_FD, &message, sizeof(message), MSG_NOSIGNAL) < 0)
		_exit(3);
}

/* Dies at the second group, and at the third one, unless it was told to leave these alone. */
static _Noreturn void die_at_a_group(void)
{
	struct merge_message message = {0};

	say(MERGE_BEGINS, 1000, 0);
	say(MERGE_DONE, 1000, 0);
	for (uint64_t start_ms = 2000; start_ms <= 2500; start_ms += 500)
		if (recv(CHILD_STORE_SOCKET_FD, &message, sizeof(message), MSG_DONTWAIT) <= 0 ||
		    message.what != MERGE_LEAVE_ALONE || message.start_ms != start_ms) {
			say(MERGE_BEGINS, start_ms, 0);
			_exit(1);
		}
	say(MERGE_BEGINS, 3000, 0);
	say(MERGE_DONE, 3000, -EBADMSG);
	say(MERGE_BEGINS, 4000, 0);
	say(MERGE_DONE, 4000, -ENOENT);
	say(MERGE_BEGINS, 5000, 0);
	say(MERGE_DONE, 5000, 0);
	for (;;)
		pause();
}

/* Says what no child says. */
static _Noreturn void say_nonsense(void)
{
	const struct merge_message odd[] = {
		{.what = 99, .err = 1, .kind = "cpu"},
		{.what = MERGE_BEGINS, .kind = "../../etc"},
		{.what = MERGE_DONE},
	};
	struct merge_message full = {.what = MERGE_DONE};

	memset(full.kind, 'a', sizeof(full.kind));
	(void)send(CHILD_STORE_SOCKET_FD, "x", 1, MSG_NOSIGNAL);
	for (size_t i = 0; i < ARRAY_SIZE(odd); i++)
		(void)send(CHILD_STORE_SOCKET_FD, &odd[i], sizeof(odd[i]), MSG_NOSIGNAL);
	(void)send(CHILD_STORE_SOCKET_FD, &full, sizeof(full), MSG_NOSIGNAL);
	say(MERGE_DONE, 1, 0);
	for (;;)
		pause();
}

struct fixture {
	char directory[64];
	int fd;
	struct merger *merger;
};

static void fixture_init(struct fixture *f, const char *mode)
{
	snprintf(f->directory, sizeof(f->directory), "/tmp/test_merger.XXXXXX");
	assert_non_null(mkdtemp(f->directory));
	f->fd = open(f->directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(f->fd >= 0);
	assert_int_equal(setenv("MERGE_CHILD", mode, 1), 0);
	assert_int_equal(merger_new("/proc/self/exe", f->directory, f->fd, &f->merger), 0);
}

static int remove_entry(const char *path, const struct stat *stat, int type, struct FTW *ftw)
{
	(void)stat;
	(void)type;
	(void)ftw;
	return remove(path);
}

static void fixture_release(struct fixture *f)
{
	merger_free(f->merger);
	close(f->fd);
	assert_int_equal(nftw(f->directory, remove_entry, 16, FTW_DEPTH | FTW_PHYS), 0);
}

/* Calls the merger until it has so many starts, merged and refused groups. */
static void turn_until(struct fixture *f, const struct merger_stats *wanted)
{
	const uint64_t end_ns = mono_ns() + LIMIT_NS;
	struct merger_stats stats;

	do {
		merger_turn(f->merger);
		merger_get_stats(f->merger, &stats);
		(void)poll(NULL, 0, 5);
	} while (mono_ns() < end_ns &&
		 (stats.starts < wanted->starts || stats.merged < wanted->merged ||
		  stats.refused < wanted->refused));
	assert_int_equal(stats.starts, wanted->starts);
	assert_int_equal(stats.merged, wanted->merged);
	assert_int_equal(stats.refused, wanted->refused);
}

static void merger__child_that_dies_is_replaced_and_spared_the_group(void **state)
{
	/* The first one thrice, as each child begins anew, and the last one; refused: two fatal
	 * ones, the broken one. */
	static const struct merger_stats wanted = {.starts = 3, .merged = 4, .refused = 3};
	struct fixture f;

	(void)state;
	fixture_init(&f, "dies");
	turn_until(&f, &wanted);
	fixture_release(&f);
}

/* What its socket's number belongs to by then is somebody else's. */
static void merger_free__after_the_child_has_died_closes_nothing_again(void **state)
{
	static const struct merger_stats wanted = {.starts = 1, .merged = 1, .refused = 1};
	struct fixture f;
	int fd;

	(void)state;
	fixture_init(&f, "dies");
	turn_until(&f, &wanted);
	fd = fcntl(f.fd, F_DUPFD_CLOEXEC, 0);
	assert_true(fd >= 0);
	fixture_release(&f);
	assert_int_equal(close(fd), 0);
}

static void merger__nonsense_is_not_believed(void **state)
{
	static const struct merger_stats wanted = {.starts = 1, .merged = 1, .refused = 0};
	struct fixture f;

	(void)state;
	fixture_init(&f, "nonsense");
	turn_until(&f, &wanted);
	fixture_release(&f);
}

static void put(const struct fixture *f, const char *name, const char *text)
{
	char path[256];
	FILE *file;

	snprintf(path, sizeof(path), "%s/2026-01-31", f->directory);
	(void)mkdir(path, 0700);
	snprintf(path, sizeof(path), "%s/2026-01-31/22", f->directory);
	(void)mkdir(path, 0700);
	snprintf(path, sizeof(path), "%s/2026-01-31/22/%s", f->directory, name);
	file = fopen(path, "w");
	assert_non_null(file);
	fputs(text, file);
	fclose(file);
}

/* The real one, in its sandbox, at files that are no profiles. */
static void merger__child_refuses_what_is_broken_and_stays(void **state)
{
	static const struct merger_stats wanted = {.starts = 1, .merged = 0, .refused = 1};
	struct fixture f;

	(void)state;
	fixture_init(&f, "");
	put(&f, "1769900410000-10000-cpu.pb.gz", "no profile");
	put(&f, "1769900420000-10000-cpu.pb.gz", "no profile");
	turn_until(&f, &wanted);
	fixture_release(&f);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(merger__child_that_dies_is_replaced_and_spared_the_group),
		cmocka_unit_test(merger_free__after_the_child_has_died_closes_nothing_again),
		cmocka_unit_test(merger__nonsense_is_not_believed),
		cmocka_unit_test(merger__child_refuses_what_is_broken_and_stays),
	};
	const char *mode = getenv("MERGE_CHILD");

	(void)argc;
	if (child_named(argv[0]) == CHILD_STORE) {
		if (mode && !strcmp(mode, "dies"))
			die_at_a_group();
		if (mode && !strcmp(mode, "nonsense"))
			say_nonsense();
		merge_child_main();
	}
	log_set_level(LOG_LEVEL_ERROR);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
