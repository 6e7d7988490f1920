/* SPDX-License-Identifier: BSD-2-Clause */
#include "child/worker.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/task.h"
#include "child/sandbox.h"

/* ---- a child that is kept at work ---- */

void child_init(struct child *child, enum child_kind kind)
{
	*child = (struct child){.kind = kind, .rest_ns = child_row(kind)->restart.first_ns};
}

bool child_is_due(const struct child *child, uint64_t now_ns)
{
	return !child->pid && now_ns >= child->start_after_ns;
}

int child_start(struct child *child, const struct child_start *start, uint64_t now_ns)
{
	int err = child_spawn(child->kind, start, &child->pid);

	child->started_ns = now_ns;
	if (err) {
		child->pid = 0;
		return err;
	}
	child->is_killed = false;
	(void)clock_getcpuclockid(child->pid, &child->clock);
	return 0;
}

void child_kill(struct child *child)
{
	if (!child->pid || child->is_killed)
		return;
	child->is_killed = true;
	kill(child->pid, SIGKILL);
}

bool child_has_ended(struct child *child, int *ret_status)
{
	if (!child->pid || !waitpid(child->pid, ret_status, WNOHANG))
		return false;
	child->pid = 0;
	return true;
}

void child_release(struct child *child)
{
	/* It may wait for a disk or a driver that does not answer: nobody waits for it. */
	child_kill(child);
	if (child->pid)
		(void)waitpid(child->pid, NULL, WNOHANG);
	child->pid = 0;
}

static bool was_steady(const struct child *child, uint64_t now_ns)
{
	return child_row(child->kind)->restart.steady_ns &&
	       now_ns - child->started_ns >= child_row(child->kind)->restart.steady_ns;
}

void child_rest(struct child *child, uint64_t now_ns)
{
	const uint64_t most_ns = child_row(child->kind)->restart.most_ns;

	if (was_steady(child, now_ns))
		child->rest_ns = child_row(child->kind)->restart.first_ns;
	child->started_ns = now_ns;
	child->start_after_ns = now_ns + child->rest_ns;
	child->rest_ns = 2 * child->rest_ns < most_ns ? 2 * child->rest_ns : most_ns;
}

void child_rest_long(struct child *child, uint64_t now_ns)
{
	child->rest_ns = child_row(child->kind)->restart.most_ns;
	child->start_after_ns = now_ns + child->rest_ns;
}

void child_forgive(struct child *child)
{
	child->start_after_ns = 0;
	child->rest_ns = child_row(child->kind)->restart.first_ns;
}

uint64_t child_cpu_ns(const struct child *child)
{
	struct timespec used;

	if (!child->pid || child->is_killed || clock_gettime(child->clock, &used))
		return 0;
	return (uint64_t)used.tv_sec * NS_PER_SEC + (uint64_t)used.tv_nsec;
}

/* ---- messages, with descriptors ---- */

bool child_send(int socket, const void *data, size_t bytes, const int *fd, size_t fd_count,
		int flags)
{
	union {
		struct cmsghdr header;
		char room[CMSG_SPACE(WORKER_FDS_MAX * sizeof(int))];
	} control = {0};
	struct iovec part = {.iov_base = (void *)data, .iov_len = bytes};
	struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};

	if (fd_count) {
		message.msg_control = &control;
		message.msg_controllen = CMSG_SPACE(fd_count * sizeof(int));
		control.header = (struct cmsghdr){.cmsg_len = CMSG_LEN(fd_count * sizeof(int)),
						  .cmsg_level = SOL_SOCKET,
						  .cmsg_type = SCM_RIGHTS};
		memcpy(CMSG_DATA(&control.header), fd, fd_count * sizeof(int));
	}
	return sendmsg(socket, &message, MSG_NOSIGNAL | flags) == (ssize_t)bytes;
}

/* ---- workers ---- */

/* A child that was killed and has not ended. */
struct stuck {
	pid_t pid; /* 0: none */
	uint64_t killed_ns;
	bool is_counted;
	struct worker_blame blame;
};

struct worker {
	const struct worker_kind *kind;
	char *program; /* owned */
	int peer;      /* borrowed */
	struct child child;
	int socket_fd;	 /* owned */
	uint8_t *memory; /* mapped; kind->memory_bytes */
	bool is_ready;	 /* it has said CHILD_HELLO */
	bool is_awaited; /* we have waited for that once */
	struct stuck stuck[WORKER_STUCK_MAX];
	uint32_t serial;
	struct worker_stats stats;
};

static void forget_child(struct worker *worker)
{
	if (worker->memory)
		munmap(worker->memory, worker->kind->memory_bytes);
	close_owned_fd(&worker->socket_fd);
	worker->memory = NULL;
	worker->socket_fd = -1;
	worker->is_ready = worker->is_awaited = false;
	worker->child.pid = 0;
}

static void reap_stuck(struct worker *worker)
{
	for (struct stuck *stuck = worker->stuck; stuck < worker->stuck + WORKER_STUCK_MAX;
	     stuck++) {
		if (stuck->pid && waitpid(stuck->pid, NULL, WNOHANG))
			stuck->pid = 0;
		if (!stuck->pid || stuck->is_counted ||
		    mono_ns() - stuck->killed_ns < WORKER_STUCK_NS)
			continue;
		stuck->is_counted = true;
		worker->stats.stuck++;
	}
}

static struct stuck *free_stuck(struct worker *worker)
{
	for (size_t i = 0; i < WORKER_STUCK_MAX; i++)
		if (!worker->stuck[i].pid)
			return &worker->stuck[i];
	return NULL;
}

bool worker_is_held_up(struct worker *worker, const struct worker_blame *blame)
{
	unsigned int of_all = 0, of_user = 0;

	reap_stuck(worker);
	for (size_t i = 0; i < WORKER_STUCK_MAX; i++) {
		const struct worker_blame *held = &worker->stuck[i].blame;

		if (!worker->stuck[i].pid)
			continue;
		if ((blame->what && held->what == blame->what) ||
		    (blame->place && held->place == blame->place))
			return true;
		of_all++;
		of_user += held->user == blame->user;
	}
	return blame->user &&
	       (of_user >= WORKER_STUCK_OF_USER_MAX || of_all >= WORKER_STUCK_MAX - 1);
}

/* Kills the child. It ends when what it waits for lets it: see WORKER_STUCK_MAX. */
static void end_child(struct worker *worker, const struct worker_blame *blame)
{
	struct stuck *stuck = free_stuck(worker);

	if (!worker->child.pid)
		return;
	worker->stats.cpu_ns += child_cpu_ns(&worker->child);
	child_kill(&worker->child);
	/* A child is only started while a place is free. */
	if (stuck)
		*stuck = (struct stuck){
			.pid = worker->child.pid, .killed_ns = mono_ns(), .blame = *blame};
	forget_child(worker);
	reap_stuck(worker);
}

void worker_free(struct worker *worker)
{
	if (!worker)
		return;
	end_child(worker, &(struct worker_blame){0});
	free(worker->program);
	free(worker);
}

static int share_memory(const struct worker_kind *kind, int *ret_fd, uint8_t **ret_memory)
{
	OWNED_FD int fd = -1;
	void *memory;

	if (!kind->memory_bytes)
		return 0;
	fd = memfd_create(child_row(kind->kind)->name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
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

static int start(struct worker *worker)
{
	const struct timeval deadline = {.tv_usec = WORKER_HELLO_NS / NS_PER_US};
	OWNED_FD int theirs = -1, memory_fd = -1;
	int pair[2], err;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
		return -errno;
	worker->socket_fd = pair[0];
	theirs = pair[1];
	if (setsockopt(worker->socket_fd, SOL_SOCKET, SO_RCVTIMEO, &deadline, sizeof(deadline)))
		return -errno;
	err = share_memory(worker->kind, &memory_fd, &worker->memory);
	if (!err)
		err = child_start(
			&worker->child,
			&(struct child_start){.program = worker->program,
					      .fd = (const int[]){theirs, memory_fd, worker->peer}},
			mono_ns());
	if (!err)
		worker->stats.starts++;
	return err;
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
		size = recvmsg(worker->socket_fd, &message, flags | MSG_TRUNC | MSG_CMSG_CLOEXEC);
	while (size < 0 && errno == EINTR);
	if (size < 0)
		return errno == EAGAIN ? -ETIME : -EPIPE;
	worker_answer_release(answer); /* of an earlier try */
	answer->fd = -1;
	take_descriptor(&message, answer);
	return child_reply_is_sound(&answer->reply, (size_t)size, serial,
				    worker->kind->memory_bytes)
		       ? 0
		       : -EPIPE;
}

/* Waits for a new child once, and looks later whether it is ready: it may start slowly, which is no
 * fault of what is asked. Returns 0; -ETIMEDOUT; -EPIPE. */
static int await_hello(struct worker *worker)
{
	CLEANUP(worker_answer_release) struct worker_answer hello = {.fd = -1};
	int err;

	if (worker->is_ready)
		return 0;
	err = await(worker, CHILD_HELLO, worker->is_awaited ? MSG_DONTWAIT : 0, &hello);
	worker->is_awaited = true;
	worker->is_ready = !err;
	if (err == -ETIME && mono_ns() - worker->child.started_ns < WORKER_START_NS)
		return -ETIMEDOUT;
	return err ? -EPIPE : 0;
}

/* A child that ends by itself right after its start will do so again. */
static void note_end(struct worker *worker)
{
	const uint64_t now_ns = mono_ns();

	if (!was_steady(&worker->child, now_ns))
		child_rest(&worker->child, now_ns);
}

/* Starts a child when there is none. Returns 0; -ETIMEDOUT when too many are stuck, or the last
 * start failed just now. */
static int need_child(struct worker *worker)
{
	const uint64_t now_ns = mono_ns();

	if (worker->child.pid)
		return 0;
	reap_stuck(worker);
	if (!free_stuck(worker) || !child_is_due(&worker->child, now_ns))
		return -ETIMEDOUT;
	if (!start(worker))
		return 0;
	forget_child(worker);
	child_rest(&worker->child, now_ns);
	return -ETIMEDOUT;
}

int worker_new(const struct worker_kind *kind, const char *program, int peer,
	       struct worker **ret_worker)
{
	OWNED(worker) struct worker *worker = calloc(1, sizeof(*worker));

	if (!worker)
		return -ENOMEM;
	worker->kind = kind;
	worker->peer = peer;
	worker->socket_fd = -1;
	child_init(&worker->child, kind->kind);
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

	while (!err && !worker->is_ready) {
		worker->is_awaited = false; /* wait once more */
		err = await_hello(worker);
		if (err == -ETIMEDOUT)
			err = 0;
	}
	if (err == -EPIPE) {
		note_end(worker);
		end_child(worker, &(struct worker_blame){0});
	}
	return !err;
}

static uint32_t next_serial(struct worker *worker)
{
	/* Never CHILD_HELLO. */
	worker->serial = worker->serial % UINT32_MAX + 1;
	return worker->serial;
}

/* Gives a child that lacks the CPU more time: one that computes what is left of its own. */
static int await_reply(const struct worker *worker, unsigned int limit_ms, uint64_t cpu_before_ns)
{
	struct pollfd reply = {.fd = worker->socket_fd, .events = POLLIN};
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
	if (!child_send(worker->socket_fd, request->message, request->bytes, request->fd,
			request->fd_count, MSG_DONTWAIT))
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

	if (worker_is_held_up(worker, &request->blame))
		return -ETIMEDOUT;
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
			end_child(worker, &request->blame);
	}
	if (err)
		worker_answer_release(&answer);
	else
		*ret_answer = answer;
	return err == -EPIPE && !is_to_blame ? -ETIMEDOUT : err;
}

const uint8_t *worker_memory(const struct worker *worker)
{
	return worker->memory;
}

void worker_wipe(struct worker *worker, size_t bytes)
{
	if (worker->memory)
		explicit_bzero(worker->memory, bytes);
}

uint64_t worker_child(const struct worker *worker)
{
	return 2 * worker->stats.starts + !worker->child.pid;
}

void worker_get_stats(struct worker *worker, struct worker_stats *ret_stats)
{
	reap_stuck(worker);
	*ret_stats = worker->stats;
	ret_stats->cpu_ns += child_cpu_ns(&worker->child);
}

/* ---- in the child ---- */

bool child_answer(const struct child_reply *reply, int fd)
{
	return child_send(CHILD_SOCKET_FD, reply, sizeof(*reply), &fd, fd >= 0, 0);
}

_Noreturn void child_run(enum child_kind kind, bool (*serve)(void *context), void *context)
{
	static const struct child_reply hello = {.serial = CHILD_HELLO};

	if (sandbox_begin(kind))
		_exit(1);
	for (bool goes_on = child_answer(&hello, -1); goes_on;)
		goes_on = serve(context);
	_exit(0);
}
