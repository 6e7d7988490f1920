/* SPDX-License-Identifier: BSD-2-Clause */
/* A child enters the sandbox and tries what a vendor's code shall not do.  It tells by its exit
 * status what it could do all the same. */
#include "child/sandbox.h"

#include <cmocka.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/landlock.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/task.h"

static char directory[] = "/tmp/test_gauges_sandbox.XXXXXX", file[64];
static int pipe_fd[2];

static int setup(void **state)
{
	int fd;

	(void)state;
	if (!mkdtemp(directory) || chmod(directory, 0777))
		return 1;
	snprintf(file, sizeof(file), "%s/file", directory);
	fd = open(file, O_CREAT | O_RDWR | O_CLOEXEC, 0666);
	if (fd < 0 || fchmod(fd, 0666) || close(fd))
		return 1;
	return pipe(pipe_fd);
}

static int teardown(void **state)
{
	(void)state;
	close(pipe_fd[0]);
	close(pipe_fd[1]);
	return unlink(file) || rmdir(directory);
}

/* Runs check() in a child in the sandbox, with the pipe where the child writes. */
static int run_inside(int (*check)(void))
{
	int status;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (!pid) {
		if (dup2(pipe_fd[1], CHILD_GAUGES_FD) != CHILD_GAUGES_FD)
			_exit(90);
		if (sandbox_begin(CHILD_GAUGES))
			_exit(91);
		_exit(check());
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

static int has_rights(void)
{
	gid_t groups[4];

	if (capabilities_are_held(CAPABILITY_BIT(CAP_SYS_ADMIN)) ||
	    capabilities_are_held(CAPABILITY_BIT(CAP_DAC_OVERRIDE)))
		return 1;
	if (!geteuid() || !getuid() || !getegid())
		return 2;
	return syscall(SYS_getgroups, 4, groups) > 0 ? 3 : 0;
}

static int starts_programs(void)
{
	char *const arguments[] = {(char *)"true", NULL};

	if (fork() >= 0)
		return 1;
	if (syscall(SYS_clone3, NULL, 0) >= 0 || errno != ENOSYS)
		return 2;
	execv("/bin/true", arguments);
	return 0;
}

static int reaches_others(void)
{
	if (socket(AF_UNIX, SOCK_STREAM, 0) >= 0 || socket(AF_INET, SOCK_STREAM, 0) >= 0)
		return 1;
	if (!kill(getppid(), 0))
		return 2;
	if (open("/dev/tty", O_RDWR | O_CLOEXEC) >= 0)
		return 3;
	return setuid(0) ? 0 : 4;
}

static int changes_files(void)
{
	char other[96];

	snprintf(other, sizeof(other), "%s.new", file);
	if (!unlink(file) || !rename(file, other) || !chmod(file, 0600) || !mkdir(other, 0700))
		return 1;
	if (write(1, "x", 1) >= 0)
		return 2;
	return open(other, O_CREAT | O_WRONLY | O_CLOEXEC, 0600) >= 0 ? 3 : 0;
}

static int opens_files_to_write(void)
{
	return open(file, O_WRONLY | O_CLOEXEC) >= 0;
}

static int grows_limits(void)
{
	const struct rlimit more = {8192, 8192};
	struct rlimit now;

	if (!setrlimit(RLIMIT_NOFILE, &more))
		return 1;
	return getrlimit(RLIMIT_CORE, &now) || now.rlim_cur || now.rlim_max ? 2 : 0;
}

static void *run_thread(void *done)
{
	*(bool *)done = true;
	return NULL;
}

/* What a driver's library does. */
static int cannot_work(void)
{
	bool is_done = false;
	pthread_t thread;
	void *library;
	char text[16];
	int fd;

	fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
	if (fd < 0 || read(fd, text, sizeof(text)) <= 0 || close(fd))
		return 1;
	if (write(CHILD_GAUGES_FD, "x", 1) != 1)
		return 2;
	if (pthread_create(&thread, NULL, run_thread, &is_done) || pthread_join(thread, NULL) ||
	    !is_done)
		return 3;
	library = dlopen("libm.so.6", RTLD_NOW);
	if (!library || !dlsym(library, "cos"))
		return 4;
	return open("/dev/null", O_RDONLY | O_CLOEXEC) < 0 ? 5 : 0;
}

static void sandbox__leaves_no_right_that_changes_anything(void **state)
{
	(void)state;
	if (!geteuid())
		assert_int_equal(run_inside(has_rights), 0);
	assert_int_equal(run_inside(starts_programs), 0);
	assert_int_equal(run_inside(reaches_others), 0);
	assert_int_equal(run_inside(changes_files), 0);
	assert_int_equal(run_inside(grows_limits), 0);
}

static void sandbox__opens_no_file_to_write_where_there_is_landlock(void **state)
{
	(void)state;
	if (syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION) < 0)
		skip();
	assert_int_equal(run_inside(opens_files_to_write), 0);
}

static void sandbox__leaves_what_a_drivers_library_needs(void **state)
{
	(void)state;
	assert_int_equal(run_inside(cannot_work), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sandbox__leaves_no_right_that_changes_anything),
		cmocka_unit_test(sandbox__opens_no_file_to_write_where_there_is_landlock),
		cmocka_unit_test(sandbox__leaves_what_a_drivers_library_needs),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
