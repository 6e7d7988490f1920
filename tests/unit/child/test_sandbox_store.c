/* SPDX-License-Identifier: BSD-2-Clause */
/* What the child that merges can still do, in a process of its own. */
#include "child/sandbox.h"

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"

static char directory[] = "/tmp/test_merge_sandbox_XXXXXX";

static int make_directory(void **state)
{
	(void)state;
	return mkdtemp(directory) ? 0 : -1;
}

static int remove_directory(void **state)
{
	(void)state;
	return rmdir(directory);
}

/* Returns the status of a process that does this in a sandbox. */
static int status_of(int (*act)(int directory_fd))
{
	OWNED_FD int fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	pid_t pid;
	int status;

	assert_true(fd >= 0);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid)
		_exit(fchdir(fd) || sandbox_enter(CHILD_STORE, NULL, NULL) ? 99 : act(fd));
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return status;
}

/* As a file is merged: written under another name, made sure of, renamed, removed. */
static int merge(int directory_fd)
{
	OWNED_FD int fd = openat(directory_fd, "new", O_WRONLY | O_CREAT | O_EXCL, 0600);

	if (fd < 0 || write(fd, "x", 1) != 1 || fchmod(fd, 0640) || fsync(fd))
		return 1;
	if (renameat(directory_fd, "new", directory_fd, "file") || fsync(directory_fd))
		return 2;
	return unlinkat(directory_fd, "file", 0) ? 3 : 0;
}

static void files__of_the_directory_are_written(void **state)
{
	(void)state;
	assert_int_equal(status_of(merge), 0);
}

static int reach_out(int directory_fd)
{
	(void)directory_fd;
	if (socket(AF_INET, SOCK_STREAM, 0) >= 0 || errno != ENOSYS)
		return 1;
	if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) != -1 || errno != ENOSYS)
		return 2;
	if (fork() != -1 || errno != ENOSYS)
		return 3;
	if (execl("/bin/true", "true", NULL) != -1 || errno != ENOSYS)
		return 4;
	return kill(getppid(), 0) != -1 || errno != ENOSYS ? 5 : 0;
}

static void other_calls__are_none(void **state)
{
	(void)state;
	assert_int_equal(status_of(reach_out), 0);
}

static int map_code(int directory_fd)
{
	(void)directory_fd;
	return mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) !=
	       MAP_FAILED;
}

static int make_code(int directory_fd)
{
	void *data = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	(void)directory_fd;
	return data == MAP_FAILED || mprotect(data, 4096, PROT_READ | PROT_EXEC) ? 1 : 0;
}

static void code__cannot_be_added(void **state)
{
	(void)state;
	assert_int_equal(WTERMSIG(status_of(map_code)), SIGSYS);
	assert_int_equal(WTERMSIG(status_of(make_code)), SIGSYS);
}

static int make_a_directory(int directory_fd)
{
	return mkdirat(directory_fd, "new", 0750) ? 1 : 0;
}

static void directories__are_not_made(void **state)
{
	(void)state;
	assert_int_equal(WEXITSTATUS(status_of(make_a_directory)), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(files__of_the_directory_are_written),
		cmocka_unit_test(other_calls__are_none),
		cmocka_unit_test(code__cannot_be_added),
		cmocka_unit_test(directories__are_not_made),
	};

	return cmocka_run_group_tests(tests, make_directory, remove_directory);
}
