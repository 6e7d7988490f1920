/* SPDX-License-Identifier: BSD-2-Clause */
/* The child that opens events, in a fork of this program: its sandbox and its events are fakes. */
#include "child/perf_opener.h"

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "child/sandbox.h"
#include "child/worker.h"

#define LEFT_OPEN 77

/* ---- in the child ---- */

static int sandbox_result;
static unsigned int interrupts;

int sandbox_begin(enum child_kind kind)
{
	assert_int_equal(syscall(SYS_close_range, CHILD_SOCKET_FD + 1, ~0U, 0), 0);
	return kind == CHILD_EVENTS ? sandbox_result : -EINVAL;
}

ssize_t recv(int fd, void *buffer, size_t size, int flags)
{
	if (interrupts) {
		interrupts--;
		errno = EINTR;
		return -1;
	}
	errno = EINTR; /* of before: what comes now is no error */
	return syscall(SYS_recvfrom, fd, buffer, size, flags, NULL, NULL);
}

/* hz 7: there is an event, which is a new descriptor.  The one before was closed: it has the same
 * number. */
int perf_event_open_here(const struct perf_event_request *request, int *ret_fd)
{
	if (request->hz != 7)
		return -ENODEV;
	*ret_fd = dup(CHILD_SOCKET_FD);
	return *ret_fd == CHILD_MEMORY_FD ? 0 : -EMFILE;
}

/* ---- the agent ---- */

static int ours; /* our end of the child's socket */
static pid_t child;

static void start(void)
{
	const struct timeval limit = {.tv_sec = 20};
	int pair[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	assert_int_equal(setsockopt(pair[0], SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit)), 0);
	ours = pair[0];
	child = fork();
	assert_true(child >= 0);
	if (!child) {
		if (dup2(pair[1], LEFT_OPEN) < 0 || dup2(pair[1], CHILD_SOCKET_FD) < 0 ||
		    dup2(LEFT_OPEN, CHILD_MEMORY_FD) < 0)
			_exit(99);
		perf_child_main();
	}
	close(pair[1]);
}

/* Returns how it ended, after we have gone. */
static int end(void)
{
	int status = 0;

	close(ours);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

/* *has_event: whether a descriptor came with the reply. */
static struct child_reply hear(bool *has_event)
{
	union {
		struct cmsghdr header;
		char room[CMSG_SPACE(sizeof(int))];
	} control = {0};
	struct child_reply reply = {.serial = 4711};
	struct iovec part = {.iov_base = &reply, .iov_len = sizeof(reply)};
	struct msghdr message = {.msg_iov = &part,
				 .msg_iovlen = 1,
				 .msg_control = &control,
				 .msg_controllen = sizeof(control)};

	assert_int_equal(recvmsg(ours, &message, 0), sizeof(reply));
	assert_int_equal(reply.size, 0);
	*has_event = CMSG_FIRSTHDR(&message) != NULL;
	if (*has_event)
		close(*(int *)CMSG_DATA(&control.header));
	return reply;
}

static void ask(uint32_t serial, uint32_t hz)
{
	const struct perf_event_request request = {.serial = serial, .hz = hz};

	assert_int_equal(send(ours, &request, sizeof(request), MSG_NOSIGNAL), sizeof(request));
}

static int setup(void **state)
{
	(void)state;
	sandbox_result = 0;
	interrupts = 0;
	return 0;
}

static void perf_child_main__answers_until_the_agent_goes(void **state)
{
	struct child_reply reply;
	bool has_event;

	(void)state;
	interrupts = 3;
	start();
	reply = hear(&has_event);
	assert_int_equal(reply.serial, CHILD_HELLO);
	assert_int_equal(reply.error, 0);
	assert_false(has_event);
	for (uint32_t serial = 5; serial < 10; serial++) {
		ask(serial, 7);
		reply = hear(&has_event);
		assert_int_equal(reply.serial, serial);
		assert_int_equal(reply.error, 0);
		assert_true(has_event);
		ask(++serial, 8);
		reply = hear(&has_event);
		assert_int_equal(reply.serial, serial);
		assert_int_equal(reply.error, -ENODEV);
		assert_false(has_event);
	}
	assert_int_equal(end(), 0);
}

static void perf_child_main__nonsense_ends_it(void **state)
{
	const char request[sizeof(struct perf_event_request) + 1] = "";

	(void)state;
	for (int more = -1; more <= 1; more += 2) {
		bool has_event;
		char reply[64];

		start();
		hear(&has_event);
		assert_true(send(ours, request, sizeof(struct perf_event_request) + (size_t)more,
				 MSG_NOSIGNAL) > 0);
		assert_int_equal(syscall(SYS_recvfrom, ours, reply, sizeof(reply), 0, NULL, NULL),
				 0);
		assert_int_equal(end(), 0);
	}
}

static void perf_child_main__without_a_sandbox_it_does_not_serve(void **state)
{
	struct child_reply reply;

	(void)state;
	sandbox_result = -ENOSYS;
	start();
	assert_int_equal(syscall(SYS_recvfrom, ours, &reply, sizeof(reply), 0, NULL, NULL), 0);
	assert_int_equal(end(), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(perf_child_main__answers_until_the_agent_goes, setup),
		cmocka_unit_test_setup(perf_child_main__nonsense_ends_it, setup),
		cmocka_unit_test_setup(perf_child_main__without_a_sandbox_it_does_not_serve, setup),
	};

	return cmocka_run_group_tests_name("child/perf_child", tests, NULL, NULL);
}
