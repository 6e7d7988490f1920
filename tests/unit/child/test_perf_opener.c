/* SPDX-License-Identifier: BSD-2-Clause */
/* With a child, which is this program itself. */
#include "child/perf_opener.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/io.h"
#include "base/task.h"
#include "child/sandbox.h"
#include "child/worker.h"

#define OURSELVES "/proc/self/exe"
#define HZ 99U

static const struct perf_event_request samples = {.kind = PERF_EVENT_CPU_CLOCK, .hz = HZ};

/* Makes an opener on a kernel whose kernel.perf_event_paranoid is `paranoid`. */
static void open_program(const char *program, const char *paranoid, struct perf_opener **ret_opener)
{
	char path[] = "/tmp/pyprofd-paranoid-XXXXXX";
	OWNED_FD int fd = mkstemp(path);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, paranoid, strlen(paranoid)), (ssize_t)strlen(paranoid));
	assert_int_equal(perf_opener_new(program, path, ret_opener), 0);
	unlink(path);
}

static void open_with(const char *paranoid, struct perf_opener **ret_opener)
{
	open_program(OURSELVES, paranoid, ret_opener);
}

static void need_events(void)
{
	OWNED_FD int fd = -1;
	int err = perf_event_open_here(&samples, &fd);

	if (err || !capabilities_are_held(CAPABILITY_BIT(CAP_SYS_ADMIN))) {
		print_message("skipped: no system-wide perf events here: %s\n", strerror(-err));
		skip();
	}
}

static void expect_event(struct perf_opener *opener, const struct perf_event_request *request)
{
	OWNED_FD int fd = -1;
	uint64_t id = 0;

	assert_int_equal(perf_opener_open(opener, request, &fd), 0);
	assert_int_equal(ioctl(fd, PERF_EVENT_IOC_ID, &id), 0);
	assert_int_equal(fcntl(fd, F_GETFD), FD_CLOEXEC);
	assert_int_equal(ioctl(fd, PERF_EVENT_IOC_ENABLE, 0), 0);
}

/* Returns whether a link is there. */
static int access_link(const char *path)
{
	char target[64];

	return readlink(path, target, sizeof(target)) < 0 ? -errno : 0;
}

static void opener__where_cap_perfmon_is_enough_there_is_no_child(void **state)
{
	OWNED(perf_opener) struct perf_opener *opener = NULL;

	(void)state;
	need_events();
	open_with("2\n", &opener);
	assert_false(perf_opener_has_child(opener));
	expect_event(opener, &samples);
	expect_event(NULL, &samples);
}

static void opener__where_the_kernel_wants_more_a_child_opens_them(void **state)
{
	const struct perf_event_request mappings = {.kind = PERF_EVENT_MAPPINGS};
	OWNED(perf_opener) struct perf_opener *opener = NULL;

	(void)state;
	need_events();
	open_with("3\n", &opener);
	assert_true(perf_opener_has_child(opener));
	expect_event(opener, &samples);
	expect_event(opener, &mappings);
}

/* The child answers, and goes on. */
static void opener__what_cannot_be_opened_has_its_error(void **state)
{
	static const struct perf_event_request bad[] = {
		{.kind = PERF_EVENT_KINDS, .hz = HZ},
		{.kind = PERF_EVENT_CPU_CLOCK, .hz = 0},
		{.kind = PERF_EVENT_CPU_CLOCK, .hz = HZ, .cpu = UINT32_MAX},
	};
	const struct perf_event_request no_cpu = {.kind = PERF_EVENT_MAPPINGS, .cpu = 100000000};
	OWNED(perf_opener) struct perf_opener *opener = NULL;
	int fd = -1;

	(void)state;
	need_events();
	open_with("4\n", &opener);
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		assert_int_equal(perf_opener_open(opener, &bad[i], &fd), -EINVAL);
	assert_true(perf_opener_open(opener, &no_cpu, &fd) < 0);
	assert_int_equal(fd, -1);
	expect_event(opener, &samples);
}

static void opener__child_that_cannot_be_started_is_etimedout(void **state)
{
	OWNED(perf_opener) struct perf_opener *opener = NULL;
	int fd = -1;

	(void)state;
	need_events();
	open_program("/nonexistent/program", "3\n", &opener);
	assert_true(perf_opener_has_child(opener));
	assert_int_equal(perf_opener_open(opener, &samples, &fd), -ETIMEDOUT);
	assert_int_equal(fd, -1);
}

/* Says that there is an event, and sends none. */
static _Noreturn void be_liar(void)
{
	struct perf_event_request request;
	struct child_reply reply = {.serial = CHILD_HELLO};

	while (child_answer(&reply, -1) &&
	       recv(CHILD_SOCKET_FD, &request, sizeof(request), 0) == sizeof(request))
		reply.serial = request.serial;
	_exit(0);
}

static void opener__answer_without_an_event_is_epipe(void **state)
{
	OWNED(perf_opener) struct perf_opener *opener = NULL;
	int fd = -1;

	(void)state;
	need_events();
	setenv("TEST_CHILD", "lies", 1);
	open_with("3\n", &opener);
	assert_int_equal(perf_opener_open(opener, &samples, &fd), -EPIPE);
	unsetenv("TEST_CHILD");
	assert_int_equal(fd, -1);
}

/* What whoever started the agent left open is no business of the child's. */
static void opener__child_has_no_descriptors_of_ours(void **state)
{
	enum { LEFT_OPEN = 200 };
	OWNED(perf_opener) struct perf_opener *opener = NULL;
	OWNED_MEM char *children = NULL;
	char path[64];

	(void)state;
	need_events();
	assert_int_equal(dup2(STDERR_FILENO, LEFT_OPEN), LEFT_OPEN);
	open_with("3\n", &opener);
	expect_event(opener, &samples); /* it serves: its descriptors are closed */
	snprintf(path, sizeof(path), "/proc/self/task/%d/children", getpid());
	assert_int_equal(read_file(path, 4096, &children, NULL), 0);
	snprintf(path, sizeof(path), "/proc/%d/fd/%d", getpid(), LEFT_OPEN);
	assert_int_equal(access_link(path), 0);
	snprintf(path, sizeof(path), "/proc/%d/fd/%d", atoi(children), LEFT_OPEN);
	assert_int_equal(access_link(path), -ENOENT);
	close(LEFT_OPEN);
}

/* ---- the sandbox ---- */

static int open_event_of(pid_t pid)
{
	struct perf_event_attr attr = {.size = sizeof(attr),
				       .type = PERF_TYPE_SOFTWARE,
				       .config = PERF_COUNT_SW_CPU_CLOCK,
				       .sample_period = 1000000};

	return (int)syscall(SYS_perf_event_open, &attr, pid, 0, -1, PERF_FLAG_FD_CLOEXEC) < 0;
}

static int open_event(void)
{
	return open_event_of(-1);
}
static int open_event_of_a_process(void)
{
	return open_event_of(getpid());
}
static int open_file(void)
{
	return (int)syscall(SYS_openat, AT_FDCWD, "/dev/null", O_RDONLY, 0) < 0;
}
static int do_prctl(void)
{
	return (int)syscall(SYS_prctl, 0, 0, 0, 0, 0);
}
static int do_bpf(void)
{
	return (int)syscall(SYS_bpf, 0, NULL, 0) == 0;
}
static int do_mmap(void)
{
	return !syscall(SYS_mmap, NULL, 4096, 0, 0, -1, 0);
}
static int make_socket(void)
{
	return (int)syscall(SYS_socket, 0, 0, 0) == 0;
}

/* Returns the wait status of a process that does this in the sandbox. */
static int status_after(int (*act)(void))
{
	int status = 0;
	pid_t pid = fork();

	if (!pid) { /* a sanitizer's _exit() does more */
		const int err = sandbox_enter(CHILD_EVENTS, NULL, NULL);

		syscall(SYS_exit_group, err ? 2 : act());
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return status;
}

static void sandbox_enter__opens_events_of_cpus_and_nothing_else(void **state)
{
	static int (*const forbidden[])(void) = {
		open_event_of_a_process, open_file, do_prctl, do_bpf, do_mmap, make_socket};
	int status;

	(void)state;
	need_events();
	status = status_after(open_event);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
	for (size_t i = 0; i < ARRAY_SIZE(forbidden); i++) {
		status = status_after(forbidden[i]);
		assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGSYS);
	}
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(opener__where_cap_perfmon_is_enough_there_is_no_child),
		cmocka_unit_test(opener__where_the_kernel_wants_more_a_child_opens_them),
		cmocka_unit_test(opener__what_cannot_be_opened_has_its_error),
		cmocka_unit_test(opener__child_that_cannot_be_started_is_etimedout),
		cmocka_unit_test(opener__answer_without_an_event_is_epipe),
		cmocka_unit_test(opener__child_has_no_descriptors_of_ours),
		cmocka_unit_test(sandbox_enter__opens_events_of_cpus_and_nothing_else),
	};

	(void)argc;
	if (child_named(argv[0]) == CHILD_EVENTS && getenv("TEST_CHILD"))
		be_liar();
	if (child_named(argv[0]) == CHILD_EVENTS)
		perf_child_main();
	return cmocka_run_group_tests_name("child/perf_opener", tests, NULL, NULL);
}
