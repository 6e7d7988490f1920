/* SPDX-License-Identifier: BSD-2-Clause */
/* Incomplete stacks that wait in the agent's memory until it completes them, so that the ring is
 * free for others at once.  Each user has a share of the queue (base/user_quota.h): what one sends
 * too much of takes nothing from another.  docs/design/shares.md.  One thread. */
#ifndef DRAIN_INCOMPLETE_QUEUE_H
#define DRAIN_INCOMPLETE_QUEUE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/user_quota.h"
#include "drain/decode.h"

/* An owned copy; its parts point into `bytes`. */
struct queued_incomplete {
	struct decoded_incomplete incomplete;
	uint64_t queued_ns;
	struct queued_incomplete *prev, *next; /* of the same user */
	uint64_t bytes[];		       /* the record, as the kernel side sent it */
};

struct incomplete_queue;
int incomplete_queue_new(uint64_t max_bytes, struct incomplete_queue **ret_queue);
void incomplete_queue_free(struct incomplete_queue *queue);
DEFINE_OWNED(struct incomplete_queue, incomplete_queue)

/* Copies a record to the end of what its user has in the queue.  Returns 0; -EDQUOT: his share is
 * used up; -ENOSPC: root's record, and the queue is full; -ENOMEM.  Each of these is counted in the
 * shares. */
int incomplete_queue_add(struct incomplete_queue *queue,
			 const struct decoded_incomplete *incomplete, uint64_t now_ns);
/* Takes the oldest stack of the user whose turn it is: users take turns.  The caller frees it with
 * free().  NULL: the queue is empty. */
struct queued_incomplete *incomplete_queue_take(struct incomplete_queue *queue);
bool incomplete_queue_is_empty(const struct incomplete_queue *queue);
/* The shares, in bytes; borrowed. */
struct user_quota *incomplete_queue_quota(struct incomplete_queue *queue);

#endif
