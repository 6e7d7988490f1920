/* SPDX-License-Identifier: BSD-2-Clause */
#include "store/merger.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/log.h"
#include "store/merge_child.h"
#include "store/store_child.h"

#define RESTART_FIRST_NS NS_PER_SEC
#define RESTART_MAX_NS (600 * NS_PER_SEC)
/* Groups that a child ended at, which the next ones leave alone. */
#define FATAL_MAX 64U
/* Messages of one turn: a child may be broken. */
#define MESSAGES_MAX 4096U

struct merger {
	struct store_child child;
	uint64_t start_after_ns, wait_ns;
	struct merge_message begun; /* what the child is at; kind "": nothing */
	struct merge_message fatal[FATAL_MAX];
	size_t fatal_count; /* of all; the last FATAL_MAX are known */
	struct merger_stats stats;
	uint64_t told; /* refused groups, when that was told last */
};

int merger_new(const char *program, const char *store, int store_fd, struct merger **ret_merger)
{
	OWNED(merger) struct merger *merger = calloc(1, sizeof(*merger));
	int err = merger ? store_child_init(&merger->child, program, store, store_fd) : -ENOMEM;

	if (err)
		return err;
	merger->wait_ns = RESTART_FIRST_NS;
	*ret_merger = TAKE(merger);
	return 0;
}

void merger_free(struct merger *merger)
{
	if (!merger)
		return;
	store_child_release(&merger->child);
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
		(void)send(merger->child.socket_fd, &merger->fatal[i], sizeof(merger->fatal[i]),
			   MSG_DONTWAIT | MSG_NOSIGNAL);
}

static int start(struct merger *merger)
{
	int err = store_child_start(&merger->child, MERGE_ARGV0);

	if (err)
		return err;
	merger->stats.starts++;
	hand_over_fatal(merger);
	return 0;
}

/* ---- what the child says ---- */

static void tell_refused(struct merger *merger, const struct merge_message *message)
{
	merger->stats.refused++;
	/* Told for the first one, and for each doubling. */
	if (merger->stats.refused < 2 * merger->told)
		return;
	merger->told = merger->stats.refused;
	log_warn("'%s': files of kind %s from @%lu on cannot be merged (%s) and stay as they are "
		 "(%lu groups so far)",
		 merger->child.store, message->kind, (unsigned long)(message->start_ms / 1000),
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
		if (recv(merger->child.socket_fd, &message, sizeof(message),
			 MSG_DONTWAIT | MSG_TRUNC) != (ssize_t)sizeof(message))
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
	if (!store_child_has_ended(&merger->child))
		return;
	listen_to_child(merger);
	blame(merger);
	store_child_forget(&merger->child);
	merger->start_after_ns = mono_ns() + merger->wait_ns;
	if (merger->wait_ns < RESTART_MAX_NS)
		merger->wait_ns *= 2;
}

void merger_turn(struct merger *merger)
{
	int err;

	if (merger->child.pid)
		listen_to_child(merger);
	reap(merger);
	if (merger->child.pid || mono_ns() < merger->start_after_ns)
		return;
	err = start(merger);
	if (!err)
		return;
	log_debug("cannot start the child that merges '%s': %s", merger->child.store,
		  strerror(-err));
	merger->start_after_ns = mono_ns() + RESTART_MAX_NS;
}
