/* SPDX-License-Identifier: BSD-2-Clause */
/* A worker's children are the other end of its socket, in this process: starting, killing and
 * scheduling them, and the clocks, are fakes in this file. */
#include "child/worker.h"

#include <cmocka.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/io.h"
#include "child/spawn.h"

#define PROGRAM "/a/program"
#define NAME "pyprofd: memory"
#define MEMORY_BYTES 8192U
#define LIMIT_MS 40U
#define CHILD_CLOCK 1000 /* and the child's number */
#define FIRST_PID 70000
#define CHILDREN 16U

/* ---- the children ---- */

/* What one does with a request. */
enum act { ANSWERS, IS_SILENT, ENDS, HAS_ANOTHER_SERIAL, TOO_SHORT, TOO_LARGE };

static struct {
	unsigned int started;
	int socket[CHILDREN], memory[CHILDREN]; /* -1: it has ended */
	unsigned int killed[CHILDREN], awaited[CHILDREN];
	bool is_stuck; /* killed ones do not end */
	int spawn_error;

	unsigned int hello_after; /* so many waits; UINT_MAX: never */
	bool ends_at_start;
	enum act act[CHILDREN];
	int error, answer_fd; /* of an answer; -1: none */
	bool only_first_has_fd;
	unsigned int answers_at; /* 0: at once; else after so many polls */

	uint32_t serial; /* of the last request */
	size_t bytes, fds;
	char text[64];
} children;

static uint64_t now_ns, cpu_ns[CHILDREN], cpu_a_poll_ns;
static unsigned int interrupts, polls;
static int receive_error;
static int poll_ms[16];
static const char *state_text; /* of /proc/PID/stat */

static unsigned int last(void)
{
	return children.started - 1;
}

static void say(unsigned int child, uint32_t serial, size_t size, uint32_t length)
{
	const struct child_reply reply = {
		.serial = serial, .error = children.error, .size = length};
	union {
		struct cmsghdr header;
		char room[CMSG_SPACE(sizeof(int))];
	} control = {.header = {.cmsg_len = CMSG_LEN(sizeof(int)),
				.cmsg_level = SOL_SOCKET,
				.cmsg_type = SCM_RIGHTS}};
	struct iovec part = {.iov_base = (void *)&reply, .iov_len = size};
	struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};

	if (children.answer_fd >= 0 && serial != CHILD_HELLO &&
	    !(children.only_first_has_fd && child)) {
		memcpy(CMSG_DATA(&control.header), &children.answer_fd, sizeof(int));
		message.msg_control = &control;
		message.msg_controllen = sizeof(control);
	}
	assert_int_equal(syscall(SYS_sendmsg, children.socket[child], &message, MSG_NOSIGNAL),
			 size);
}

static void end_child(unsigned int child)
{
	close(children.socket[child]);
	close(children.memory[child]);
	children.socket[child] = children.memory[child] = -1;
}

static void act(unsigned int child)
{
	const uint32_t serial = children.serial;

	switch (children.act[child]) {
	case ANSWERS:
		say(child, serial, sizeof(struct child_reply), MEMORY_BYTES);
		return;
	case IS_SILENT:
		return;
	case ENDS:
		end_child(child);
		return;
	case HAS_ANOTHER_SERIAL:
		say(child, serial + 1, sizeof(struct child_reply), 0);
		return;
	case TOO_SHORT:
		say(child, serial, sizeof(struct child_reply) - 1, 0);
		return;
	default:
		say(child, serial, sizeof(struct child_reply), MEMORY_BYTES + 1);
	}
}

static void take_request(unsigned int child)
{
	union {
		struct cmsghdr header;
		char room[CMSG_SPACE(WORKER_FDS_MAX * sizeof(int))];
	} control;
	char bytes[64] = "";
	struct iovec part = {.iov_base = bytes, .iov_len = sizeof(bytes)};
	struct msghdr message = {.msg_iov = &part,
				 .msg_iovlen = 1,
				 .msg_control = &control,
				 .msg_controllen = sizeof(control)};
	ssize_t size = syscall(SYS_recvmsg, children.socket[child], &message, MSG_DONTWAIT);

	assert_true(size >= 4);
	memcpy(&children.serial, bytes, 4);
	memcpy(children.text, bytes + 4, sizeof(bytes) - 4);
	children.bytes = (size_t)size;
	children.fds = 0;
	if (CMSG_FIRSTHDR(&message))
		children.fds = (control.header.cmsg_len - CMSG_LEN(0)) / sizeof(int);
	for (size_t i = 0; i < children.fds; i++) {
		int fd;

		memcpy(&fd, CMSG_DATA(&control.header) + i * sizeof(int), sizeof(int));
		close(fd);
	}
}

/* ---- the kernel and libc ---- */

int clock_gettime(clockid_t clock, struct timespec *time)
{
	const bool is_childs = clock >= CHILD_CLOCK && clock < CHILD_CLOCK + (int)CHILDREN;
	const uint64_t ns = is_childs ? cpu_ns[clock - CHILD_CLOCK] : now_ns;

	*time = (struct timespec){.tv_sec = (time_t)(ns / NS_PER_SEC),
				  .tv_nsec = (long)(ns % NS_PER_SEC)};
	return is_childs && ns == UINT64_MAX ? -1 : 0;
}

int clock_getcpuclockid(pid_t pid, clockid_t *clock)
{
	*clock = CHILD_CLOCK + pid - FIRST_PID;
	return 0;
}

int child_spawn(enum child_kind spawned, const struct child_start *start, pid_t *ret_pid)
{
	const unsigned int child = children.started;

	assert_int_equal(spawned, CHILD_MEMORY);
	assert_string_equal(start->program, PROGRAM);
	assert_null(start->argv);
	if (children.spawn_error)
		return -children.spawn_error;
	assert_true(child < CHILDREN);
	children.started++;
	children.socket[child] = fcntl(start->fd[0], F_DUPFD_CLOEXEC, 100);
	children.memory[child] = fcntl(start->fd[1], F_DUPFD_CLOEXEC, 100);
	assert_true(children.socket[child] >= 0 && children.memory[child] >= 0);
	*ret_pid = FIRST_PID + (pid_t)child;
	if (children.ends_at_start)
		end_child(child);
	else if (!children.hello_after)
		say(child, CHILD_HELLO, sizeof(struct child_reply), 0);
	return 0;
}

int kill(pid_t pid, int sig)
{
	const unsigned int child = (unsigned int)(pid - FIRST_PID);

	assert_true(child < children.started);
	assert_int_equal(sig, SIGKILL);
	children.killed[child]++;
	return 0;
}

pid_t waitpid(pid_t pid, int *status, int options)
{
	(void)status;
	assert_int_equal(options, WNOHANG);
	assert_int_equal(children.killed[pid - FIRST_PID], 1);
	if (children.is_stuck)
		return 0;
	children.awaited[pid - FIRST_PID]++;
	return pid;
}

ssize_t sendmsg(int fd, const struct msghdr *message, int flags)
{
	ssize_t size = syscall(SYS_sendmsg, fd, message, flags);

	assert_int_equal(flags, MSG_NOSIGNAL | MSG_DONTWAIT);
	if (size < 0)
		return size;
	take_request(last());
	if (!children.answers_at)
		act(last());
	return size;
}

/* Waits for as long as the socket's time limit says. */
ssize_t recvmsg(int fd, struct msghdr *message, int flags)
{
	struct timeval limit;
	socklen_t limit_size = sizeof(limit);
	ssize_t size;

	if (interrupts) {
		interrupts--;
		errno = EINTR;
		return -1;
	}
	size = syscall(SYS_recvmsg, fd, message, flags | MSG_DONTWAIT);
	if (receive_error) {
		errno = receive_error;
		return -1;
	}
	if (size >= 0) {
		errno = EINTR; /* of before */
		return size;
	}
	if (errno != EAGAIN || flags & MSG_DONTWAIT)
		return -1;
	assert_int_equal(getsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, &limit_size), 0);
	now_ns += (uint64_t)limit.tv_sec * NS_PER_SEC + (uint64_t)limit.tv_usec * NS_PER_US;
	if (children.hello_after != UINT32_MAX && !--children.hello_after)
		say(last(), CHILD_HELLO, sizeof(struct child_reply), 0);
	errno = EAGAIN;
	return -1;
}

int poll(struct pollfd *fds, nfds_t count, int timeout)
{
	struct timespec none = {0};
	long ready;

	assert_int_equal(count, 1);
	assert_int_equal(fds->events, POLLIN);
	assert_true(polls < ARRAY_SIZE(poll_ms));
	poll_ms[polls++] = timeout;
	ready = syscall(SYS_ppoll, fds, count, &none, NULL, 0);
	if (ready)
		return (int)ready;
	now_ns += (uint64_t)timeout * NS_PER_MS;
	cpu_ns[last()] += cpu_a_poll_ns;
	if (polls == children.answers_at)
		act(last());
	return 0;
}

int read_file(const char *path, size_t max_bytes, char **ret_text, size_t *ret_size)
{
	char wanted[64];

	snprintf(wanted, sizeof(wanted), "/proc/%u/stat", FIRST_PID + last());
	assert_string_equal(path, wanted);
	assert_true(max_bytes >= 1024);
	assert_null(ret_size);
	if (!state_text)
		return -ESRCH;
	*ret_text = strdup(state_text);
	return 0;
}

/* ---- fixture ---- */

static struct worker_kind kind = {.kind = CHILD_MEMORY, .memory_bytes = MEMORY_BYTES};
static struct worker *worker;
static unsigned int fds_before;

static unsigned int memory_mapped(void)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	unsigned int count = 0;
	char line[512];

	assert_non_null(maps);
	while (fgets(line, sizeof(line), maps))
		count += strstr(line, "memfd:" NAME) != NULL;
	fclose(maps);
	return count;
}

static unsigned int open_fds(void)
{
	DIR *directory = opendir("/proc/self/fd");
	unsigned int count = 0;

	assert_non_null(directory);
	while (readdir(directory))
		count++;
	closedir(directory);
	return count;
}

static struct worker_blame blame; /* of what is asked */

static int setup(void **state)
{
	(void)state;
	memset(&children, 0, sizeof(children));
	for (unsigned int i = 0; i < CHILDREN; i++)
		children.socket[i] = children.memory[i] = -1;
	children.answer_fd = -1;
	now_ns = 1000 * NS_PER_SEC;
	memset(cpu_ns, 0, sizeof(cpu_ns));
	cpu_a_poll_ns = 0;
	receive_error = 0;
	interrupts = polls = 0;
	state_text = "70000 (a) name) S 1";
	kind.is_computing = false;
	blame = (struct worker_blame){0};
	worker = NULL;
	fds_before = open_fds();
	return 0;
}

/* Each child was killed once and awaited, and nothing is left open. */
static int teardown(void **state)
{
	(void)state;
	children.is_stuck = false;
	worker_free(worker);
	for (unsigned int i = 0; i < children.started; i++) {
		assert_int_equal(children.killed[i], 1);
		if (children.socket[i] >= 0)
			end_child(i);
	}
	if (children.answer_fd >= 0)
		close(children.answer_fd);
	assert_int_equal(open_fds(), fds_before);
	assert_int_equal(memory_mapped(), 0);
	return 0;
}

static void start(void)
{
	assert_int_equal(worker_new(&kind, PROGRAM, -1, &worker), 0);
}

/* Asks, and expects this; an answer is released. */
static void ask(int expected)
{
	struct {
		uint32_t serial;
		char text[12];
	} message = {.serial = 4711, .text = "a request"};
	const struct worker_request request = {.blame = blame,
					       .message = &message,
					       .bytes = sizeof(message),
					       .limit_ms = LIMIT_MS};
	struct worker_answer answer = {.fd = -7};

	polls = 0;
	assert_int_equal(worker_ask(worker, &request, &answer), expected);
	if (expected) {
		assert_int_equal(answer.fd, -7);
		return;
	}
	assert_int_equal(children.bytes, sizeof(message));
	assert_string_equal(children.text, "a request");
	assert_int_equal(answer.reply.serial, children.serial);
	assert_int_equal(answer.reply.error, children.error);
	assert_int_equal(answer.reply.size, MEMORY_BYTES);
	assert_int_equal(answer.fd >= 0, children.answer_fd >= 0 && !children.only_first_has_fd);
	worker_answer_release(&answer);
}

static uint64_t starts(void)
{
	struct worker_stats stats;

	worker_get_stats(worker, &stats);
	return stats.starts;
}

/* ---- children ---- */

static void worker_new__child_shares_memory_of_its_size(void **state)
{
	struct stat status;

	(void)state;
	start();
	assert_int_equal(starts(), 1);
	assert_int_equal(pwrite(children.memory[0], "shared", 6, MEMORY_BYTES - 6), 6);
	assert_memory_equal(worker_memory(worker) + MEMORY_BYTES - 6, "shared", 6);
	worker_wipe(worker, MEMORY_BYTES - 3);
	assert_memory_equal(worker_memory(worker) + MEMORY_BYTES - 6, "\0\0\0red", 6);
	assert_int_equal(fstat(children.memory[0], &status), 0);
	assert_int_equal(status.st_size, MEMORY_BYTES);
	/* Nobody can take it away under the agent, nor add to it. */
	assert_int_equal(ftruncate(children.memory[0], 1), -1);
	assert_int_equal(ftruncate(children.memory[0], 2 * MEMORY_BYTES), -1);
	assert_int_equal(fcntl(children.memory[0], F_ADD_SEALS, F_SEAL_WRITE), -1);
}

static void worker_ask__start_that_fails_is_tried_again_after_a_second(void **state)
{
	(void)state;
	children.spawn_error = ENOENT;
	start();
	assert_int_equal(starts(), 0);
	ask(-ETIMEDOUT);
	children.spawn_error = 0;
	now_ns += NS_PER_SEC - 1;
	ask(-ETIMEDOUT);
	assert_int_equal(starts(), 0);
	now_ns++;
	ask(0);
	assert_int_equal(starts(), 1);
}

static void worker_free__ends_the_child(void **state)
{
	(void)state;
	start();
	worker_free(worker);
	worker = NULL;
	assert_int_equal(children.killed[0], 1);
	assert_int_equal(children.awaited[0], 1);
	worker_free(NULL);
}

static void worker_new__childs_environment_is_ours_and_one_more(void **state)
{
	char **const ours = environ;
	char a[] = "A=1", b[] = "B=2", *none[] = {NULL}, *two[] = {a, b, NULL};

	(void)state;
	/* posix_spawn() looks at it. */
	environ = none;
	start();
	worker_free(worker);
	environ = two;
	start();
	environ = ours;
	assert_int_equal(children.started, 2);
}

/* ---- answers ---- */

static void worker_ask__requests_have_serials_in_turn(void **state)
{
	(void)state;
	start();
	for (uint32_t serial = 1; serial < 5; serial++) {
		children.error = -(int)serial + 1;
		ask(0);
		assert_int_equal(children.serial, serial);
		assert_int_equal(children.fds, 0);
		assert_int_equal(polls, 1);
		assert_int_equal(poll_ms[0], LIMIT_MS);
	}
	assert_int_equal(starts(), 1);
	assert_int_equal(children.killed[0], 0);
}

static void worker_ask__signal_does_not_disturb(void **state)
{
	(void)state;
	interrupts = 2;
	start();
	ask(0);
	assert_int_equal(interrupts, 0);
	interrupts = 2;
	ask(0);
	assert_int_equal(interrupts, 0);
}

static void worker_ask__descriptor_comes_with_the_answer(void **state)
{
	(void)state;
	start();
	children.answer_fd = memfd_create("answer", MFD_CLOEXEC);
	ask(0);
	ask(0);
}

static void worker_ask__descriptors_go_with_the_request(void **state)
{
	int fd[WORKER_FDS_MAX];
	uint32_t message = 0;
	struct worker_request request = {
		.message = &message, .bytes = sizeof(message), .fd = fd, .limit_ms = LIMIT_MS};
	struct worker_answer answer;

	(void)state;
	start();
	for (size_t i = 0; i < WORKER_FDS_MAX; i++)
		fd[i] = STDERR_FILENO;
	for (request.fd_count = 0; request.fd_count <= WORKER_FDS_MAX; request.fd_count++) {
		assert_int_equal(worker_ask(worker, &request, &answer), 0);
		assert_int_equal(children.fds, request.fd_count);
	}
}

/* ---- late ones ---- */

static void worker_ask__late_child_is_replaced(void **state)
{
	(void)state;
	start();
	children.act[0] = IS_SILENT;
	ask(-ETIME);
	assert_int_equal(polls, 1);
	assert_int_equal(children.killed[0], 1);
	assert_int_equal(children.awaited[0], 1);
	/* By one that starts when it is needed. */
	assert_int_equal(starts(), 1);
	ask(0);
	assert_int_equal(starts(), 2);
	assert_int_equal(children.killed[1], 0);
}

static void worker_ask__child_that_has_ended_meanwhile_is_late(void **state)
{
	(void)state;
	start();
	children.act[0] = IS_SILENT;
	state_text = NULL;
	ask(-ETIME);
	assert_int_equal(polls, 1);
	children.act[1] = IS_SILENT;
	state_text = "70000 no name R";
	ask(-ETIME);
	assert_int_equal(polls, 1);
}

static void worker_ask__child_without_a_cpu_is_awaited_four_times_more(void **state)
{
	(void)state;
	start();
	state_text = "70000 (a) name) R 1";
	children.answers_at = 4;
	ask(0);
	assert_int_equal(polls, 5);
	for (unsigned int i = 0; i < polls; i++)
		assert_int_equal(poll_ms[i], LIMIT_MS);
	children.answers_at = 5;
	/* It does not compute, so that its CPU time says nothing. */
	cpu_ns[0] = 1000 * NS_PER_SEC;
	ask(-ETIME);
	assert_int_equal(polls, 5);
	assert_int_equal(children.killed[0], 1);
}

static void worker_ask__computing_child_is_late_by_its_own_time(void **state)
{
	static const int left_ms[] = {LIMIT_MS, 30, 20, 10};

	(void)state;
	kind.is_computing = true;
	start();
	state_text = "70000 (a) name) R 1";
	/* What it has used before does not count. */
	cpu_ns[0] = 7 * NS_PER_SEC;
	cpu_a_poll_ns = 10 * NS_PER_MS;
	children.answers_at = 4;
	children.act[0] = IS_SILENT;
	ask(-ETIME);
	assert_int_equal(polls, ARRAY_SIZE(left_ms));
	for (unsigned int i = 0; i < polls; i++)
		assert_int_equal(poll_ms[i], left_ms[i]);
	/* One that has got little of a CPU, and one that answers in time. */
	cpu_a_poll_ns = NS_PER_MS;
	children.act[1] = IS_SILENT;
	ask(-ETIME);
	assert_int_equal(polls, 5);
	cpu_a_poll_ns = 10 * NS_PER_MS;
	children.answers_at = 3;
	ask(0);
	assert_int_equal(polls, 4);
	/* One that sleeps. */
	state_text = "70000 (a) name) S 1";
	children.act[2] = IS_SILENT;
	ask(-ETIME);
	assert_int_equal(polls, 1);
}

static void worker_ask__late_children_that_do_not_end_are_four_at_most(void **state)
{
	(void)state;
	start();
	children.is_stuck = true;
	for (unsigned int i = 0; i < WORKER_STUCK_MAX; i++) {
		children.act[i] = IS_SILENT;
		ask(-ETIME);
	}
	for (unsigned int i = 0; i < 3; i++)
		ask(-ETIMEDOUT);
	assert_int_equal(starts(), WORKER_STUCK_MAX);
	children.is_stuck = false;
	ask(0);
	assert_int_equal(starts(), WORKER_STUCK_MAX + 1);
	for (unsigned int i = 0; i < WORKER_STUCK_MAX; i++)
		assert_int_equal(children.awaited[i], 1);
}

/* Asks about that; act: what the child does that is asked. */
static void ask_about(struct worker_blame about, enum act act, int expected)
{
	blame = about;
	/* After a late one another one is started. */
	children.act[worker_child(worker) % 2 ? children.started : last()] = act;
	ask(expected);
}

static uint64_t stuck(void)
{
	struct worker_stats stats;

	worker_get_stats(worker, &stats);
	return stats.stuck;
}

static void worker_ask__what_holds_a_child_up_is_not_asked_again(void **state)
{
	(void)state;
	start();
	children.is_stuck = true;
	ask_about((struct worker_blame){.what = 1, .user = 5}, IS_SILENT, -ETIME);
	ask_about((struct worker_blame){.what = 1, .user = 5}, ANSWERS, -ETIMEDOUT);
	ask_about((struct worker_blame){.what = 2, .place = 9, .user = 5}, IS_SILENT, -ETIME);
	/* Two are of this user's; and the file system is nobody's to ask. */
	ask_about((struct worker_blame){.what = 3, .user = 5}, ANSWERS, -ETIMEDOUT);
	ask_about((struct worker_blame){.what = 3, .place = 9, .user = 6}, ANSWERS, -ETIMEDOUT);
	ask_about((struct worker_blame){.what = 3, .place = 9}, ANSWERS, -ETIMEDOUT);
	ask_about((struct worker_blame){.what = 3, .place = 8, .user = 6}, ANSWERS, 0);
	ask_about((struct worker_blame){.what = 3, .place = 8, .user = 6}, IS_SILENT, -ETIME);
	/* The last one is root's. */
	ask_about((struct worker_blame){.what = 4, .user = 7}, ANSWERS, -ETIMEDOUT);
	assert_true(worker_is_held_up(worker, &blame));
	ask_about((struct worker_blame){.what = 4}, ANSWERS, 0);
	assert_int_equal(starts(), 4);
	assert_int_equal(stuck(), 0);
	now_ns += WORKER_STUCK_NS;
	assert_int_equal(stuck(), 3);
	children.is_stuck = false;
	ask_about((struct worker_blame){.what = 1, .place = 9, .user = 5}, ANSWERS, 0);
	assert_int_equal(stuck(), 3);
}

/* ---- bad ones ---- */

static void worker_ask__two_children_that_end_at_it_are_epipe(void **state)
{
	static const enum act bad[] = {ENDS, HAS_ANOTHER_SERIAL, TOO_SHORT, TOO_LARGE};

	(void)state;
	start();
	children.answer_fd = memfd_create("answer", MFD_CLOEXEC);
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		/* The first one has served for some time. */
		now_ns += 2 * NS_PER_SEC;
		ask(0);
		now_ns += NS_PER_SEC;
		children.act[last()] = children.act[last() + 1] = bad[i];
		ask(-EPIPE);
		assert_int_equal(starts(), 2 * (i + 1));
		/* The other one has ended at once: so would the next. */
		ask(-ETIMEDOUT);
		now_ns += NS_PER_SEC - 1;
		ask(-ETIMEDOUT);
		assert_int_equal(starts(), 2 * (i + 1));
	}
}

static void worker_ask__socket_that_fails_is_a_child_that_has_ended(void **state)
{
	(void)state;
	start();
	ask(0);
	receive_error = EIO;
	now_ns += NS_PER_SEC;
	ask(-ETIMEDOUT);
	assert_int_equal(children.killed[0], 1);
	assert_int_equal(children.killed[1], 1);
}

static void worker_ask__another_child_answers_when_one_has_ended(void **state)
{
	(void)state;
	start();
	children.answer_fd = memfd_create("answer", MFD_CLOEXEC);
	now_ns += NS_PER_SEC;
	children.act[0] = HAS_ANOTHER_SERIAL;
	children.only_first_has_fd = true;
	ask(0);
	assert_int_equal(starts(), 2);
	children.only_first_has_fd = false;
	/* It ended before it was asked. */
	now_ns += NS_PER_SEC;
	end_child(1);
	ask(0);
	assert_int_equal(starts(), 3);
}

static void worker_ask__child_that_ends_at_its_start_is_no_fault_of_the_request(void **state)
{
	(void)state;
	start();
	children.ends_at_start = true;
	now_ns += NS_PER_SEC;
	children.act[0] = ENDS;
	ask(-ETIMEDOUT);
	assert_int_equal(starts(), 2);
	now_ns += NS_PER_SEC;
	ask(-ETIMEDOUT);
	assert_int_equal(starts(), 3);
	/* What is asked is to blame once children start again. */
	now_ns += NS_PER_SEC;
	children.ends_at_start = false;
	children.act[3] = ENDS;
	ask(-ETIMEDOUT);
	now_ns += NS_PER_SEC;
	ask(0);
}

/* ---- the start ---- */

static void worker_ask__new_child_is_awaited_once(void **state)
{
	const uint64_t began_ns = now_ns;

	(void)state;
	children.hello_after = UINT32_MAX;
	start();
	ask(-ETIMEDOUT);
	assert_int_equal(now_ns, began_ns + WORKER_HELLO_NS);
	ask(-ETIMEDOUT);
	assert_int_equal(now_ns, began_ns + WORKER_HELLO_NS);
	say(0, CHILD_HELLO, sizeof(struct child_reply), 0);
	ask(0);
	assert_int_equal(starts(), 1);
}

static void worker_ask__child_that_never_gets_ready_is_replaced(void **state)
{
	(void)state;
	children.hello_after = UINT32_MAX;
	start();
	now_ns += WORKER_START_NS - WORKER_HELLO_NS - 1;
	ask(-ETIMEDOUT);
	assert_int_equal(starts(), 1);
	now_ns++;
	ask(-ETIMEDOUT);
	assert_int_equal(starts(), 2);
	assert_int_equal(children.killed[0], 1);
	assert_int_equal(children.killed[1], 0);
}

static void worker_ask__what_comes_instead_of_the_hello_is_nonsense(void **state)
{
	(void)state;
	children.hello_after = UINT32_MAX;
	start();
	say(0, CHILD_HELLO + 1, sizeof(struct child_reply), 0);
	ask(-ETIMEDOUT);
	assert_int_equal(children.killed[0], 1);
	ask(-ETIMEDOUT);
	assert_int_equal(starts(), 1);
}

static void worker_await__waits_until_the_child_is_ready(void **state)
{
	const uint64_t began_ns = now_ns;

	(void)state;
	children.hello_after = 20;
	start();
	assert_true(worker_await(worker));
	assert_int_equal(now_ns, began_ns + 20 * WORKER_HELLO_NS);
	assert_true(worker_await(worker));
	assert_int_equal(now_ns, began_ns + 20 * WORKER_HELLO_NS);
	ask(0);
	assert_int_equal(starts(), 1);
}

static void worker_await__gives_up_after_5_s(void **state)
{
	const uint64_t began_ns = now_ns;

	(void)state;
	children.hello_after = UINT32_MAX;
	start();
	assert_false(worker_await(worker));
	assert_int_equal(now_ns, began_ns + WORKER_START_NS);
	assert_int_equal(children.killed[0], 1);
	/* It had its time: another one may be started at once. */
	children.hello_after = 0;
	assert_true(worker_await(worker));
	assert_int_equal(starts(), 2);
}

static void worker_await__child_that_has_ended_is_not_awaited(void **state)
{
	const uint64_t began_ns = now_ns;

	(void)state;
	children.ends_at_start = true;
	start();
	assert_false(worker_await(worker));
	assert_int_equal(children.killed[0], 1);
	assert_false(worker_await(worker));
	assert_int_equal(starts(), 1);
	assert_int_equal(now_ns, began_ns);
}

/* ---- figures ---- */

static void worker_get_stats__cpu_time_is_that_of_all_children(void **state)
{
	struct worker_stats stats;

	(void)state;
	start();
	cpu_ns[0] = 5;
	worker_get_stats(worker, &stats);
	assert_int_equal(stats.cpu_ns, 5);
	children.act[0] = IS_SILENT;
	ask(-ETIME);
	worker_get_stats(worker, &stats);
	assert_int_equal(stats.cpu_ns, 5);
	cpu_ns[1] = 300;
	children.act[1] = IS_SILENT;
	ask(-ETIME);
	cpu_ns[2] = NS_PER_SEC + 7000;
	ask(0);
	worker_get_stats(worker, &stats);
	assert_int_equal(stats.cpu_ns, NS_PER_SEC + 7305);
	/* A clock that cannot be read. */
	cpu_ns[2] = UINT64_MAX;
	worker_get_stats(worker, &stats);
	assert_int_equal(stats.cpu_ns, 305);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(worker_new__child_shares_memory_of_its_size),
		TEST(worker_ask__start_that_fails_is_tried_again_after_a_second),
		TEST(worker_free__ends_the_child),
		TEST(worker_new__childs_environment_is_ours_and_one_more),
		TEST(worker_ask__requests_have_serials_in_turn),
		TEST(worker_ask__signal_does_not_disturb),
		TEST(worker_ask__descriptor_comes_with_the_answer),
		TEST(worker_ask__descriptors_go_with_the_request),
		TEST(worker_ask__late_child_is_replaced),
		TEST(worker_ask__child_that_has_ended_meanwhile_is_late),
		TEST(worker_ask__child_without_a_cpu_is_awaited_four_times_more),
		TEST(worker_ask__computing_child_is_late_by_its_own_time),
		TEST(worker_ask__late_children_that_do_not_end_are_four_at_most),
		TEST(worker_ask__what_holds_a_child_up_is_not_asked_again),
		TEST(worker_ask__two_children_that_end_at_it_are_epipe),
		TEST(worker_ask__socket_that_fails_is_a_child_that_has_ended),
		TEST(worker_ask__another_child_answers_when_one_has_ended),
		TEST(worker_ask__child_that_ends_at_its_start_is_no_fault_of_the_request),
		TEST(worker_ask__new_child_is_awaited_once),
		TEST(worker_ask__child_that_never_gets_ready_is_replaced),
		TEST(worker_ask__what_comes_instead_of_the_hello_is_nonsense),
		TEST(worker_await__waits_until_the_child_is_ready),
		TEST(worker_await__gives_up_after_5_s),
		TEST(worker_await__child_that_has_ended_is_not_awaited),
		TEST(worker_get_stats__cpu_time_is_that_of_all_children),
	};

	return cmocka_run_group_tests_name("child/worker", tests, NULL, NULL);
}
