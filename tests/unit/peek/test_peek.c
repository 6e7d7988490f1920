/* SPDX-License-Identifier: BSD-2-Clause */
/* The client with real children: this program is its own child, good or bad as TEST_CHILD says. */
#include "peek/client.h"

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "child/sandbox.h"
#include "child/worker.h"
#include "peek/child.h"

#define US ((pid_t)getpid())
#define LARGE_BYTES (3U * PEEK_MEMORY_BYTES + 100)

/* ---- children ---- */

static void answer_nonsense(void)
{
	struct peek_request request;
	struct child_reply reply = {0};

	while (recv(CHILD_SOCKET_FD, &request, sizeof(request), 0) > 0) {
		reply.serial = request.serial + 1;
		send(CHILD_SOCKET_FD, &reply, sizeof(reply), 0);
	}
}

/* One request, and more CPU time for it than the deadline allows. */
static void answer_after_work(void)
{
	struct peek_request request;
	struct child_reply reply = {0};

	if (recv(CHILD_SOCKET_FD, &request, sizeof(request), 0) < 0)
		return;
	for (const uint64_t end_ns = mono_ns() + 2 * PEEK_DEADLINE_NS; mono_ns() < end_ns;)
		;
	reply.serial = request.serial;
	send(CHILD_SOCKET_FD, &reply, sizeof(reply), 0);
}

static void be_child(void)
{
	const char *how = getenv("TEST_CHILD");

	if (!how)
		peek_child_main();
	if (!strcmp(how, "slow")) {
		usleep(PEEK_DEADLINE_NS * 2 / 1000);
		peek_child_main();
	}
	if (strcmp(how, "ends"))
		child_answer(&(struct child_reply){.serial = CHILD_HELLO}, -1);
	if (!strcmp(how, "silent"))
		pause();
	if (!strcmp(how, "busy"))
		answer_after_work();
	if (!strcmp(how, "nonsense"))
		answer_nonsense();
	_exit(0);
}

static struct peek *with_child(const char *how)
{
	struct peek *peek = NULL;

	if (how)
		setenv("TEST_CHILD", how, 1);
	else
		unsetenv("TEST_CHILD");
	assert_int_equal(peek_new("/proc/self/exe", &peek), 0);
	return peek;
}

static struct peek_stats stats_of(const struct peek *peek)
{
	struct peek_stats stats;

	peek_get_stats(peek, &stats);
	return stats;
}

static int read_one(struct peek *peek, pid_t tid, const void *from, void *to, size_t size)
{
	const struct process_piece piece = {(uintptr_t)from, to, size};

	return peek_read(peek, tid, &piece, 1);
}

/* ---- reading ---- */

static void peek_read__pieces_come_from_the_process(void **state)
{
	OWNED(peek) struct peek *peek = with_child(NULL);
	struct process_piece piece[PROCESS_PIECES_MAX];
	uint64_t from[PROCESS_PIECES_MAX], to[PROCESS_PIECES_MAX] = {0};

	(void)state;
	for (size_t i = 0; i < PROCESS_PIECES_MAX; i++) {
		from[i] = i * 77 + 1;
		piece[i] = (struct process_piece){(uintptr_t)&from[i], &to[i], sizeof(to[i])};
	}
	assert_int_equal(peek_read(peek, US, piece, PROCESS_PIECES_MAX), 0);
	assert_memory_equal(from, to, sizeof(from));
	assert_int_equal(stats_of(peek).starts, 1);
}

static void peek_read__more_than_the_shared_memory_takes_several_requests(void **state)
{
	OWNED(peek) struct peek *peek = with_child(NULL);
	OWNED_MEM uint8_t *from = malloc(LARGE_BYTES), *to = calloc(1, LARGE_BYTES);
	const struct process_piece piece[] = {{(uintptr_t)from, to, 10},
					      {(uintptr_t)from + 10, to + 10, LARGE_BYTES - 20},
					      {(uintptr_t)from + LARGE_BYTES - 10,
					       to + LARGE_BYTES - 10, 10}};

	(void)state;
	assert_true(from && to);
	for (size_t i = 0; i < LARGE_BYTES; i++)
		from[i] = (uint8_t)(i * 31 >> 3);
	assert_int_equal(peek_read(peek, US, piece, 3), 0);
	assert_memory_equal(from, to, LARGE_BYTES);
}

static void peek_read__memory_that_is_not_mapped_is_efault(void **state)
{
	OWNED(peek) struct peek *peek = with_child(NULL);
	uint8_t *page =
		mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint8_t to[64];

	(void)state;
	assert_int_equal(munmap(page + 4096, 4096), 0);
	assert_int_equal(read_one(peek, US, page + 4096, to, 1), -EFAULT);
	assert_int_equal(read_one(peek, US, page + 4090, to, 64), -EFAULT);
	assert_int_equal(read_one(peek, US, (void *)-4096UL, to, 8), -EFAULT);
	assert_int_equal(read_one(peek, US, page + 4090, to, 6), 0);
	munmap(page, 4096);
}

static void peek_read__process_that_has_ended_is_esrch(void **state)
{
	OWNED(peek) struct peek *peek = with_child(NULL);
	const pid_t pid = fork();
	uint8_t to;

	(void)state;
	if (!pid)
		_exit(0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	assert_int_equal(read_one(peek, pid, &to, &to, 1), -ESRCH);
}

static void process_access_by__takes_all_reads(void **state)
{
	OWNED(peek) struct peek *peek = with_child(NULL);
	uint64_t from = 12345, to = 0;

	(void)state;
	process_access_by(&peek_access, peek);
	assert_int_equal(process_read(US, (uintptr_t)&from, &to, sizeof(to)), 0);
	process_access_by(NULL, NULL);
	assert_int_equal(to, from);
	assert_int_equal(stats_of(peek).reads, 1);
	assert_int_equal(process_read(US, (uintptr_t)&from, &to, sizeof(to)), 0);
	assert_int_equal(stats_of(peek).reads, 1);
}

/* ---- mappings ---- */

static void peek_read_maps__text_is_that_of_the_process(void **state)
{
	OWNED(peek) struct peek *peek = with_child(NULL);
	OWNED_MEM char *text = NULL, *same = NULL;
	const size_t page = (size_t)sysconf(_SC_PAGESIZE), pages = 8000;
	size_t size, same_size;
	uint8_t *memory = mmap(NULL, pages * page, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	(void)state;
	assert_true(memory != MAP_FAILED);
	/* So many mappings that the text takes several requests. */
	for (size_t i = 0; i < pages; i += 2)
		assert_int_equal(mprotect(memory + i * page, page, PROT_NONE), 0);
	assert_int_equal(peek_read_maps(peek, US, 64U << 20, &text, &size), 0);
	assert_int_equal(munmap(memory, pages * page), 0);
	assert_true(size > PEEK_MEMORY_BYTES);
	assert_int_equal(strlen(text), size);
	assert_int_equal(text[size - 1], '\n');
	assert_int_equal(peek_read_maps(peek, getppid(), 64U << 20, &same, &same_size), 0);
	assert_string_not_equal(text, same);
	assert_int_equal(stats_of(peek).reads, 2);
	assert_int_equal(stats_of(peek).starts, 1);
}

static void peek_read_maps__longer_text_than_wanted_is_efbig(void **state)
{
	OWNED(peek) struct peek *peek = with_child(NULL);
	char *text = NULL;
	size_t size;

	(void)state;
	assert_int_equal(peek_read_maps(peek, US, 100, &text, &size), -EFBIG);
	assert_null(text);
}

/* ---- texts and directories ---- */

static void peek_read_text__both_texts_are_those_of_the_process(void **state)
{
	OWNED(peek) struct peek *peek = with_child(NULL);
	OWNED_MEM char *line = NULL, *environment = NULL, *wanted = NULL;
	size_t size, wanted_size;

	(void)state;
	assert_int_equal(peek_read_text(peek, US, PROCESS_COMMAND_LINE, 4096, &line, &size), 0);
	assert_int_equal(read_file("/proc/self/cmdline", 4096, &wanted, &wanted_size), 0);
	assert_int_equal(size, wanted_size);
	assert_memory_equal(line, wanted, size + 1);
	free(TAKE(wanted));
	assert_int_equal(peek_read_text(peek, US, PROCESS_ENVIRONMENT, PROCESS_TEXT_MAX_BYTES,
					&environment, &size),
			 0);
	assert_int_equal(read_file("/proc/self/environ", 1U << 20, &wanted, &wanted_size), 0);
	assert_int_equal(size, wanted_size);
	assert_memory_equal(environment, wanted, size + 1);
}

static void peek_read_text__is_cut_where_it_is_too_long(void **state)
{
	OWNED(peek) struct peek *peek = with_child(NULL);
	OWNED_MEM char *line = NULL;
	size_t size;

	(void)state;
	assert_int_equal(peek_read_text(peek, US, PROCESS_COMMAND_LINE, 3, &line, &size), 0);
	assert_int_equal(size, 3);
	assert_int_equal(line[3], '\0');
}

static void peek_read_text__process_that_has_ended_is_esrch(void **state)
{
	OWNED(peek) struct peek *peek = with_child(NULL);
	const pid_t pid = fork();
	char *line = NULL;
	size_t size;

	(void)state;
	if (!pid)
		_exit(0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	assert_int_equal(peek_read_text(peek, pid, PROCESS_COMMAND_LINE, 99, &line, &size), -ESRCH);
	assert_null(line);
}

/* The directory need not be there: what matters is that the child lives on. */
static void peek_list_logs__answers_as_the_directory_is(void **state)
{
	OWNED(peek) struct peek *peek = with_child(NULL);

	(void)state;
	for (size_t i = 0; i < PROCESS_LOG_DIRECTORIES; i++) {
		const enum process_log_directory which = (enum process_log_directory)i;
		OWNED_MEM char *entries = NULL, *wanted = NULL;
		size_t size = 0, wanted_size = 0;
		const int err = process_list_logs(which, &wanted, &wanted_size);

		assert_int_equal(peek_list_logs(peek, which, &entries, &size), err);
		assert_int_equal(size, wanted_size);
	}
	assert_int_equal(stats_of(peek).starts, 1);
}

/* Whoever takes the lock of its mappings would wait. */
static void mappings__of_a_process_that_was_late_are_left_alone(void **state)
{
	OWNED(peek) struct peek *peek = with_child("silent");
	char *text = NULL;
	size_t size;

	(void)state;
	assert_int_equal(peek_read_maps(peek, US, 64U << 20, &text, &size), -ETIMEDOUT);
	assert_int_equal(stats_of(peek).late, 1);
	unsetenv("TEST_CHILD");
	assert_int_equal(peek_read_maps(peek, US, 64U << 20, &text, &size), -ETIMEDOUT);
	assert_int_equal(stats_of(peek).late, 1);
	assert_int_equal(stats_of(peek).left_alone, 1);
	assert_int_equal(stats_of(peek).starts, 1);
}

/* ---- children that fail ---- */

static void peek_read__late_child_is_replaced_and_the_process_left_alone(void **state)
{
	OWNED(peek) struct peek *peek = with_child("silent");
	const uint64_t start_ns = mono_ns();
	uint64_t from = 7, to = 0;

	(void)state;
	assert_int_equal(read_one(peek, US, &from, &to, 8), -ETIMEDOUT);
	assert_true(mono_ns() - start_ns >= PEEK_DEADLINE_NS);
	assert_true(mono_ns() - start_ns < 10 * PEEK_DEADLINE_NS);
	assert_int_equal(stats_of(peek).late, 1);
	unsetenv("TEST_CHILD");
	assert_int_equal(read_one(peek, US, &from, &to, 8), -ETIMEDOUT);
	assert_int_equal(stats_of(peek).late, 1);
	assert_int_equal(stats_of(peek).left_alone, 1);
	/* Others are read on. */
	assert_int_equal(read_one(peek, getppid(), &from, &to, 8) == -ETIMEDOUT, 0);
	assert_int_equal(stats_of(peek).starts, 2);
}

/* Returns a process of a user's that only waits. */
static pid_t start_of(uid_t user)
{
	int said[2];
	char byte;
	pid_t pid;

	assert_int_equal(pipe(said), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		if (setresuid(user, user, user) || prctl(PR_SET_DUMPABLE, 1) ||
		    write(said[1], "", 1) != 1)
			_exit(1);
		pause();
		_exit(0);
	}
	close(said[1]);
	assert_int_equal(read(said[0], &byte, 1), 1);
	close(said[0]);
	return pid;
}

/* Returns how long the read took that was late. A child that starts slowly is awaited in others. */
static uint64_t read_late(struct peek *peek, pid_t tid)
{
	const uint64_t late = stats_of(peek).late;
	uint64_t from = 7, to = 0, start_ns;

	do {
		start_ns = mono_ns();
		assert_int_equal(read_one(peek, tid, &from, &to, 8), -ETIMEDOUT);
	} while (stats_of(peek).late == late);
	return mono_ns() - start_ns;
}

static void peek_read__user_of_a_late_process_gets_a_shorter_deadline(void **state)
{
	OWNED(peek) struct peek *peek = with_child("silent");
	uint64_t shortest_ns = UINT64_MAX;
	pid_t pid[LATE_USER_MAX];

	(void)state;
	if (geteuid())
		skip();
	for (size_t i = 0; i < ARRAY_SIZE(pid); i++)
		pid[i] = start_of(65534);
	assert_true(read_late(peek, pid[0]) >= PEEK_DEADLINE_NS);
	for (size_t i = 1; i < ARRAY_SIZE(pid); i++) {
		uint64_t took_ns = read_late(peek, pid[i]);

		if (took_ns < shortest_ns)
			shortest_ns = took_ns;
	}
	assert_true(shortest_ns < PEEK_DEADLINE_NS);
	for (size_t i = 0; i < ARRAY_SIZE(pid); i++) {
		kill(pid[i], SIGKILL);
		waitpid(pid[i], NULL, 0);
	}
}

static void peek_read__child_that_ends_is_started_again_once_a_second(void **state)
{
	static const char *const bad[] = {"ends", "nonsense"};
	uint64_t from = 7, to = 0;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		OWNED(peek) struct peek *peek = with_child(bad[i]);

		for (int k = 0; k < 10; k++)
			assert_int_equal(read_one(peek, US, &from, &to, 8), -ETIMEDOUT);
		assert_int_equal(stats_of(peek).starts, 1);
		assert_int_equal(stats_of(peek).late, 0);
		assert_int_equal(stats_of(peek).left_alone, 10);
	}
}

/* It has a process to read that answers, and no CPU, or a quota of it. */
static void peek_read__child_that_lacks_the_cpu_is_given_more_time(void **state)
{
	OWNED(peek) struct peek *peek = with_child("busy");
	uint64_t from = 7, to = 0;

	(void)state;
	peek_await(peek);
	assert_int_equal(read_one(peek, US, &from, &to, 8), 0);
	assert_int_equal(stats_of(peek).late, 0);
}

static void peek_await__child_that_starts_slowly_is_ready_then(void **state)
{
	OWNED(peek) struct peek *peek = with_child("slow");
	uint64_t from = 7, to = 0;

	(void)state;
	peek_await(peek);
	assert_int_equal(read_one(peek, US, &from, &to, 8), 0);
	assert_int_equal(to, 7);
	assert_int_equal(stats_of(peek).left_alone, 0);
	peek_await(peek); /* it is ready */
	assert_int_equal(stats_of(peek).starts, 1);
}

static void peek_await__child_that_ends_is_not_awaited(void **state)
{
	OWNED(peek) struct peek *peek = with_child("ends");
	const uint64_t start_ns = mono_ns();

	(void)state;
	peek_await(peek);
	assert_true(mono_ns() - start_ns < WORKER_START_NS / 2);
}

/* A program may take long to start on a busy machine. */
static void peek_read__child_that_starts_slowly_is_no_fault_of_the_process(void **state)
{
	OWNED(peek) struct peek *peek = with_child("slow");
	uint64_t from = 7, to = 0;
	int err = -ETIMEDOUT;

	(void)state;
	for (int i = 0; i < 100 && err == -ETIMEDOUT; i++) {
		err = read_one(peek, US, &from, &to, 8);
		usleep(20000);
	}
	assert_int_equal(err, 0);
	assert_int_equal(to, 7);
	assert_int_equal(stats_of(peek).late, 0);
	assert_int_equal(stats_of(peek).starts, 1);
}

static void peek_read__program_that_cannot_be_started_is_etimedout(void **state)
{
	OWNED(peek) struct peek *peek = NULL;
	uint64_t from = 7, to = 0;

	(void)state;
	assert_int_equal(peek_new("/nonexistent/program", &peek), 0);
	assert_int_equal(read_one(peek, US, &from, &to, 8), -ETIMEDOUT);
	assert_int_equal(stats_of(peek).starts, 0);
}

/* Else one that does not know that it is a child would start its own, and so on. */
static void peek_read__child_starts_no_children(void **state)
{
	OWNED(peek) struct peek *peek = NULL;
	uint64_t from = 7, to = 0;

	(void)state;
	setenv("PYPROFD_CHILD", "1", 1);
	peek = with_child(NULL);
	peek_await(peek);
	assert_int_equal(read_one(peek, US, &from, &to, 8), -ETIMEDOUT);
	unsetenv("PYPROFD_CHILD");
	assert_int_equal(stats_of(peek).starts, 0);
}

/* ---- the sandbox ---- */

/* Returns how a process ends that makes a system call in the sandbox. */
static int status_after(long call)
{
	const pid_t pid = fork();
	int status = 0;

	if (!pid) {
		if (sandbox_enter(CHILD_MEMORY, NULL, NULL))
			_exit(1);
		syscall(call, 0, 0, 0, 0, 0, 0);
		syscall(SYS_exit_group, 0); /* a sanitizer's _exit() does more */
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return status;
}

static void sandbox_enter__only_reads_and_answers_are_left(void **state)
{
	static const long forbidden[] = {SYS_openat /* flags 0 */,
					 SYS_write,
					 SYS_clone,
					 SYS_execve,
					 SYS_mmap,
					 SYS_mprotect,
					 SYS_ptrace,
					 SYS_socket,
					 SYS_kill,
					 SYS_process_vm_writev};
	int status = status_after(SYS_close);

	(void)state;
	assert_true(WIFEXITED(status) && !WEXITSTATUS(status));
	for (size_t i = 0; i < ARRAY_SIZE(forbidden); i++) {
		status = status_after(forbidden[i]);
		assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGSYS);
	}
}

/* ---- who was late ---- */

static void late_table__process_is_left_alone_for_a_time(void **state)
{
	struct late_table table = {0};
	const uint64_t now = 1000 * NS_PER_SEC;

	(void)state;
	assert_false(late_table_has_task(&table, 5, now));
	late_table_add(&table, 5, 1000, now);
	assert_true(late_table_has_task(&table, 5, now + LATE_ALONE_NS - 1));
	assert_false(late_table_has_task(&table, 5, now + LATE_ALONE_NS));
	assert_false(late_table_has_task(&table, 6, now));
	assert_false(late_table_has_user(&table, 1000, now));
}

static void late_table__user_of_several_is_left_alone_but_not_root(void **state)
{
	struct late_table table = {0};
	const uint64_t now = 1000 * NS_PER_SEC;

	(void)state;
	for (uint32_t i = 0; i < 2 * LATE_USER_MAX; i++) {
		late_table_add(&table, (pid_t)(10 + i), 0, now);
		late_table_add(&table, (pid_t)(100 + i), 1000, now);
		assert_int_equal(late_table_has_user(&table, 1000, now), i + 1 >= LATE_USER_MAX);
	}
	assert_false(late_table_has_user(&table, 0, now));
	assert_int_equal(table.users_until_ns, now + LATE_USER_ALONE_NS);
	assert_false(late_table_has_user(&table, 1000, now + LATE_USER_ALONE_NS));
	/* Seldom ones do not add up. */
	for (uint64_t i = 1; i < 10; i++) {
		late_table_add(&table, 1, 1001, now + i * 2 * LATE_USER_ALONE_NS);
		assert_false(late_table_has_user(&table, 1001, now + i * 2 * LATE_USER_ALONE_NS));
	}
}

static void late_table__user_of_a_late_process_is_suspected_but_not_root(void **state)
{
	struct late_table table = {0};
	const uint64_t now = NS_PER_SEC;

	(void)state;
	late_table_add(&table, 10, 0, now);
	assert_int_equal(table.suspects_until_ns, 0);
	late_table_add(&table, 11, 1000, now);
	assert_false(late_table_suspects(&table, 0, now));
	assert_false(late_table_suspects(&table, 1001, now));
	assert_true(late_table_suspects(&table, 1000, now));
	assert_true(late_table_suspects(&table, 1000, now + LATE_USER_ALONE_NS - 1));
	assert_false(late_table_suspects(&table, 1000, now + LATE_USER_ALONE_NS));
	assert_int_equal(table.suspects_until_ns, now + LATE_USER_ALONE_NS);
}

static void late_table__new_entries_take_the_place_of_the_first(void **state)
{
	struct late_table table = {0};

	(void)state;
	for (uint32_t i = 0; i <= LATE_ENTRIES; i++)
		late_table_add(&table, (pid_t)(10 + i), 0, NS_PER_SEC + i);
	assert_false(late_table_has_task(&table, 10, NS_PER_SEC));
	for (uint32_t i = 1; i <= LATE_ENTRIES; i++)
		assert_true(late_table_has_task(&table, (pid_t)(10 + i), NS_PER_SEC));
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(peek_read__pieces_come_from_the_process),
		cmocka_unit_test(peek_read__more_than_the_shared_memory_takes_several_requests),
		cmocka_unit_test(peek_read__memory_that_is_not_mapped_is_efault),
		cmocka_unit_test(peek_read__process_that_has_ended_is_esrch),
		cmocka_unit_test(process_access_by__takes_all_reads),
		cmocka_unit_test(peek_read__child_that_lacks_the_cpu_is_given_more_time),
		cmocka_unit_test(peek_await__child_that_starts_slowly_is_ready_then),
		cmocka_unit_test(peek_await__child_that_ends_is_not_awaited),
		cmocka_unit_test(peek_read_maps__text_is_that_of_the_process),
		cmocka_unit_test(peek_read_maps__longer_text_than_wanted_is_efbig),
		cmocka_unit_test(peek_read_text__both_texts_are_those_of_the_process),
		cmocka_unit_test(peek_read_text__is_cut_where_it_is_too_long),
		cmocka_unit_test(peek_read_text__process_that_has_ended_is_esrch),
		cmocka_unit_test(peek_list_logs__answers_as_the_directory_is),
		cmocka_unit_test(mappings__of_a_process_that_was_late_are_left_alone),
		cmocka_unit_test(peek_read__late_child_is_replaced_and_the_process_left_alone),
		cmocka_unit_test(peek_read__user_of_a_late_process_gets_a_shorter_deadline),
		cmocka_unit_test(peek_read__child_that_ends_is_started_again_once_a_second),
		cmocka_unit_test(peek_read__child_that_starts_slowly_is_no_fault_of_the_process),
		cmocka_unit_test(peek_read__program_that_cannot_be_started_is_etimedout),
		cmocka_unit_test(peek_read__child_starts_no_children),
		cmocka_unit_test(sandbox_enter__only_reads_and_answers_are_left),
		cmocka_unit_test(late_table__process_is_left_alone_for_a_time),
		cmocka_unit_test(late_table__user_of_several_is_left_alone_but_not_root),
		cmocka_unit_test(late_table__user_of_a_late_process_is_suspected_but_not_root),
		cmocka_unit_test(late_table__new_entries_take_the_place_of_the_first),
	};

	(void)argc;
	if (child_named(argv[0]) == CHILD_MEMORY)
		be_child();
	return cmocka_run_group_tests_name("peek/peek", tests, NULL, NULL);
}
