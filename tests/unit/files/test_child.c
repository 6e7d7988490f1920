/* SPDX-License-Identifier: BSD-2-Clause */
/* The child that parses files, in a fork of this program: its sandbox and what it parses are
 * fakes. */

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "child/sandbox.h"
#include "child/worker.h"
#include "elf/elf_image.h"
#include "files/serve.h"

#define LEFT_OPEN 77

/* ---- in the child ---- */

static int sandbox_result, guard_result;
static unsigned int interrupts;
static bool is_sorted = true;

int elf_guard_install(void)
{
	return guard_result;
}

int sandbox_begin(enum child_kind kind)
{
	assert_int_equal(syscall(SYS_close_range, CHILD_MEMORY_FD + 1, ~0U, 0), 0);
	return kind == CHILD_FILES ? sandbox_result : -EINVAL;
}

ssize_t recvmsg(int fd, struct msghdr *message, int flags)
{
	if (interrupts) {
		interrupts--;
		errno = EINTR;
		return -1;
	}
	errno = EINTR; /* of before: what comes now is no error */
	return syscall(SYS_recvmsg, fd, message, flags);
}

bool foreign_files_sort(const struct foreign_request *request, const int *fd, size_t count,
			struct foreign_files *ret_files)
{
	(void)request;
	ret_files->file = -1;
	for (size_t i = 0; i < count; i++)
		ret_files->file = fcntl(fd[i], F_GETFD) == FD_CLOEXEC ? fd[i] : -2;
	ret_files->debug.fd[0] = (int)count;
	return is_sorted;
}

/* The size tells how many descriptors came, the error the number of the last one. */
void foreign_serve(struct foreign_server *server, const struct foreign_request *request,
		   const struct foreign_files *files, struct child_reply *ret_reply)
{
	memcpy(server->memory + FOREIGN_MEMORY_BYTES - 8, &request->number, 4);
	*ret_reply = (struct child_reply){.serial = request->serial,
					  .error = files->file,
					  .size = (uint32_t)files->debug.fd[0]};
}

/* ---- the agent ---- */

static int ours, memory_fd; /* our end of the child's socket, its memory */
static pid_t child;

static void start(bool has_memory)
{
	const struct timeval limit = {.tv_sec = 20};
	int pair[2];

	memory_fd = memfd_create("memory", MFD_CLOEXEC);
	assert_int_equal(ftruncate(memory_fd, FOREIGN_MEMORY_BYTES), 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	assert_int_equal(setsockopt(pair[0], SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit)), 0);
	ours = pair[0];
	child = fork();
	assert_true(child >= 0);
	if (!child) {
		const int high_socket = fcntl(pair[1], F_DUPFD, 20),
			  high_memory = fcntl(has_memory ? memory_fd : pair[1], F_DUPFD, 20);

		if (dup2(pair[1], LEFT_OPEN) < 0 || dup2(high_socket, CHILD_SOCKET_FD) < 0 ||
		    dup2(high_memory, CHILD_MEMORY_FD) < 0)
			_exit(99);
		foreign_child_main();
	}
	close(pair[1]);
}

/* Returns how it ended, after we have gone. */
static int end(void)
{
	int status = 0;

	close(ours);
	close(memory_fd);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

/* Returns whether a reply came, or the child has ended. */
static bool hear(struct child_reply *heard)
{
	const ssize_t size = syscall(SYS_recvfrom, ours, heard, sizeof(*heard), 0, NULL, NULL);

	assert_true(!size || size == sizeof(*heard));
	return size;
}

/* Sends a request of so many bytes with so many descriptors. */
static void ask(const void *request, size_t bytes, size_t fds)
{
	union {
		struct cmsghdr header;
		char room[CMSG_SPACE(WORKER_FDS_MAX * sizeof(int))];
	} control = {.header = {.cmsg_len = CMSG_LEN(fds * sizeof(int)),
				.cmsg_level = SOL_SOCKET,
				.cmsg_type = SCM_RIGHTS}};
	struct iovec part = {.iov_base = (void *)request, .iov_len = bytes};
	struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
	const int fd = STDERR_FILENO;

	for (size_t i = 0; i < fds; i++)
		memcpy(CMSG_DATA(&control.header) + i * sizeof(int), &fd, sizeof(int));
	if (fds) {
		message.msg_control = &control;
		message.msg_controllen = CMSG_SPACE(fds * sizeof(int));
	}
	assert_int_equal(sendmsg(ours, &message, MSG_NOSIGNAL), bytes);
}

static int setup(void **state)
{
	(void)state;
	sandbox_result = guard_result = 0;
	interrupts = 0;
	is_sorted = true;
	return 0;
}

static const struct foreign_request examine = {.serial = 5, .kind = FOREIGN_EXAMINE, .number = 9};

static void foreign_child_main__answers_until_the_agent_goes(void **state)
{
	struct foreign_request request = examine;
	struct child_reply heard;
	uint32_t number;

	(void)state;
	interrupts = 3;
	start(true);
	assert_true(hear(&heard));
	assert_int_equal(heard.serial, CHILD_HELLO);
	for (uint32_t i = 0; i < 12; i++) {
		const uint32_t fds = i % (WORKER_FDS_MAX + 1);

		request.serial = 100 + i;
		request.number = 9 + i;
		ask(&request, sizeof(request), fds);
		assert_true(hear(&heard));
		assert_int_equal(heard.serial, 100 + i);
		assert_int_equal(heard.size, fds);
		/* Those that came with earlier ones are closed. */
		assert_int_equal(heard.error, fds ? CHILD_MEMORY_FD + (int)fds : -1);
		assert_int_equal(pread(memory_fd, &number, 4, FOREIGN_MEMORY_BYTES - 8), 4);
		assert_int_equal(number, 9 + i);
	}
	assert_int_equal(end(), 0);
}

static void foreign_child_main__largest_request_is_served(void **state)
{
	static union {
		struct foreign_request request;
		uint8_t bytes[FOREIGN_REQUEST_MAX_BYTES];
	} largest;
	struct child_reply heard;

	(void)state;
	largest.request = examine;
	largest.request.kind = FOREIGN_NAMES;
	largest.request.vaddr_count = FOREIGN_MAX_NAMES;
	start(true);
	assert_true(hear(&heard));
	ask(&largest, sizeof(largest), 0);
	assert_true(hear(&heard));
	assert_int_equal(heard.serial, 5);
	assert_int_equal(end(), 0);
}

/* Expects that the child ends at a message without an answer. */
static void expect_end(const void *request, size_t bytes)
{
	struct child_reply heard;

	start(true);
	assert_true(hear(&heard));
	ask(request, bytes, 1);
	assert_false(hear(&heard));
	assert_int_equal(end(), 0);
}

static void foreign_child_main__nonsense_ends_it(void **state)
{
	static uint8_t bytes[FOREIGN_REQUEST_MAX_BYTES + 8];
	struct foreign_request request = examine;

	(void)state;
	memcpy(bytes, &examine, sizeof(examine));
	expect_end(&examine, sizeof(examine) - 1);
	expect_end(bytes, sizeof(examine) + 1);
	expect_end(bytes, sizeof(bytes));
	request.kind = FOREIGN_KINDS;
	expect_end(&request, sizeof(request));
	is_sorted = false;
	expect_end(&examine, sizeof(examine));
}

static void foreign_child_main__what_it_needs_is_there_or_it_does_not_serve(void **state)
{
	struct child_reply heard;

	(void)state;
	start(false);
	assert_false(hear(&heard));
	assert_int_equal(end(), 1);
	sandbox_result = -ENOSYS;
	start(true);
	assert_false(hear(&heard));
	assert_int_equal(end(), 1);
	sandbox_result = 0;
	guard_result = -EINVAL;
	start(true);
	assert_false(hear(&heard));
	assert_int_equal(end(), 1);
}

#define TEST(name) cmocka_unit_test_setup(name, setup)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(foreign_child_main__answers_until_the_agent_goes),
		TEST(foreign_child_main__largest_request_is_served),
		TEST(foreign_child_main__nonsense_ends_it),
		TEST(foreign_child_main__what_it_needs_is_there_or_it_does_not_serve),
	};

	return cmocka_run_group_tests_name("files/child", tests, NULL, NULL);
}
