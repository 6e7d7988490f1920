/* SPDX-License-Identifier: BSD-2-Clause */
/* Children are this program, which looks at what it was given and says so by its exit status. */
#include "child/spawn.h"

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"

#define NOWHERE "/nonexistent/program"

/* ---- in the child ---- */

static int first_byte(int fd)
{
	char byte = 0;

	return read(fd, &byte, 1) == 1 ? byte : -1;
}

/* Returns 0 when all is as the row says; else which of them is not. */
static int look(enum child_kind kind)
{
	struct sigaction action;
	struct stat stat;
	sigset_t blocked;

	if (sigprocmask(SIG_SETMASK, NULL, &blocked) || !sigismember(&blocked, SIGUSR2))
		return 1; /* the starter's */
	if (sigaction(SIGUSR2, NULL, &action) || action.sa_handler != SIG_DFL)
		return 2;
	if (kind == CHILD_MEMORY) {
		if (first_byte(CHILD_SOCKET_FD) != 'a' || first_byte(CHILD_MEMORY_FD) != 'b')
			return 3;
		return getenv("TEST_SPAWN") && getenv("PYPROFD_CHILD") ? 0 : 4;
	}
	for (int fd = 0; fd < CHILD_GAUGES_FD; fd++)
		if (fstat(fd, &stat) || !S_ISCHR(stat.st_mode))
			return 5;
	if (first_byte(CHILD_GAUGES_FD) != 'a')
		return 6;
	return getenv("TEST_SPAWN") || !getenv("LD_LIBRARY_PATH") ? 7 : 0;
}

/* Of kinds whose program is given words. */
static int look_as_program(const char *word)
{
	sigset_t blocked;
	int signal = 0;

	if (sigprocmask(SIG_SETMASK, NULL, &blocked) || sigismember(&blocked, SIGUSR2))
		return 11;
	if (getenv("PYPROFD_CHILD"))
		return 12;
	if (!strcmp(word, "command"))
		return getenv("PREPARED") ? 0 : 13;
	if (first_byte(STDERR_FILENO) != 'a' || first_byte(CHILD_CAPTURE_FD) != 'b')
		return 14;
	if (getpgrp() != getpid())
		return 15;
	return prctl(PR_GET_PDEATHSIG, &signal) || signal != SIGTERM ? 16 : 0;
}

/* ---- the starter ---- */

static void handle(int signal)
{
	(void)signal;
}

static int setup(void **state)
{
	sigset_t blocked;

	(void)state;
	setenv("TEST_SPAWN", "1", 1);
	setenv("LD_LIBRARY_PATH", "/nowhere", 1);
	unsetenv("PYPROFD_CHILD");
	sigemptyset(&blocked);
	sigaddset(&blocked, SIGUSR2);
	sigprocmask(SIG_SETMASK, &blocked, NULL);
	signal(SIGUSR2, handle);
	return 0;
}

/* A descriptor with this number, or any when it is -1, from which that byte is read. */
static int byte_at(char byte, int number)
{
	int ends[2];

	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	assert_int_equal(write(ends[1], &byte, 1), 1);
	close(ends[1]);
	if (number >= 0 && number != ends[0]) {
		assert_int_equal(dup3(ends[0], number, O_CLOEXEC), number);
		close(ends[0]);
		return number;
	}
	return ends[0];
}

static int status_of(pid_t pid)
{
	int status;

	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static void spawn__gives_what_the_row_says(void **state)
{
	const int fd[] = {byte_at('a', -1), byte_at('b', -1)};
	const struct child_start start = {.fd = fd};
	pid_t pid;

	(void)state;
	assert_int_equal(child_spawn(CHILD_MEMORY, &start, &pid), 0);
	assert_int_equal(status_of(pid), 0);
	close(fd[0]);
	close(fd[1]);
}

/* Those that have each other's numbers here. */
static void spawn__descriptors_may_be_in_each_others_way(void **state)
{
	const int kept[] = {fcntl(3, F_DUPFD_CLOEXEC, 50), fcntl(4, F_DUPFD_CLOEXEC, 50)};
	const int fd[] = {byte_at('a', 4), byte_at('b', 3)};
	const struct child_start start = {.fd = fd};
	pid_t pid;

	(void)state;
	assert_int_equal(child_spawn(CHILD_MEMORY, &start, &pid), 0);
	assert_int_equal(status_of(pid), 0);
	for (int i = 0; i < 2; i++) {
		close(3 + i);
		if (kept[i] >= 0)
			dup2(kept[i], 3 + i);
		close(kept[i]);
	}
}

static void spawn__bare_child_gets_no_secrets(void **state)
{
	const int fd = byte_at('a', -1);
	const struct child_start start = {.fd = &fd};
	pid_t pid;

	(void)state;
	assert_int_equal(child_spawn(CHILD_GAUGES, &start, &pid), 0);
	assert_int_equal(status_of(pid), 0);
	close(fd);
}

static void spawn__program_that_is_missing_is_an_error(void **state)
{
	const int fd[] = {STDIN_FILENO, STDIN_FILENO};
	const struct child_start start = {.program = NOWHERE, .fd = fd};
	pid_t pid = 1;

	(void)state;
	assert_int_equal(child_spawn(CHILD_MEMORY, &start, &pid), -ENOENT);
	assert_int_equal(pid, 1);
	/* Nothing is left to be awaited. */
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
}

static void tell(void *context, int err)
{
	*(int *)context = err;
	_exit(err == -ENOENT ? 99 : 98);
}

static void spawn__forked_one_tells_by_its_end(void **state)
{
	char *const words[] = {(char *)NOWHERE, NULL};
	struct child_start start = {.program = NOWHERE, .argv = words};
	int seen = 0;
	pid_t pid;

	(void)state;
	assert_int_equal(child_spawn(CHILD_COMMAND, &start, &pid), 0);
	assert_int_equal(status_of(pid), CHILD_EXIT_NOT_FOUND);
	start.tell = tell;
	start.context = &seen;
	assert_int_equal(child_spawn(CHILD_COMMAND, &start, &pid), 0);
	assert_int_equal(status_of(pid), 99);
	assert_int_equal(seen, 0); /* its memory is its own */
}

static int prepare(void *context)
{
	return setenv("PREPARED", context, 1) ? -errno : 0;
}

static int refuse(void *context)
{
	(void)context;
	return -EPERM;
}

static void spawn__command_is_prepared_and_begins_as_from_a_shell(void **state)
{
	char *const words[] = {(char *)"command", NULL};
	char yes[] = "1";
	struct child_start start = {
		.program = "/proc/self/exe", .argv = words, .prepare = prepare, .context = yes};
	pid_t pid;

	(void)state;
	assert_int_equal(child_spawn(CHILD_COMMAND, &start, &pid), 0);
	assert_int_equal(status_of(pid), 0);
	start.prepare = refuse;
	assert_int_equal(child_spawn(CHILD_COMMAND, &start, &pid), 0);
	assert_int_equal(status_of(pid), CHILD_EXIT_NOT_RUN);
}

static void spawn__capture_ends_with_its_starter_in_a_group_of_its_own(void **state)
{
	char *const words[] = {(char *)"capture", NULL};
	const int fd[] = {byte_at('a', -1), byte_at('b', -1)};
	const struct child_start start = {.program = "/proc/self/exe", .argv = words, .fd = fd};
	pid_t pid;

	(void)state;
	assert_int_equal(child_spawn(CHILD_CAPTURE, &start, &pid), 0);
	assert_int_equal(status_of(pid), 0);
	close(fd[0]);
	close(fd[1]);
}

/* Else one that does not know that it is a child would start its own, and so on. */
static void spawn__child_starts_no_children(void **state)
{
	const int fd[] = {STDIN_FILENO, STDIN_FILENO};
	const struct child_start start = {.fd = fd};
	pid_t pid;

	(void)state;
	setenv("PYPROFD_CHILD", "1", 1);
	assert_int_equal(child_spawn(CHILD_MEMORY, &start, &pid), -ELOOP);
	unsetenv("PYPROFD_CHILD");
}

static void find_program__is_beside_this_one_or_in_path(void **state)
{
	char path[CHILD_PROGRAM_BYTES], wanted[CHILD_PROGRAM_BYTES];

	(void)state;
	child_find_program("test_spawn", path);
	assert_non_null(realpath("/proc/self/exe", wanted));
	assert_string_equal(path, wanted);
	child_find_program("no-such-program", path);
	assert_string_equal(path, "no-such-program");
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(spawn__gives_what_the_row_says, setup),
		cmocka_unit_test_setup(spawn__descriptors_may_be_in_each_others_way, setup),
		cmocka_unit_test_setup(spawn__bare_child_gets_no_secrets, setup),
		cmocka_unit_test_setup(spawn__program_that_is_missing_is_an_error, setup),
		cmocka_unit_test_setup(spawn__forked_one_tells_by_its_end, setup),
		cmocka_unit_test_setup(spawn__command_is_prepared_and_begins_as_from_a_shell,
				       setup),
		cmocka_unit_test_setup(spawn__capture_ends_with_its_starter_in_a_group_of_its_own,
				       setup),
		cmocka_unit_test_setup(spawn__child_starts_no_children, setup),
		cmocka_unit_test_setup(find_program__is_beside_this_one_or_in_path, setup),
	};
	const enum child_kind kind = child_named(argv[0]);

	(void)argc;
	if (kind < CHILD_KINDS)
		_exit(look(kind));
	if (!strcmp(argv[0], "command") || !strcmp(argv[0], "capture"))
		_exit(look_as_program(argv[0]));
	return cmocka_run_group_tests_name("child/spawn", tests, NULL, NULL);
}
