/* SPDX-License-Identifier: BSD-2-Clause */
/* sources: agent/keeper.c store/store_child.c store/kept.c base/log.c base/utf8.c base/io.c */
/* The agent beside a child that is this program, and does what the variable KEEP_CHILD says; the
 * table of processes is a fake. */
#include "agent/keeper.h"

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/io.h"
#include "base/log.h"
#include "discover/process_table.h"
#include "discover/process_user.h"
#include "store/keep_child.h"

#define LIMIT_NS (20 * NS_PER_SEC)
#define PROCESSES 80U
#define WALL_NS (1795273200 * NS_PER_SEC) /* of the written window's end */
#define ASKED "asked"
#define PATH_CHARS 128U

/* ---- the child ---- */

bool keep_child_is_meant(const char *argv0)
{
	return argv0 && !strcmp(argv0, KEEP_ARGV0);
}

static void answer(const struct keep_request *request, int err)
{
	struct keep_result result = {.err = err, .kinds = 1, .bytes = 10, .span_ms = 1000};

	kept_name_format(&request->name, result.name);
	(void)send(MERGE_SOCKET_FD, &result, sizeof(result), MSG_NOSIGNAL);
}

/* Notes what is asked for in a file of the store. */
_Noreturn void keep_child_main(void)
{
	const char *mode = getenv("KEEP_CHILD");
	struct keep_request request;
	int fd = openat(MERGE_STORE_FD, ASKED, O_WRONLY | O_CREAT | O_APPEND, 0600);

	if (recv(MERGE_SOCKET_FD, &request, sizeof(request), 0) != sizeof(request) || fd < 0 ||
	    write(fd, &request, sizeof(request)) != sizeof(request))
		_exit(1);
	if (!strcmp(mode, "dies"))
		raise(SIGKILL);
	if (!strcmp(mode, "hangs"))
		for (;;)
			pause();
	if (!strcmp(mode, "nonsense"))
		(void)send(MERGE_SOCKET_FD, "kept", 4, MSG_NOSIGNAL);
	else
		answer(&request, !strcmp(mode, "full") ? -ENOSPC : 0);
	_exit(0);
}

/* ---- processes ---- */

static struct process processes[PROCESSES];

struct process *process_table_find(const struct process_table *table, struct pp_process_id id)
{
	assert_ptr_equal(table, processes);
	return id.tgid < PROCESSES && processes[id.tgid].id.tgid ? &processes[id.tgid] : NULL;
}

uint32_t process_user_kept(struct process *process)
{
	return process->uid;
}

static struct process *add_process(uint32_t pid, uint32_t uid)
{
	struct process *process = &processes[pid];

	*process = (struct process){
		.id = {.tgid = pid, .generation = 1}, .uid = uid, .comm = "python3"};
	return process;
}

/* ---- a store and a keeper ---- */

struct fixture {
	char directory[64];
	int fd;
	struct keeper *keeper;
	struct keeper_view view;
};

static void fixture_init(struct fixture *f, const char *mode)
{
	memset(processes, 0, sizeof(processes));
	snprintf(f->directory, sizeof(f->directory), "/tmp/test_keeper.XXXXXX");
	assert_non_null(mkdtemp(f->directory));
	f->fd = open(f->directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(f->fd >= 0);
	assert_int_equal(setenv("KEEP_CHILD", mode, 1), 0);
	assert_int_equal(keeper_new("/proc/self/exe", f->directory, f->fd, &f->keeper), 0);
	f->view =
		(struct keeper_view){.processes = (const struct process_table *)processes,
				     .written = {.ended_ns = 1000 * NS_PER_SEC, .wall_ns = WALL_NS},
				     .now_ns = 1001 * NS_PER_SEC};
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
	keeper_free(f->keeper);
	close(f->fd);
	assert_int_equal(nftw(f->directory, remove_entry, 16, FTW_DEPTH | FTW_PHYS), 0);
}

/* Returns how many requests the children have had; the last one is in *ret_request. */
static size_t asked(const struct fixture *f, struct keep_request *ret_request)
{
	OWNED_MEM char *bytes = NULL;
	size_t size = 0;

	if (read_file_at(f->fd, ASKED, 1 << 20, &bytes, &size))
		return 0;
	if (size >= sizeof(*ret_request))
		memcpy(ret_request, bytes + size - sizeof(*ret_request), sizeof(*ret_request));
	return size / sizeof(*ret_request);
}

/* Takes turns until so many were kept and have failed. */
static void turn_until(struct fixture *f, uint64_t kept, uint64_t failed)
{
	const uint64_t end_ns = mono_ns() + LIMIT_NS;
	struct keeper_stats stats;

	do {
		f->view.now_ns = mono_ns() + 1000 * NS_PER_SEC; /* no rest */
		keeper_turn(f->keeper, &f->view);
		keeper_get_stats(f->keeper, &stats);
		(void)poll(NULL, 0, 2);
	} while (mono_ns() < end_ns && (stats.kept < kept || stats.failed < failed));
	assert_int_equal(stats.kept, kept);
	assert_int_equal(stats.failed, failed);
}

static void turn_in_vain(struct fixture *f)
{
	struct keep_request request;

	for (int i = 0; i < 5; i++) {
		keeper_turn(f->keeper, &f->view);
		(void)poll(NULL, 0, 2);
	}
	assert_int_equal(asked(f, &request), 0);
}

/* ---- the tests ---- */

static void victim__waits_for_its_end_and_for_its_window(void **state)
{
	struct keep_request request;
	struct process *process;
	struct fixture f;

	(void)state;
	fixture_init(&f, "keeps");
	process = add_process(7, 1000);
	keeper_add_victim(f.keeper, process, 998 * NS_PER_SEC);
	turn_in_vain(&f); /* it runs */
	process->exit_ns = 1000 * NS_PER_SEC + 1;
	turn_in_vain(&f); /* the window with its end is open */
	f.view.written.ended_ns = 1010 * NS_PER_SEC;
	turn_until(&f, 1, 0);
	assert_int_equal(asked(&f, &request), 1);
	assert_int_equal(request.name.reason, KEPT_OOM);
	assert_int_equal(request.name.pid, 7);
	assert_string_equal(request.name.comm, "python3");
	assert_int_equal(request.uid, 1000);
	assert_int_equal(request.max_bytes, KEPT_MAX_BYTES);
	/* Ten seconds before the window's end. */
	assert_int_equal(request.name.time_ms, WALL_NS / NS_PER_MS - 10000);
	assert_int_equal(request.until_ms, WALL_NS / NS_PER_MS - 10000 + 1);
	assert_int_equal(request.from_ms, WALL_NS / NS_PER_MS - 610000);
	fixture_release(&f);
}

static void victim__is_not_kept_from_before_its_program(void **state)
{
	struct keep_request request;
	struct process *process;
	struct fixture f;

	(void)state;
	fixture_init(&f, "keeps");
	process = add_process(7, 1000);
	process->start_ns = 970 * NS_PER_SEC;
	process->exit_ns = 990 * NS_PER_SEC;
	keeper_add_victim(f.keeper, process, 989 * NS_PER_SEC);
	turn_until(&f, 1, 0);
	assert_int_equal(asked(&f, &request), 1);
	assert_int_equal(request.from_ms, WALL_NS / NS_PER_MS - 30000);
	fixture_release(&f);
}

static void victim__that_is_told_twice_is_one(void **state)
{
	struct keep_request request;
	struct process *process;
	struct fixture f;

	(void)state;
	fixture_init(&f, "keeps");
	process = add_process(7, 1000);
	keeper_add_victim(f.keeper, process, 989 * NS_PER_SEC);
	keeper_add_victim(f.keeper, process, 989 * NS_PER_SEC + 5);
	process->exit_ns = 990 * NS_PER_SEC;
	turn_until(&f, 1, 0);
	keeper_turn(f.keeper, &f.view);
	assert_int_equal(asked(&f, &request), 1);
	fixture_release(&f);
}

/* It waits for a disk, or its end was lost. */
static void victim__that_does_not_end_counts_as_ended(void **state)
{
	struct fixture f;

	(void)state;
	fixture_init(&f, "keeps");
	keeper_add_victim(f.keeper, add_process(7, 1000), 900 * NS_PER_SEC);
	f.view.now_ns = 959 * NS_PER_SEC;
	turn_in_vain(&f);
	f.view.now_ns = 960 * NS_PER_SEC;
	keeper_turn(f.keeper, &f.view);
	turn_until(&f, 1, 0);
	fixture_release(&f);
}

static void victims__of_one_user_leave_room_for_others(void **state)
{
	struct keeper_stats stats;
	struct fixture f;

	(void)state;
	fixture_init(&f, "keeps");
	for (uint32_t pid = 1; pid <= 20; pid++)
		keeper_add_victim(f.keeper, add_process(pid, 1000), NS_PER_SEC);
	keeper_get_stats(f.keeper, &stats);
	assert_int_equal(stats.left_out, 4);
	keeper_add_victim(f.keeper, add_process(21, 1001), NS_PER_SEC);
	keeper_get_stats(f.keeper, &stats);
	assert_int_equal(stats.left_out, 4);
	fixture_release(&f);
}

static void victims__are_bounded_in_all(void **state)
{
	struct keeper_stats stats;
	struct fixture f;

	(void)state;
	fixture_init(&f, "keeps");
	for (uint32_t pid = 1; pid <= 70; pid++)
		keeper_add_victim(f.keeper, add_process(pid, pid), NS_PER_SEC);
	keeper_get_stats(f.keeper, &stats);
	assert_int_equal(stats.left_out, 6);
	fixture_release(&f);
}

static void signal__asks_for_a_cut_until_it_is_written(void **state)
{
	struct keep_request request;
	struct fixture f;

	(void)state;
	fixture_init(&f, "keeps");
	f.view.store_max_bytes = 1000000;
	assert_false(keeper_wants_cut(f.keeper, 995 * NS_PER_SEC));
	keeper_add_signal(f.keeper, 1005 * NS_PER_SEC);
	keeper_add_signal(f.keeper, 1006 * NS_PER_SEC);
	assert_true(keeper_wants_cut(f.keeper, 1000 * NS_PER_SEC));
	assert_false(keeper_wants_cut(f.keeper, 1006 * NS_PER_SEC));
	turn_in_vain(&f);
	f.view.written.ended_ns = 1006 * NS_PER_SEC;
	turn_until(&f, 1, 0);
	assert_false(keeper_wants_cut(f.keeper, 1000 * NS_PER_SEC));
	assert_int_equal(asked(&f, &request), 1);
	assert_int_equal(request.name.reason, KEPT_SIGNAL);
	assert_int_equal(request.max_bytes, 100000);
	assert_int_equal(request.until_ms, WALL_NS / NS_PER_MS + 1);
	fixture_release(&f);
	assert_false(keeper_wants_cut(NULL, 0));
}

static void child__that_fails_is_counted(void **state)
{
	static const char *const modes[] = {"dies", "nonsense", "full"};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(modes); i++) {
		struct fixture f;

		fixture_init(&f, modes[i]);
		keeper_add_signal(f.keeper, 900 * NS_PER_SEC);
		turn_until(&f, 0, 1);
		/* The next one is tried. */
		keeper_add_signal(f.keeper, 901 * NS_PER_SEC);
		turn_until(&f, 0, 2);
		fixture_release(&f);
	}
}

static void child__is_one_at_a_time_and_nobody_waits_for_it(void **state)
{
	struct keep_request request;
	struct fixture f;
	uint64_t begin_ns;

	(void)state;
	fixture_init(&f, "hangs");
	keeper_add_signal(f.keeper, 900 * NS_PER_SEC);
	while (!asked(&f, &request))
		keeper_turn(f.keeper, &f.view);
	keeper_add_signal(f.keeper, 901 * NS_PER_SEC);
	begin_ns = mono_ns();
	for (int i = 0; i < 20; i++)
		keeper_turn(f.keeper, &f.view);
	assert_int_equal(asked(&f, &request), 1);
	fixture_release(&f);
	assert_true(mono_ns() - begin_ns < 5 * NS_PER_SEC);
}

static void finish__keeps_what_has_not_ended(void **state)
{
	struct keep_request request;
	struct keeper_stats stats;
	struct fixture f;

	(void)state;
	fixture_init(&f, "keeps");
	keeper_add_victim(f.keeper, add_process(7, 1000), 999 * NS_PER_SEC);
	keeper_add_signal(f.keeper, 1001 * NS_PER_SEC);
	keeper_finish(f.keeper, &f.view);
	keeper_get_stats(f.keeper, &stats);
	assert_int_equal(stats.kept, 2);
	assert_int_equal(asked(&f, &request), 2);
	keeper_finish(NULL, &f.view);
	fixture_release(&f);
}

/* A run that has ended before its first window was written. */
static void finish__without_a_window_counts_what_is_left(void **state)
{
	struct keeper_stats stats;
	struct fixture f;

	(void)state;
	fixture_init(&f, "keeps");
	f.view.written = (struct writer_end){0};
	keeper_add_signal(f.keeper, 1001 * NS_PER_SEC);
	keeper_finish(f.keeper, &f.view);
	keeper_get_stats(f.keeper, &stats);
	assert_int_equal(stats.failed, 1);
	fixture_release(&f);
}

static void tidying__is_done_at_the_start_and_for_a_new_bound(void **state)
{
	struct keep_request request = {0};
	const uint64_t end_ns = mono_ns() + LIMIT_NS;
	struct fixture f;

	(void)state;
	fixture_init(&f, "keeps");
	assert_int_equal(mkdirat(f.fd, KEPT_DIRECTORY, 0700), 0);
	f.view.store_max_bytes = 1000000;
	while (asked(&f, &request) < 2 && mono_ns() < end_ns) {
		f.view.now_ns = mono_ns() + 1000 * NS_PER_SEC;
		f.view.store_max_bytes = asked(&f, &request) ? 500000 : 1000000;
		keeper_turn(f.keeper, &f.view);
		(void)poll(NULL, 0, 2);
	}
	assert_int_equal(asked(&f, &request), 2);
	assert_int_equal(request.is_tidying, 1);
	assert_int_equal(request.max_bytes, 50000);
	fixture_release(&f);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(victim__waits_for_its_end_and_for_its_window),
		cmocka_unit_test(victim__is_not_kept_from_before_its_program),
		cmocka_unit_test(victim__that_is_told_twice_is_one),
		cmocka_unit_test(victim__that_does_not_end_counts_as_ended),
		cmocka_unit_test(victims__of_one_user_leave_room_for_others),
		cmocka_unit_test(victims__are_bounded_in_all),
		cmocka_unit_test(signal__asks_for_a_cut_until_it_is_written),
		cmocka_unit_test(child__that_fails_is_counted),
		cmocka_unit_test(child__is_one_at_a_time_and_nobody_waits_for_it),
		cmocka_unit_test(finish__keeps_what_has_not_ended),
		cmocka_unit_test(finish__without_a_window_counts_what_is_left),
		cmocka_unit_test(tidying__is_done_at_the_start_and_for_a_new_bound),
	};

	(void)argc;
	if (keep_child_is_meant(argv[0]))
		keep_child_main();
	log_set_level(LOG_LEVEL_ERROR);
	return cmocka_run_group_tests_name("agent/keeper", tests, NULL, NULL);
}
