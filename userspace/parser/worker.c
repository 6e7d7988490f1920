/* SPDX-License-Identifier: BSD-2-Clause */
#include "parser/worker.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "base/running.h"

extern char **environ;

#define CHILD_VARIABLE "PYPROFD_PARSER_CHILD"

struct child {
	pid_t pid; /* 0: there is none */
	clockid_t clock;       /* its CPU time */
	int socket_fd;	       /* owned */
	uint8_t *memory;       /* mapped; kind->memory_bytes */
	uint64_t started_ns;
	bool is_ready;	 /* it has said PARSER_HELLO */
	bool is_awaited; /* we have waited for that once */
};

struct worker {
	const struct worker_kind *kind;
	char *program; /* owned */
	struct child child;
	pid_t stuck[WORKER_STUCK_MAX]; /* killed and not yet ended; 0: free */
	uint64_t start_after_ns;       /* when a start may be tried again */
	uint32_t serial;
	struct worker_stats stats;
};

/* ---- children ---- */

static uint64_t child_cpu_ns(const struct child *child)
{
	struct timespec used;

	if (!child->pid || clock_gettime(child->clock, &used))
		return 0;
	return (uint64_t)used.tv_sec * NS_PER_SEC + (uint64_t)used.tv_nsec;
}

static void child_release(const struct worker *worker, struct child *child)
{
	if (child->memory)
		munmap(child->memory, worker->kind->memory_bytes);
	close_owned_fd(&child->socket_fd);
	*child = (struct child){.socket_fd = -1};
}

static void reap_stuck(struct worker *worker)
{
	for (size_t i = 0; i < WORKER_STUCK_MAX; i++)
		if (worker->stuck[i] && waitpid(worker->stuck[i], NULL, WNOHANG))
			worker->stuck[i] = 0;
}

static pid_t *free_stuck(struct worker *worker)
{
	for (size_t i = 0; i < WORKER_STUCK_MAX; i++)
		if (!worker->stuck[i])
			return &worker->stuck[i];
	return NULL;
}

/* Kills the child. It ends when what it waits for lets it: see WORKER_STUCK_MAX. */
static void child_end(struct worker *worker)
{
	pid_t *stuck = free_stuck(worker);

	if (!worker->child.pid)
		return;
	worker->stats.cpu_ns += child_cpu_ns(&worker->child);
	kill(worker->child.pid, SIGKILL);
	/* A child is only started while a place is free. */
	if (stuck)
		*stuck = worker->child.pid;
	child_release(worker, &worker->child);
	reap_stuck(worker);
}

void worker_free(struct worker *worker)
{
	if (!worker)
		return;
	child_end(worker);
	free(worker->program);
	free(worker);
}

static int share_memory(const struct worker_kind *kind, int *ret_fd, uint8_t **ret_memory)
{
	OWNED_FD int fd = memfd_create(kind->argv0, MFD_CLOEXEC | MFD_ALLOW_SEALING);
	void *memory;

	if (fd < 0 || ftruncate(fd, (off_t)kind->memory_bytes) ||
	    fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL))
		return -errno;
	memory = mmap(NULL, kind->memory_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (memory == MAP_FAILED)
		return -errno;
	*ret_memory = memory;
	*ret_fd = TAKE_FD(fd);
	return 0;
}

/* Adds CHILD_VARIABLE to our own environment. */
static char **child_environment(char *variable)
{
	size_t count = 0;
	char **with;

	while (environ && environ[count])
		count++;
	with = calloc(count + 2, sizeof(*with));
	if (!with)
		return NULL;
	if (count)
		memcpy(with, environ, count * sizeof(*with));
	with[count] = variable;
	return with;
}

/* Starts a child. A program that does not know that it is one must not start children in its turn,
 * and these others: -ELOOP. */
static int spawn(const struct worker *worker, int socket_fd, int memory_fd, pid_t *ret_pid)
{
	char variable[] = CHILD_VARIABLE "=1";
	OWNED_MEM char **environment = NULL;
	OWNED_MEM char *name = strdup(worker->kind->argv0);
	char *const argv[] = {name, NULL};
	posix_spawn_file_actions_t actions;
	int err;

	if (getenv(CHILD_VARIABLE))
		return -ELOOP;
	environment = child_environment(variable);
	if (!environment || !name)
		return -ENOMEM;
	err = posix_spawn_file_actions_init(&actions);
	if (err)
		return -err;
	err = posix_spawn_file_actions_adddup2(&actions, socket_fd, PARSER_SOCKET_FD);
	if (!err)
		err = posix_spawn_file_actions_adddup2(&actions, memory_fd, PARSER_MEMORY_FD);
	if (!err)
		err = posix_spawn(ret_pid, worker->program, &actions, NULL, argv, environment);
	posix_spawn_file_actions_destroy(&actions);
	return -err;
}

/* Duplicates a descriptor above those of the child, so that no dup2() closes the other one. */
static int move_up(int fd)
{
	return fcntl(fd, F_DUPFD_CLOEXEC, PARSER_MEMORY_FD + 1);
}

static int start(struct worker *worker, struct child *child)
{
	const struct timeval deadline = {.tv_usec = WORKER_HELLO_NS / NS_PER_US};
	OWNED_FD int theirs = -1, memory_fd = -1, high_socket_fd = -1, high_memory_fd = -1;
	int pair[2], err;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
		return -errno;
	child->socket_fd = pair[0];
	theirs = pair[1];
	if (setsockopt(child->socket_fd, SOL_SOCKET, SO_RCVTIMEO, &deadline, sizeof(deadline)))
		return -errno;
	err = share_memory(worker->kind, &memory_fd, &child->memory);
	if (err)
		return err;
	high_socket_fd = move_up(theirs);
	high_memory_fd = move_up(memory_fd);
	if (high_socket_fd < 0 || high_memory_fd < 0)
		return -errno;
	err = spawn(worker, high_socket_fd, high_memory_fd, &child->pid);
	if (err)
		return err;
	(void)clock_getcpuclockid(child->pid, &child->clock);
	child->started_ns = mono_ns();
	worker->stats.starts++;
	return 0;
}

/* ---- one request ---- */

void worker_answer_release(struct worker_answer *answer)
{
	close_owned_fd(&answer->fd);
}

static void take_descriptor(struct msghdr *message, struct worker_answer *answer)
{
	const struct cmsghdr *header = CMSG_FIRSTHDR(message);

	if (header && header->cmsg_level == SOL_SOCKET && header->cmsg_type == SCM_RIGHTS &&
	    header->cmsg_len == CMSG_LEN(sizeof(int)))
		memcpy(&answer->fd, CMSG_DATA(header), sizeof(answer->fd));
}

/* Waits for the reply, until the socket's time is over. Returns 0; -ETIME; -EPIPE when the child
 * has ended or says nonsense. */
static int await(const struct worker *worker, uint32_t serial, int flags,
		 struct worker_answer *answer)
{
	union {
		struct cmsghdr header;
		char room[CMSG_SPACE(sizeof(int))];
	} control = {0};
	struct iovec part = {.iov_base = &answer->reply, .iov_len = sizeof(answer->reply)};
	struct msghdr message = {.msg_iov = &part,
				 .msg_iovlen = 1,
				 .msg_control = &control,
				 .msg_controllen = sizeof(control)};
	ssize_t size;

	do
		size = recvmsg(worker->child.socket_fd, &message,
			       flags | MSG_TRUNC | MSG_CMSG_CLOEXEC);
	while (size < 0 && errno == EINTR);
	if (size < 0)
		return errno == EAGAIN ? -ETIME : -EPIPE;
	worker_answer_release(answer); /* of an earlier try */
	answer->fd = -1;
	take_descriptor(&message, answer);
	return parser_reply_is_sound(&answer->reply, (size_t)size, serial,
				     worker->kind->memory_bytes)
		       ? 0
		       : -EPIPE;
}

/* Waits for a new child once, and looks later whether it is ready: it may start slowly, which is no
 * fault of what is asked. Returns 0; -ETIMEDOUT; -EPIPE. */
static int await_hello(struct worker *worker)
{
	CLEANUP(worker_answer_release) struct worker_answer hello = {.fd = -1};
	struct child *child = &worker->child;
	int err;

	if (child->is_ready)
		return 0;
	err = await(worker, PARSER_HELLO, child->is_awaited ? MSG_DONTWAIT : 0, &hello);
	child->is_awaited = true;
	child->is_ready = !err;
	if (err == -ETIME && mono_ns() - child->started_ns < WORKER_START_NS)
		return -ETIMEDOUT;
	return err ? -EPIPE : 0;
}

/* A child that ends by itself right after its start will do so again. */
static void note_end(struct worker *worker)
{
	const uint64_t now_ns = mono_ns();

	if (now_ns - worker->child.started_ns < WORKER_RESTART_NS)
		worker->start_after_ns = now_ns + WORKER_RESTART_NS;
}

/* Starts a child when there is none. Returns 0; -ETIMEDOUT when too many are stuck, or the last
 * start failed just now. */
static int need_child(struct worker *worker)
{
	const uint64_t now_ns = mono_ns();

	if (worker->child.pid)
		return 0;
	reap_stuck(worker);
	if (!free_stuck(worker) || now_ns < worker->start_after_ns)
		return -ETIMEDOUT;
	if (!start(worker, &worker->child))
		return 0;
	child_release(worker, &worker->child);
	worker->start_after_ns = now_ns + WORKER_RESTART_NS;
	return -ETIMEDOUT;
}

int worker_new(const struct worker_kind *kind, const char *program, struct worker **ret_worker)
{
	OWNED(worker) struct worker *worker = calloc(1, sizeof(*worker));

	if (!worker)
		return -ENOMEM;
	worker->kind = kind;
	worker->child.socket_fd = -1;
	worker->program = strdup(program);
	if (!worker->program)
		return -ENOMEM;
	(void)need_child(worker);
	*ret_worker = TAKE(worker);
	return 0;
}

bool worker_await(struct worker *worker)
{
	int err = need_child(worker);

	while (!err && !worker->child.is_ready) {
		worker->child.is_awaited = false; /* wait once more */
		err = await_hello(worker);
		if (err == -ETIMEDOUT)
			err = 0;
	}
	if (err == -EPIPE) {
		note_end(worker);
		child_end(worker);
	}
	return !err;
}

static int send_request(const struct worker *worker, const struct worker_request *request)
{
	union {
		struct cmsghdr header;
		char room[CMSG_SPACE(WORKER_FDS_MAX * sizeof(int))];
	} control = {0};
	struct iovec part = {.iov_base = request->message, .iov_len = request->bytes};
	struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};

	if (request->fd_count) {
		const size_t bytes = request->fd_count * sizeof(int);

		message.msg_control = &control;
		message.msg_controllen = CMSG_SPACE(bytes);
		control.header = (struct cmsghdr){.cmsg_len = CMSG_LEN(bytes),
						  .cmsg_level = SOL_SOCKET,
						  .cmsg_type = SCM_RIGHTS};
		memcpy(CMSG_DATA(&control.header), request->fd, bytes);
	}
	return sendmsg(worker->child.socket_fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT) < 0 ? -errno
											: 0;
}

static uint32_t next_serial(struct worker *worker)
{
	/* Never PARSER_HELLO. */
	worker->serial = worker->serial % UINT32_MAX + 1;
	return worker->serial;
}

/* Gives a child that lacks the CPU more time: one that computes what is left of its own. */
static int await_reply(const struct worker *worker, unsigned int limit_ms, uint64_t cpu_before_ns)
{
	struct pollfd reply = {.fd = worker->child.socket_fd, .events = POLLIN};
	unsigned int left_ms = limit_ms;

	for (unsigned int i = 0; !poll(&reply, 1, (int)left_ms); i++) {
		uint64_t used_ms = 0;

		if (worker->kind->is_computing)
			used_ms = (child_cpu_ns(&worker->child) - cpu_before_ns) / NS_PER_MS;
		if (i == WORKER_RUNNING_MAX || used_ms >= limit_ms ||
		    !task_is_running(worker->child.pid))
			return -ETIME;
		left_ms = limit_ms - (unsigned int)used_ms;
	}
	return 0;
}

static int exchange(struct worker *worker, const struct worker_request *request,
		    struct worker_answer *answer)
{
	const uint32_t serial = next_serial(worker);
	uint64_t cpu_ns = worker->kind->is_computing ? child_cpu_ns(&worker->child) : 0;
	int err;

	memcpy(request->message, &serial, sizeof(serial));
	if (send_request(worker, request))
		return -EPIPE;
	err = await_reply(worker, request->limit_ms, cpu_ns);
	return err ? err : await(worker, serial, 0, answer);
}

int worker_ask(struct worker *worker, const struct worker_request *request,
	       struct worker_answer *ret_answer)
{
	struct worker_answer answer = {.fd = -1};
	bool is_to_blame = true; /* what is asked, not the start of children */
	int err = -EPIPE;

	for (int i = 0; i < 2 && err == -EPIPE; i++) {
		err = need_child(worker);
		if (!err)
			err = await_hello(worker);
		if (err == -ETIMEDOUT)
			return err;
		if (err)
			is_to_blame = false;
		else
			err = exchange(worker, request, &answer);
		if (err == -EPIPE)
			note_end(worker);
		if (err)
			child_end(worker);
	}
	if (err)
		worker_answer_release(&answer);
	else
		*ret_answer = answer;
	return err == -EPIPE && !is_to_blame ? -ETIMEDOUT : err;
}

const uint8_t *worker_memory(const struct worker *worker)
{
	return worker->child.memory;
}

void worker_wipe(struct worker *worker, size_t bytes)
{
	if (worker->child.memory)
		explicit_bzero(worker->child.memory, bytes);
}

void worker_get_stats(const struct worker *worker, struct worker_stats *ret_stats)
{
	*ret_stats = worker->stats;
	ret_stats->cpu_ns += child_cpu_ns(&worker->child);
}
