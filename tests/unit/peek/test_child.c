/* SPDX-License-Identifier: BSD-2-Clause */
/* What the child does with requests, in this process and in a fork of it; how reading fails is a
 * fake in this file. */
#include "peek/child.h"

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/task.h"
#include "child/sandbox.h"

#define LEFT_OPEN 77

/* ---- the kernel ---- */

static int read_error;	/* of process_vm_readv(); 0: the kernel's own */
static int pread_error; /* of pread(); it gives so many bytes at once: */
static size_t pread_most;
static int file_error; /* of pread_full() */
static unsigned int interrupts;
static char opened[80];
static int opened_flags;
static uint64_t kept, inherited;
static int capabilities_error, prctl_fails;
static bool is_without_parent, is_not_dumpable, has_no_new_rights;

ssize_t process_vm_readv(pid_t pid, const struct iovec *here, unsigned long here_count,
			 const struct iovec *there, unsigned long there_count, unsigned long flags)
{
	errno = read_error;
	if (read_error)
		return -1;
	return syscall(SYS_process_vm_readv, pid, here, here_count, there, there_count, flags);
}

ssize_t pread(int fd, void *buffer, size_t size, off_t offset)
{
	errno = pread_error;
	if (pread_error)
		return -1;
	return syscall(SYS_pread64, fd, buffer, size < pread_most ? size : pread_most, offset);
}

/* As base/io.c. */
int pread_full(int fd, void *buffer, size_t size, off_t offset)
{
	if (file_error)
		return -file_error;
	for (size_t at = 0; at < size;) {
		const ssize_t got = syscall(SYS_pread64, fd, (uint8_t *)buffer + at, size - at,
					    offset + (off_t)at);

		if (got <= 0)
			return got ? -errno : -ENODATA;
		at += (size_t)got;
	}
	return 0;
}

int pread_up_to(int fd, void *buffer, size_t size, size_t *ret_size)
{
	const ssize_t got = syscall(SYS_pread64, fd, buffer, size, 0);

	*ret_size = got < 0 ? 0 : (size_t)got;
	return -file_error;
}

int list_up_to(int fd, void *buffer, size_t size, size_t *ret_size)
{
	const long got = syscall(SYS_getdents64, fd, buffer, size);

	*ret_size = got < 0 ? 0 : (size_t)got;
	return -file_error;
}

const char *process_text_name(enum process_text which)
{
	static const char *const names[] = {"cmdline", "environ", "root/etc/passwd",
					    "root/etc/subuid"};

	assert_true(which < PROCESS_TEXTS);
	return names[which];
}

/* One of them is not there. */
const char *process_log_path(enum process_log_directory which)
{
	return which == PROCESS_LOGS_PODS ? "/nonexistent" : "/proc/self";
}

/* Files that are mapped are this program's standard error. */
int openat(int directory, const char *path, int flags, ...)
{
	assert_int_equal(directory, AT_FDCWD);
	snprintf(opened, sizeof(opened), "%s", path);
	opened_flags = flags;
	if (strstr(path, "map_files"))
		return dup(STDERR_FILENO);
	return (int)syscall(SYS_openat, directory, path, flags, 0);
}

ssize_t recvmsg(int fd, struct msghdr *message, int flags)
{
	if (interrupts) {
		interrupts--;
		errno = EINTR;
		return -1;
	}
	errno = EINTR; /* of before */
	return syscall(SYS_recvmsg, fd, message, flags);
}

/* A sanitizer ends a process by more calls than the filter allows: test_peek.c has the filter. */
int prctl(int option, ...)
{
	unsigned long argument[4];
	va_list args;

	va_start(args, option);
	for (size_t i = 0; i < 4; i++)
		argument[i] = va_arg(args, unsigned long);
	va_end(args);
	if (option == prctl_fails) {
		errno = EPERM;
		return -1;
	}
	is_without_parent |= option == PR_SET_PDEATHSIG && argument[0] == SIGKILL;
	is_not_dumpable |= option == PR_SET_DUMPABLE && !argument[0];
	has_no_new_rights |= option == PR_SET_NO_NEW_PRIVS && argument[0] == 1;
	if (option == PR_SET_SECCOMP)
		return 0;
	return (int)syscall(SYS_prctl, option, argument[0], argument[1], argument[2], argument[3]);
}

int capabilities_keep(uint64_t kept_mask, uint64_t inherited_mask)
{
	kept = kept_mask;
	inherited = inherited_mask;
	return capabilities_error;
}

/* ---- */

static uint8_t memory[PEEK_MEMORY_BYTES];
static struct child_reply reply;

static int setup(void **state)
{
	(void)state;
	read_error = pread_error = file_error = capabilities_error = 0;
	prctl_fails = -1;
	pread_most = SIZE_MAX;
	interrupts = 0;
	opened[0] = '\0';
	kept = inherited = ~0ULL;
	memset(memory, 0, sizeof(memory));
	return 0;
}

/* Carries a request of `count` pieces out; returns its error. */
static int do_request(enum peek_kind kind, pid_t tid, const struct peek_piece *piece,
		      uint32_t count)
{
	struct peek_request request = {
		.serial = 99, .tid = tid, .count = count, .kind = (uint32_t)kind};

	memcpy(request.piece, piece, count * sizeof(*piece));
	memset(&reply, 0xee, sizeof(reply));
	peek_child_do(&request, memory, &reply);
	assert_int_equal(reply.serial, 99);
	if (kind == PEEK_READ)
		assert_int_equal(reply.size, 0);
	return reply.error;
}

/* ---- memory ---- */

static const char first[] = "the first", second[] = "a second piece", third[] = "3";

static int read_three(pid_t tid)
{
	const struct peek_piece piece[] = {{.address = (uintptr_t)first, .size = sizeof(first)},
					   {.address = (uintptr_t)second, .size = sizeof(second)},
					   {.address = (uintptr_t)third, .size = sizeof(third)}};

	return do_request(PEEK_READ, tid, piece, 3);
}

static void expect_three(void)
{
	assert_memory_equal(memory, first, sizeof(first));
	assert_memory_equal(memory + sizeof(first), second, sizeof(second));
	assert_memory_equal(memory + sizeof(first) + sizeof(second), third, sizeof(third));
}

static void peek_child_do__pieces_are_read_one_behind_the_other(void **state)
{
	(void)state;
	assert_int_equal(read_three(getpid()), 0);
	expect_three();
	assert_string_equal(opened, "");
}

/* Where that system call is refused, or not there. */
static void peek_child_do__memory_is_read_by_its_file_instead(void **state)
{
	char path[64];

	(void)state;
	for (unsigned int i = 0; i < 2; i++) {
		setup(NULL);
		read_error = i ? EPERM : ENOSYS;
		assert_int_equal(read_three(getpid()), 0);
		expect_three();
		snprintf(path, sizeof(path), "/proc/%d/mem", getpid());
		assert_string_equal(opened, path);
		assert_int_equal(opened_flags, CHILD_OPEN_TEXT);
	}
	/* Another error is the answer. */
	setup(NULL);
	read_error = ESRCH;
	assert_int_equal(read_three(getpid()), -ESRCH);
	assert_string_equal(opened, "");
}

static void peek_child_do__memory_that_is_not_there_is_efault(void **state)
{
	const struct peek_piece half[] = {{.address = (uintptr_t)first, .size = sizeof(first)},
					  {.address = 8, .size = 8}},
				far = {.address = (uint64_t)INT64_MAX + 1, .size = 8},
				last = {.address = INT64_MAX, .size = 8};

	(void)state;
	for (unsigned int i = 0; i < 2; i++) {
		read_error = i ? EPERM : 0;
		assert_int_equal(do_request(PEEK_READ, getpid(), half, 2), -EFAULT);
		assert_int_equal(do_request(PEEK_READ, getpid(), &half[1], 1), -EFAULT);
		assert_int_equal(do_request(PEEK_READ, getpid(), &far, 1), -EFAULT);
	}
	/* The file of a process that has ended is empty. */
	file_error = ENODATA;
	assert_int_equal(do_request(PEEK_READ, getpid(), half, 1), -EFAULT);
	file_error = ENOMEM;
	assert_int_equal(do_request(PEEK_READ, getpid(), half, 1), -ENOMEM);
	/* Beyond what a file's offset can be nothing is read, whatever it would give. */
	file_error = ENOMEM;
	assert_int_equal(do_request(PEEK_READ, getpid(), &far, 1), -EFAULT);
	assert_int_equal(do_request(PEEK_READ, getpid(), &last, 1), -ENOMEM);
	file_error = 0;
	assert_int_equal(read_three(0x7ffffff0), -ENOENT);
}

/* ---- mappings ---- */

static int read_maps(pid_t tid, uint64_t at, uint32_t size)
{
	const struct peek_piece piece = {.address = at, .size = size};

	return do_request(PEEK_MAPS, tid, &piece, 1);
}

static void peek_child_do__maps_come_in_parts_of_one_opening(void **state)
{
	static char text[PEEK_MEMORY_BYTES + 1];
	char path[64];
	uint64_t at = 0;

	(void)state;
	/* A child that has read nothing goes on with nothing. */
	assert_int_equal(read_maps(getpid(), 100, 100), -EINVAL);
	assert_int_equal(reply.size, 0);
	pread_most = 70; /* the kernel gives single lines */
	snprintf(path, sizeof(path), "/proc/%d/maps", getpid());
	do {
		assert_int_equal(read_maps(getpid(), at, 300), 0);
		if (!at)
			assert_string_equal(opened, path);
		opened[0] = '\0';
		assert_true(at + reply.size < sizeof(text));
		memcpy(text + at, memory, reply.size);
		at += reply.size;
	} while (reply.size == 300);
	assert_true(at > 300);
	text[at] = '\0';
	assert_int_equal(text[at - 1], '\n');
	assert_non_null(strstr(text, "[stack]"));
	/* Neither another offset nor another process' goes on. */
	assert_int_equal(read_maps(getpid(), at - 1, 300), -EINVAL);
	assert_int_equal(read_maps(getppid(), at, 300), -EINVAL);
	assert_int_equal(read_maps(getpid(), at, 300), 0);
	assert_int_equal(reply.size, 0);
	/* From the start again. */
	assert_int_equal(read_maps(getpid(), 0, 100), 0);
	assert_string_equal(opened, path);
	assert_memory_equal(memory, text, 12);
	assert_int_equal(read_maps(getpid(), 100, 100), 0);
}

static unsigned int lowest_free_fd(void)
{
	const int fd = dup(STDERR_FILENO);

	close(fd);
	return (unsigned int)fd;
}

static void peek_child_do__maps_are_open_once(void **state)
{
	unsigned int before;

	(void)state;
	assert_int_equal(read_maps(getpid(), 0, 100), 0);
	before = lowest_free_fd();
	for (unsigned int i = 0; i < 5; i++)
		assert_int_equal(read_maps(getpid(), 0, 100), 0);
	assert_int_equal(lowest_free_fd(), before);
	/* One that cannot be opened, and one after it. */
	assert_int_equal(read_maps(0x7ffffff0, 0, 100), -ENOENT);
	assert_int_equal(reply.size, 0);
	assert_int_equal(read_maps(0x7ffffff0, 0, 100), -ENOENT);
	assert_int_equal(read_maps(getpid(), 100, 100), -EINVAL);
	assert_int_equal(read_maps(getpid(), 0, 100), 0);
	assert_int_equal(lowest_free_fd(), before);
	pread_error = ESRCH;
	assert_int_equal(read_maps(getpid(), 0, 100), -ESRCH);
	assert_int_equal(reply.size, 0);
}

/* ---- the child ---- */

static int ours, memory_fd, left_open;
static pid_t child;

static void start(bool has_memory)
{
	const struct timeval limit = {.tv_sec = 20};
	int pair[2], pipes[2];

	memory_fd = memfd_create("memory", MFD_CLOEXEC);
	assert_int_equal(ftruncate(memory_fd, PEEK_MEMORY_BYTES), 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	assert_int_equal(setsockopt(pair[0], SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit)), 0);
	assert_int_equal(pipe(pipes), 0);
	ours = pair[0];
	left_open = pipes[0];
	child = fork();
	assert_true(child >= 0);
	if (!child) {
		const int high_socket = fcntl(pair[1], F_DUPFD, 20),
			  high_memory = fcntl(memory_fd, F_DUPFD, 20);

		if (dup2(pipes[1], LEFT_OPEN) < 0 || dup2(high_socket, CHILD_SOCKET_FD) < 0 ||
		    dup2(high_memory, CHILD_MEMORY_FD) < 0)
			_exit(99);
		if (!has_memory)
			close(CHILD_MEMORY_FD);
		peek_child_main();
	}
	close(pair[1]);
	close(pipes[1]);
}

static int end(void)
{
	int status = 0;

	close(ours);
	close(memory_fd);
	close(left_open);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static ssize_t hear(struct child_reply *heard)
{
	return syscall(SYS_recvfrom, ours, heard, sizeof(*heard), 0, NULL, NULL);
}

/* ---- texts and directories ---- */

static int ask(enum peek_kind kind, pid_t tid, uint64_t which, uint32_t size)
{
	const struct peek_piece piece = {.address = which, .size = size};

	return do_request(kind, tid, &piece, 1);
}

static void peek_child_do__texts_are_read_by_their_names(void **state)
{
	static const char *const name[PROCESS_TEXTS] = {"cmdline", "environ", "root/etc/passwd",
							"root/etc/subuid"};
	char path[64];

	(void)state;
	for (uint64_t which = 0; which < ARRAY_SIZE(name); which++) {
		const int err = ask(PEEK_TEXT, getpid(), which, 4);

		snprintf(path, sizeof(path), "/proc/%d/%s", getpid(), name[which]);
		assert_string_equal(opened, path);
		assert_int_equal(opened_flags, CHILD_OPEN_TEXT);
		if (which == PROCESS_SUBORDINATES) /* it may be empty, or missing */
			continue;
		assert_int_equal(err, 0);
		assert_int_equal(reply.size, 4);
	}
	assert_int_equal(ask(PEEK_TEXT, getpid(), PROCESS_TEXTS, 4), -EINVAL);
	assert_int_equal(reply.size, 0);
	assert_int_equal(ask(PEEK_TEXT, getpid(), UINT64_MAX, 4), -EINVAL);
	assert_int_equal(ask(PEEK_TEXT, 0x7ffffff0, PROCESS_COMMAND_LINE, 4), -ESRCH);
	assert_int_equal(reply.size, 0);
	file_error = ENOMEM;
	assert_int_equal(ask(PEEK_TEXT, getpid(), PROCESS_COMMAND_LINE, 4), -ENOMEM);
}

static void peek_child_do__directories_are_listed(void **state)
{
	(void)state;
	assert_int_equal(ask(PEEK_LOGS, getpid(), PROCESS_LOGS_CONTAINERS, 4096), 0);
	assert_string_equal(opened, "/proc/self");
	assert_int_equal(opened_flags, CHILD_OPEN_TEXT);
	assert_true(reply.size > 100);
	assert_non_null(memmem(memory, reply.size, "environ", 8));
	assert_int_equal(ask(PEEK_LOGS, getpid(), PROCESS_LOGS_PODS, 4096), -ENOENT);
	assert_int_equal(reply.size, 0);
	/* Of the two, whatever the agent asks for. */
	assert_int_equal(ask(PEEK_LOGS, getpid(), 99, 4096), 0);
	assert_string_equal(opened, "/proc/self");
}

static void peek_child_main__answers_until_the_agent_goes(void **state)
{
	struct peek_request request = {
		.tid = getpid(),
		.count = 1,
		.kind = PEEK_READ,
		.piece = {{.address = (uintptr_t)second, .size = sizeof(second)}}};
	struct child_reply heard;
	struct pollfd closed;
	char name[64] = "", path[64];
	FILE *comm;

	(void)state;
	interrupts = 3;
	start(true);
	assert_int_equal(hear(&heard), sizeof(heard));
	assert_int_equal(heard.serial, CHILD_HELLO);
	assert_int_equal(heard.error, 0);
	/* By then it has closed what it was not given, and has its name. */
	closed = (struct pollfd){.fd = left_open, .events = POLLIN};
	assert_int_equal(poll(&closed, 1, 0), 1);
	assert_true(closed.revents & POLLHUP);
	snprintf(path, sizeof(path), "/proc/%d/comm", child);
	comm = fopen(path, "re");
	assert_non_null(comm);
	assert_non_null(fgets(name, sizeof(name), comm));
	fclose(comm);
	assert_string_equal(name, "pyprofd: memory\n");
	for (uint32_t serial = 5; serial < 8; serial++) {
		request.serial = serial;
		assert_int_equal(send(ours, &request, peek_request_bytes(1), MSG_NOSIGNAL),
				 peek_request_bytes(1));
		assert_int_equal(hear(&heard), sizeof(heard));
		assert_int_equal(heard.serial, serial);
		assert_int_equal(heard.error, 0);
		assert_int_equal(syscall(SYS_pread64, memory_fd, memory, sizeof(memory), 0),
				 sizeof(memory));
		assert_memory_equal(memory, second, sizeof(second));
	}
	assert_int_equal(end(), 0);
}

static void peek_child_main__nonsense_ends_it(void **state)
{
	struct peek_request request = {.tid = 1, .count = 1, .kind = PEEK_KINDS};
	struct child_reply heard;

	(void)state;
	start(true);
	assert_int_equal(hear(&heard), sizeof(heard));
	assert_true(send(ours, &request, peek_request_bytes(1), MSG_NOSIGNAL) > 0);
	assert_int_equal(hear(&heard), 0);
	assert_int_equal(end(), 0);
}

static void peek_child_main__without_memory_or_a_sandbox_it_does_not_serve(void **state)
{
	struct child_reply heard;

	(void)state;
	start(false);
	assert_int_equal(hear(&heard), 0);
	assert_int_equal(end(), 1);
	capabilities_error = -EPERM;
	start(true);
	assert_int_equal(hear(&heard), 0);
	assert_int_equal(end(), 1);
}

/* ---- the sandbox ---- */

/* Returns how a fork ends: 100 and the result, when it could be entered with these capabilities and
 * no others. */
static int enter(enum child_kind which, uint64_t expected)
{
	int status = 0;
	pid_t pid = fork();

	if (!pid) {
		const int err = sandbox_enter(which, NULL, NULL);

		syscall(SYS_exit_group,
			kept == expected && inherited == (expected == ~0ULL ? ~0ULL : 0) &&
					(err || (is_without_parent && is_not_dumpable &&
						 has_no_new_rights))
				? 100 - err
				: 1);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static void sandbox_enter__keeps_each_childs_capabilities_alone(void **state)
{
	const uint64_t of_memory =
		CAPABILITY_BIT(CAP_SYS_PTRACE) | CAPABILITY_BIT(CAP_DAC_READ_SEARCH);

	(void)state;
	assert_int_equal(enter(CHILD_MEMORY, of_memory), 100);
	assert_int_equal(enter(CHILD_OPENER, of_memory | CAPABILITY_BIT(CAP_CHECKPOINT_RESTORE) |
						     CAPABILITY_BIT(CAP_SETUID) |
						     CAPABILITY_BIT(CAP_SETGID)),
			 100);
	assert_int_equal(enter(CHILD_FILES, 0), 100);
	assert_int_equal(enter(CHILD_EVENTS,
			       CAPABILITY_BIT(CAP_SYS_ADMIN) | CAPABILITY_BIT(CAP_PERFMON)),
			 100);
	capabilities_error = -EPERM;
	assert_int_equal(enter(CHILD_MEMORY, of_memory), 100 + EPERM);
}

/* Whatever cannot be given up: the child does not go on with it. */
static void sandbox_enter__what_fails_is_told(void **state)
{
	static const int options[] = {PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_SET_NO_NEW_PRIVS};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(options); i++) {
		prctl_fails = options[i];
		assert_int_equal(enter(CHILD_MEMORY, ~0ULL), 100 + EPERM);
	}
	prctl_fails = PR_SET_SECCOMP;
	assert_int_equal(enter(CHILD_FILES, 0), 100 + EPERM);
}

#define TEST(name) cmocka_unit_test_setup(name, setup)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(peek_child_do__pieces_are_read_one_behind_the_other),
		TEST(peek_child_do__memory_is_read_by_its_file_instead),
		TEST(peek_child_do__memory_that_is_not_there_is_efault),
		TEST(peek_child_do__maps_come_in_parts_of_one_opening),
		TEST(peek_child_do__maps_are_open_once),
		TEST(peek_child_do__texts_are_read_by_their_names),
		TEST(peek_child_do__directories_are_listed),
		TEST(peek_child_main__answers_until_the_agent_goes),
		TEST(peek_child_main__nonsense_ends_it),
		TEST(peek_child_main__without_memory_or_a_sandbox_it_does_not_serve),
		TEST(sandbox_enter__keeps_each_childs_capabilities_alone),
		TEST(sandbox_enter__what_fails_is_told),
	};

	return cmocka_run_group_tests_name("peek/child", tests, NULL, NULL);
}
