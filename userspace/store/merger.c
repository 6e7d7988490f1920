/* SPDX-License-Identifier: BSD-2-Clause */
#include "store/merger.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "child/sandbox.h"
#include "child/worker.h"
#include "store/merge_store.h"

/* Groups that a child ended at, which the next ones leave alone. */
#define FATAL_MAX 64U
/* Messages of one turn: a child may be broken. */
#define MESSAGES_MAX 4096U

struct merger {
	char *program; /* owned; "/proc/self/exe": this one */
	char *store;   /* owned; the directory's path, for messages */
	int store_fd;  /* borrowed */
	struct child child;
	int socket_fd;		    /* owned; -1: there is no child */
	struct merge_message begun; /* what the child is at; kind "": nothing */
	struct merge_message fatal[FATAL_MAX];
	size_t fatal_count; /* of all; the last FATAL_MAX are known */
	struct merger_stats stats;
	uint64_t told; /* refused groups, when that was told last */
};

int merger_new(const char *program, const char *store, int store_fd, struct merger **ret_merger)
{
	OWNED(merger) struct merger *merger = calloc(1, sizeof(*merger));

	if (!merger)
		return -ENOMEM;
	child_init(&merger->child, CHILD_STORE);
	merger->store_fd = store_fd;
	merger->socket_fd = -1;
	merger->program = strdup(program);
	merger->store = strdup(store);
	if (!merger->program || !merger->store)
		return -ENOMEM;
	*ret_merger = TAKE(merger);
	return 0;
}

static void close_socket(struct merger *merger)
{
	close_owned_fd(&merger->socket_fd);
	merger->socket_fd = -1;
}

void merger_free(struct merger *merger)
{
	if (!merger)
		return;
	child_release(&merger->child);
	close_socket(merger);
	free(merger->program);
	free(merger->store);
	free(merger);
}

void merger_get_stats(const struct merger *merger, struct merger_stats *ret_stats)
{
	*ret_stats = merger->stats;
}

/* ---- starting ---- */

static void hand_over_fatal(const struct merger *merger)
{
	for (size_t i = 0; i < merger->fatal_count && i < FATAL_MAX; i++)
		(void)send(merger->socket_fd, &merger->fatal[i], sizeof(merger->fatal[i]),
			   MSG_DONTWAIT | MSG_NOSIGNAL);
}

static int start(struct merger *merger)
{
	OWNED_FD int ours = -1, theirs = -1;
	int pair[2], err;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
		return -errno;
	ours = pair[0];
	theirs = pair[1];
	err = child_start(&merger->child,
			  &(struct child_start){.program = merger->program,
						.fd = (const int[]){merger->store_fd, theirs}},
			  mono_ns());
	if (err)
		return err;
	merger->socket_fd = TAKE_FD(ours);
	merger->stats.starts++;
	hand_over_fatal(merger);
	return 0;
}

/* ---- what the child says ---- */

static void tell_refused(struct merger *merger, const struct merge_message *message)
{
	if (log_is_due(++merger->stats.refused, &merger->told))
		log_warn("'%s': files of kind %s from @%lu on cannot be merged (%s) and stay as "
			 "they are (%lu groups so far)",
			 merger->store, message->kind, (unsigned long)(message->start_ms / 1000),
			 message->err ? strerror(-message->err) : "who tried it has ended",
			 (unsigned long)merger->stats.refused);
}

static void take(struct merger *merger, const struct merge_message *message)
{
	merger->begun.kind[0] = '\0';
	if (message->what == MERGE_BEGINS)
		merger->begun = *message;
	else if (!message->err)
		merger->stats.merged++;
	else if (message->err != -ENOENT) /* the store has deleted a file meanwhile */
		tell_refused(merger, message);
}

static void listen_to_child(struct merger *merger)
{
	struct merge_message message;

	for (unsigned int i = 0; i < MESSAGES_MAX; i++) {
		if (recv(merger->socket_fd, &message, sizeof(message), MSG_DONTWAIT | MSG_TRUNC) !=
		    (ssize_t)sizeof(message))
			return;
		message.kind[sizeof(message.kind) - 1] = '\0';
		if (store_kind_is_valid(message.kind) && message.err <= 0)
			take(merger, &message);
	}
}

/* What the child was at when it ended is not tried again. */
static void blame(struct merger *merger)
{
	struct merge_message *begun = &merger->begun;

	if (!begun->kind[0])
		return;
	tell_refused(merger, begun);
	begun->what = MERGE_LEAVE_ALONE;
	merger->fatal[merger->fatal_count++ % FATAL_MAX] = *begun;
	begun->kind[0] = '\0';
}

static void reap(struct merger *merger)
{
	if (!child_has_ended(&merger->child, NULL))
		return;
	listen_to_child(merger);
	blame(merger);
	close_socket(merger);
	child_rest(&merger->child, mono_ns());
}

void merger_turn(struct merger *merger)
{
	int err;

	if (merger->child.pid)
		listen_to_child(merger);
	reap(merger);
	if (!child_is_due(&merger->child, mono_ns()))
		return;
	err = start(merger);
	if (!err)
		return;
	log_debug("cannot start the child that merges '%s': %s", merger->store, strerror(-err));
	child_rest(&merger->child, mono_ns());
}

/* ---- the child's side ---- */

/* Waits where the agent has not read what was told before: it does so once a window. */
static void tell(const struct store_file *first, enum merge_what what, int err)
{
	struct merge_message message = {
		.start_ms = first->start_ms, .err = err, .what = (uint32_t)what};

	memcpy(message.kind, first->kind, sizeof(first->kind));
	if (send(CHILD_STORE_SOCKET_FD, &message, sizeof(message), MSG_NOSIGNAL) < 0 &&
	    errno != EINTR)
		_exit(0); /* the agent has ended */
}

static void begins(void *context, const struct store_file *first)
{
	(void)context;
	tell(first, MERGE_BEGINS, 0);
}

static void done(void *context, const struct store_file *first, int err)
{
	(void)context;
	tell(first, MERGE_DONE, err);
}

/* Takes what the agent has said.  Returns false when it has closed the socket. */
static bool listen_to_agent(struct merge_refused *refused)
{
	struct merge_message message;

	for (;;) {
		const ssize_t size = recv(CHILD_STORE_SOCKET_FD, &message, sizeof(message),
					  MSG_DONTWAIT | MSG_TRUNC);

		if (size < 0)
			return errno == EAGAIN || errno == EINTR;
		if (size != (ssize_t)sizeof(message) || message.what != MERGE_LEAVE_ALONE ||
		    !memchr(message.kind, '\0', sizeof(message.kind)))
			return false;
		merge_refuse(refused, message.kind, message.start_ms);
	}
}

_Noreturn void merge_child_main(void)
{
	static struct merge_refused refused;
	const struct merge_pass pass = {.begins = begins, .done = done, .refused = &refused};
	struct pollfd agent = {.fd = CHILD_STORE_SOCKET_FD, .events = POLLIN};

	if (fchdir(CHILD_STORE_FD) || sandbox_begin(CHILD_STORE))
		_exit(1);
	while (listen_to_agent(&refused)) {
		(void)merge_store(".", wall_ns() / NS_PER_MS,
				  &pass); /* what fails is tried again */
		(void)poll(&agent, 1, MERGE_EVERY_MS);
	}
	_exit(0);
}
