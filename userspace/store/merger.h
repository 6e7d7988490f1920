/* SPDX-License-Identifier: BSD-2-Clause */
/* The child that merges what is old in a store, beside the agent: it reads files that others may
 * have written, takes its time, and may wait for a disk.  It has no capability, the rights of the
 * store's owner on that directory alone where the kernel has Landlock, and the lowest priority.
 * The agent keeps it at work, and never waits for it. */
#ifndef STORE_MERGER_H
#define STORE_MERGER_H

#include <stdint.h>

#include "base/cleanup.h"
#include "store/store_query.h"

struct merger;
/* program: what the child is, "/proc/self/exe" for this one.  store: the path of the directory, for
 * messages; store_fd: borrowed.  Starts nothing yet.  Returns 0 or -ENOMEM. */
int merger_new(const char *program, const char *store, int store_fd, struct merger **ret_merger);
/* Kills the child. */
void merger_free(struct merger *merger);
DEFINE_OWNED(struct merger, merger)
/* Starts the child, replaces one that has ended, and tells what cannot be merged; call it once a
 * window. */
void merger_turn(struct merger *merger);

struct merger_stats {
	uint64_t starts, merged, refused; /* merged, refused: groups */
};
void merger_get_stats(const struct merger *merger, struct merger_stats *ret_stats);

/* ---- the child's side ---- */

/* CHILD_STORE_SOCKET_FD is SOCK_SEQPACKET, messages of struct merge_message.  The child tells what
 * it begins and how it ends; the agent tells at first which groups it shall leave alone. */
#define MERGE_EVERY_MS 60000

enum merge_what { MERGE_BEGINS, MERGE_DONE, MERGE_LEAVE_ALONE };

struct merge_message {
	uint64_t start_ms; /* of the group's first window */
	int32_t err;	   /* of MERGE_DONE: 0 or -errno */
	uint32_t what;	   /* enum merge_what */
	char kind[STORE_KIND_CHARS + 7];
};

/* Merges until the agent closes the socket, and ends the process. */
_Noreturn void merge_child_main(void);

#endif
