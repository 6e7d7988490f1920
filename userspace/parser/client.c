/* SPDX-License-Identifier: BSD-2-Clause */
#include "parser/client.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "parser/late.h"
#include "parser/protocol.h"

extern char **environ;

#define STAT_MAX_BYTES 4096U
#define CHILD_VARIABLE "PYPROFD_PARSER_CHILD"

struct child {
	pid_t pid;	       /* 0: there is none */
	int socket;	       /* owned */
	const uint8_t *memory; /* mapped; PARSER_MEMORY_BYTES */
	uint64_t started_ns;
	bool is_ready;	 /* it has said PARSER_HELLO */
	bool is_awaited; /* we have waited for that once */
};

struct parser {
	char *program; /* owned */
	struct child child;
	pid_t stuck[PARSER_STUCK_MAX]; /* killed and not yet ended; 0: free */
	uint64_t start_after_ns;       /* when a start may be tried again */
	uint32_t serial;
	struct late_table late;
	struct parser_stats stats;
};

/* ---- children ---- */

static uint64_t child_cpu_ns(const struct child *child)
{
	struct timespec used;
	clockid_t clock;

	if (!child->pid || clock_getcpuclockid(child->pid, &clock) || clock_gettime(clock, &used))
		return 0;
	return (uint64_t)used.tv_sec * NS_PER_SEC + (uint64_t)used.tv_nsec;
}

static void child_release(struct child *child)
{
	if (child->memory)
		munmap((void *)child->memory, PARSER_MEMORY_BYTES);
	close_owned_fd(&child->socket);
	*child = (struct child){.socket = -1};
}

static void reap_stuck(struct parser *parser)
{
	for (size_t i = 0; i < PARSER_STUCK_MAX; i++)
		if (parser->stuck[i] && waitpid(parser->stuck[i], NULL, WNOHANG))
			parser->stuck[i] = 0;
}

static pid_t *free_stuck(struct parser *parser)
{
	for (size_t i = 0; i < PARSER_STUCK_MAX; i++)
		if (!parser->stuck[i])
			return &parser->stuck[i];
	return NULL;
}

/* Kills the child. It ends when its read lets it: see PARSER_STUCK_MAX. */
static void child_end(struct parser *parser)
{
	pid_t *stuck = free_stuck(parser);

	if (!parser->child.pid)
		return;
	parser->stats.cpu_ns += child_cpu_ns(&parser->child);
	kill(parser->child.pid, SIGKILL);
	/* A child is only started while a place is free. */
	if (stuck)
		*stuck = parser->child.pid;
	child_release(&parser->child);
	reap_stuck(parser);
}

void parser_free(struct parser *parser)
{
	if (!parser)
		return;
	child_end(parser);
	free(parser->program);
	free(parser);
}

static int share_memory(int *ret_fd, const uint8_t **ret_memory)
{
	OWNED_FD int fd = memfd_create("pyprofd-parser", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	void *memory;

	if (fd < 0 || ftruncate(fd, PARSER_MEMORY_BYTES) ||
	    fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL))
		return -errno;
	memory = mmap(NULL, PARSER_MEMORY_BYTES, PROT_READ, MAP_SHARED, fd, 0);
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
static int spawn(const char *program, int socket_fd, int memory_fd, pid_t *ret_pid)
{
	char variable[] = CHILD_VARIABLE "=1";
	OWNED_MEM char **environment = NULL;
	char name[] = PARSER_ARGV0;
	char *const argv[] = {name, NULL};
	posix_spawn_file_actions_t actions;
	int err;

	if (getenv(CHILD_VARIABLE))
		return -ELOOP;
	environment = child_environment(variable);
	if (!environment)
		return -ENOMEM;
	err = posix_spawn_file_actions_init(&actions);
	if (err)
		return -err;
	err = posix_spawn_file_actions_adddup2(&actions, socket_fd, PARSER_SOCKET_FD);
	if (!err)
		err = posix_spawn_file_actions_adddup2(&actions, memory_fd, PARSER_MEMORY_FD);
	if (!err)
		err = posix_spawn(ret_pid, program, &actions, NULL, argv, environment);
	posix_spawn_file_actions_destroy(&actions);
	return -err;
}

/* Duplicates a descriptor above those of the child, so that no dup2() closes the other one. */
static int move_up(int fd)
{
	return fcntl(fd, F_DUPFD_CLOEXEC, PARSER_MEMORY_FD + 1);
}

static int start(struct parser *parser, struct child *child)
{
	const struct timeval deadline = {.tv_usec = PARSER_DEADLINE_NS / NS_PER_US};
	OWNED_FD int theirs = -1, memory_fd = -1, high_socket = -1, high_memory = -1;
	int pair[2], err;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
		return -errno;
	child->socket = pair[0];
	theirs = pair[1];
	if (setsockopt(child->socket, SOL_SOCKET, SO_RCVTIMEO, &deadline, sizeof(deadline)))
		return -errno;
	err = share_memory(&memory_fd, &child->memory);
	if (err)
		return err;
	high_socket = move_up(theirs);
	high_memory = move_up(memory_fd);
	if (high_socket < 0 || high_memory < 0)
		return -errno;
	err = spawn(parser->program, high_socket, high_memory, &child->pid);
	if (err)
		return err;
	child->started_ns = mono_ns();
	parser->stats.starts++;
	return 0;
}

/* ---- one request ---- */

/* What a request brought. */
struct answer {
	struct parser_reply reply;
	int fd; /* owned; -1: none came */
};

static void answer_release(struct answer *answer)
{
	close_owned_fd(&answer->fd);
}

static void take_descriptor(struct msghdr *message, struct answer *answer)
{
	const struct cmsghdr *header = CMSG_FIRSTHDR(message);

	if (header && header->cmsg_level == SOL_SOCKET && header->cmsg_type == SCM_RIGHTS &&
	    header->cmsg_len == CMSG_LEN(sizeof(int)))
		memcpy(&answer->fd, CMSG_DATA(header), sizeof(answer->fd));
}

/* Waits for the reply, until the socket's time is over. Returns 0; -ETIME; -EPIPE when the child
 * has ended or says nonsense. */
static int await(const struct parser *parser, uint32_t serial, int flags, struct answer *answer)
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
		size = recvmsg(parser->child.socket, &message,
			       flags | MSG_TRUNC | MSG_CMSG_CLOEXEC);
	while (size < 0 && errno == EINTR);
	if (size < 0)
		return errno == EAGAIN ? -ETIME : -EPIPE;
	answer_release(answer); /* of an earlier try */
	answer->fd = -1;
	take_descriptor(&message, answer);
	return parser_reply_is_sound(&answer->reply, (size_t)size, serial) ? 0 : -EPIPE;
}

/* Waits for a new child once, and looks later whether it is ready: it may start slowly, which is no
 * fault of the process that is to be read. Returns 0; -ETIMEDOUT; -EPIPE. */
static int await_hello(struct parser *parser)
{
	CLEANUP(answer_release) struct answer hello = {.fd = -1};
	struct child *child = &parser->child;
	int err;

	if (child->is_ready)
		return 0;
	err = await(parser, PARSER_HELLO, child->is_awaited ? MSG_DONTWAIT : 0, &hello);
	child->is_awaited = true;
	child->is_ready = !err;
	if (err == -ETIME && mono_ns() - child->started_ns < PARSER_START_NS)
		return -ETIMEDOUT;
	return err ? -EPIPE : 0;
}

/* A child that ends by itself right after its start will do so again. */
static void note_end(struct parser *parser)
{
	const uint64_t now_ns = mono_ns();

	if (now_ns - parser->child.started_ns < PARSER_RESTART_NS)
		parser->start_after_ns = now_ns + PARSER_RESTART_NS;
}

/* Starts a child when there is none. Returns 0; -ETIMEDOUT when too many are stuck, or the last
 * start failed just now. */
static int need_child(struct parser *parser)
{
	const uint64_t now_ns = mono_ns();

	if (parser->child.pid)
		return 0;
	reap_stuck(parser);
	if (!free_stuck(parser) || now_ns < parser->start_after_ns)
		return -ETIMEDOUT;
	if (!start(parser, &parser->child))
		return 0;
	child_release(&parser->child);
	parser->start_after_ns = now_ns + PARSER_RESTART_NS;
	return -ETIMEDOUT;
}

int parser_new(const char *program, struct parser **ret_parser)
{
	OWNED(parser) struct parser *parser = calloc(1, sizeof(*parser));

	if (!parser)
		return -ENOMEM;
	parser->child.socket = -1;
	parser->program = strdup(program);
	if (!parser->program)
		return -ENOMEM;
	(void)need_child(parser);
	*ret_parser = TAKE(parser);
	return 0;
}

void parser_await(struct parser *parser)
{
	int err = need_child(parser);

	while (!err && !parser->child.is_ready) {
		parser->child.is_awaited = false; /* wait once more */
		err = await_hello(parser);
		if (err == -ETIMEDOUT)
			err = 0;
	}
	if (err == -EPIPE) {
		note_end(parser);
		child_end(parser);
	}
}

static int send_request(const struct parser *parser, const struct parser_request *request)
{
	return send(parser->child.socket, request, parser_request_bytes(request->count),
		    MSG_NOSIGNAL | MSG_DONTWAIT) < 0
		       ? -errno
		       : 0;
}

static uint32_t next_serial(struct parser *parser)
{
	if (++parser->serial == PARSER_HELLO)
		parser->serial++;
	return parser->serial;
}

/* Returns whose process it is (/proc/PID itself shows that also of one that is not dumpable). */
static uid_t owner_of(pid_t tid)
{
	char path[32];
	struct stat status;

	snprintf(path, sizeof(path), "/proc/%d", tid);
	return stat(path, &status) ? 0 : status.st_uid;
}

static bool is_suspect(const struct parser *parser, pid_t tid)
{
	const uint64_t now_ns = mono_ns();

	return now_ns < parser->late.suspects_until_ns &&
	       late_table_suspects(&parser->late, owner_of(tid), now_ns);
}

/* Returns whether a process runs or waits for a CPU, which it may have to share or be throttled
 * for; one that waits for a page or a lock sleeps. */
static bool is_running(pid_t pid)
{
	OWNED_MEM char *text = NULL;
	const char *end;
	char path[32];

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	if (read_file(path, STAT_MAX_BYTES, &text, NULL))
		return false;
	end = strrchr(text, ')');
	return end && !strncmp(end, ") R", 3);
}

/* Gives a child that lacks the CPU more time. */
static int await_reply(const struct parser *parser, const struct parser_request *request,
		       struct answer *answer)
{
	const int limit_ms = is_suspect(parser, request->tid)
				     ? PARSER_SUSPECT_MS
				     : (int)(PARSER_DEADLINE_NS / NS_PER_MS);
	struct pollfd reply = {.fd = parser->child.socket, .events = POLLIN};

	for (unsigned int i = 0; !poll(&reply, 1, limit_ms); i++)
		if (i == PARSER_RUNNING_MAX || !is_running(parser->child.pid))
			return -ETIME;
	return await(parser, request->serial, 0, answer);
}

/* Sends a request and awaits its reply. A child that has ended is replaced once. Returns what the
 * child says; -ETIME when it was late; -ETIMEDOUT when there is none. */
static int exchange(struct parser *parser, struct parser_request *request, struct answer *answer)
{
	int err = -EPIPE;

	for (int i = 0; i < 2 && err == -EPIPE; i++) {
		err = need_child(parser);
		if (!err)
			err = await_hello(parser);
		if (err == -ETIMEDOUT)
			return err;
		request->serial = next_serial(parser);
		if (!err && send_request(parser, request))
			err = -EPIPE;
		if (!err)
			err = await_reply(parser, request, answer);
		if (err == -EPIPE)
			note_end(parser);
		if (err)
			child_end(parser);
	}
	if (err == -EPIPE)
		return -ETIMEDOUT;
	return err ? err : answer->reply.error;
}

/* ---- who was late ---- */

static bool is_left_alone(const struct parser *parser, pid_t tid)
{
	const uint64_t now_ns = mono_ns();

	return late_table_has_task(&parser->late, tid, now_ns) ||
	       (now_ns < parser->late.users_until_ns &&
		late_table_has_user(&parser->late, owner_of(tid), now_ns));
}

/* Counts a read, whose task is noted if it was late.  Returns what its caller is told. */
static int note_read(struct parser *parser, pid_t tid, int err)
{
	parser->stats.reads++;
	if (err == -ETIME) {
		parser->stats.late++;
		late_table_add(&parser->late, tid, owner_of(tid), mono_ns());
	} else if (err == -ETIMEDOUT) {
		parser->stats.left_alone++;
	}
	return err == -ETIME ? -ETIMEDOUT : err;
}

/* ---- memory ---- */

/* Where a read goes on: piece `at`, after `done` of its bytes. */
struct progress {
	const struct process_piece *piece;
	size_t count, at, done;
};

/* Adds pieces, or a part of one, until the shared memory is full. */
static void fill_request(struct parser_request *request, struct progress *progress)
{
	uint32_t room = PARSER_MEMORY_BYTES;

	request->count = 0;
	while (progress->at < progress->count && room && request->count < PROCESS_PIECES_MAX) {
		const struct process_piece *piece = &progress->piece[progress->at];
		const size_t left = piece->size - progress->done;
		const uint32_t size = left < room ? (uint32_t)left : room;

		request->piece[request->count++] = (struct parser_piece){
			.address = piece->address + progress->done, .size = size};
		room -= size;
		progress->done += size;
		if (progress->done < piece->size)
			return;
		progress->at++;
		progress->done = 0;
	}
}

static void copy_out(const struct parser *parser, const struct parser_request *request,
		     const struct progress *before)
{
	const uint8_t *from = parser->child.memory;
	size_t at = before->at, done = before->done;

	for (uint32_t i = 0; i < request->count; i++, at++, done = 0) {
		memcpy((uint8_t *)before->piece[at].buffer + done, from, request->piece[i].size);
		from += request->piece[i].size;
	}
}

static int read_all(struct parser *parser, pid_t tid, const struct process_piece *piece,
		    size_t count)
{
	struct progress progress = {.piece = piece, .count = count};
	struct parser_request request = {.tid = tid, .kind = PARSER_READ};
	int err = 0;

	while (!err && progress.at < count) {
		CLEANUP(answer_release) struct answer answer = {.fd = -1};
		const struct progress before = progress;

		fill_request(&request, &progress);
		err = exchange(parser, &request, &answer);
		if (!err)
			copy_out(parser, &request, &before);
	}
	return err;
}

int parser_read(void *context, pid_t tid, const struct process_piece *piece, size_t count)
{
	struct parser *parser = context;

	return note_read(parser, tid,
			 is_left_alone(parser, tid) ? -ETIMEDOUT
						    : read_all(parser, tid, piece, count));
}

/* ---- mappings ---- */

/* Adds what the child has read to the text. */
static int add_text(const struct parser *parser, uint32_t bytes, size_t max_bytes, char **text,
		    size_t *size)
{
	char *grown;

	if (*size + bytes > max_bytes)
		return -EFBIG;
	grown = realloc(*text, *size + bytes + 1);
	if (!grown)
		return -ENOMEM;
	*text = grown;
	memcpy(grown + *size, parser->child.memory, bytes);
	*size += bytes;
	grown[*size] = '\0';
	return 0;
}

static int read_all_maps(struct parser *parser, pid_t tid, size_t max_bytes, char **text,
			 size_t *size)
{
	struct parser_request request = {.tid = tid, .kind = PARSER_MAPS, .count = 1};
	uint32_t bytes = PARSER_MEMORY_BYTES;
	int err = 0;

	while (!err && bytes == PARSER_MEMORY_BYTES) {
		CLEANUP(answer_release) struct answer answer = {.fd = -1};

		request.piece[0] =
			(struct parser_piece){.address = *size, .size = PARSER_MEMORY_BYTES};
		err = exchange(parser, &request, &answer);
		bytes = answer.reply.size;
		if (!err)
			err = add_text(parser, bytes, max_bytes, text, size);
	}
	return err;
}

int parser_read_maps(void *context, pid_t tid, size_t max_bytes, char **ret_text, size_t *ret_size)
{
	struct parser *parser = context;
	OWNED_MEM char *text = NULL;
	size_t size = 0;
	int err = is_left_alone(parser, tid) ? -ETIMEDOUT
					     : read_all_maps(parser, tid, max_bytes, &text, &size);

	err = note_read(parser, tid, err);
	if (err)
		return err;
	*ret_text = TAKE(text);
	*ret_size = size;
	return 0;
}

int parser_open_mapped(void *context, pid_t tid, uint64_t start, uint64_t end, int *ret_path_fd)
{
	CLEANUP(answer_release) struct answer answer = {.fd = -1};
	struct parser *parser = context;
	struct parser_request request = {.tid = tid,
					 .kind = PARSER_MAPPED_FILE,
					 .count = 2,
					 .piece = {{.address = start}, {.address = end}}};
	int err = is_left_alone(parser, tid) ? -ETIMEDOUT : exchange(parser, &request, &answer);

	err = note_read(parser, tid, err);
	if (!err && answer.fd < 0)
		err = -EBADMSG;
	if (!err)
		*ret_path_fd = TAKE_FD(answer.fd);
	return err;
}

const struct process_access parser_access = {
	.read = parser_read, .read_maps = parser_read_maps, .open_mapped = parser_open_mapped};

void parser_get_stats(const struct parser *parser, struct parser_stats *ret_stats)
{
	if (!parser)
		return;
	*ret_stats = parser->stats;
	ret_stats->cpu_ns += child_cpu_ns(&parser->child);
}
