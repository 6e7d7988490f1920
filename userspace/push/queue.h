/* SPDX-License-Identifier: BSD-2-Clause */
/* The files of the store that a sink has still to read, oldest first.  The store is the spool: it
 * deletes and merges files meanwhile, and knows nothing of sinks.  One thread an object. */
#ifndef PUSH_QUEUE_H
#define PUSH_QUEUE_H

#include "push/cursor.h"
#include "store/store_query.h"

/* The list goes back so far behind the cursor, to find what was written there meanwhile: as far as
 * a clock may be set back before a sink follows it. */
#define PUSH_AHEAD_MAX_MS (10U * 60000U)

/* Files that are listed at once; what is behind them comes with the next list. */
struct push_queue {
	const char *directory; /* of the store; borrowed */
	uint32_t kind_bits;    /* 1 << enum pp_profile */
	struct store_listing listing; /* owned */
	size_t next;
	uint64_t since_ms; /* of the listing */
	bool has_listed;
	/* The newest file of each kind that was read to its end; 0: none. */
	uint64_t read_ms[PP_PROFILE_COUNT], read_duration_ms[PP_PROFILE_COUNT];
};

void push_queue_release(struct push_queue *queue);

/* Lists what a cursor leaves to be sent.  *ret_gone: files of the last list that are neither there
 * any more nor part of a merged one: retention has deleted them.  *ret_late: files that came since
 * the last list with a time that the cursor has passed: the clock was set back.  Returns 0 or
 * -errno of store_list(). */
int push_queue_list(struct push_queue *queue, const struct push_cursor *cursor,
		    uint64_t *ret_gone, uint64_t *ret_late);
/* Returns the oldest file with something to send, or NULL; valid until the next list. */
const struct store_entry *push_queue_first(struct push_queue *queue,
					   const struct push_cursor *cursor,
					   enum pp_profile *ret_kind);
/* Notes that the first file was read to its end, or cannot be. */
void push_queue_pass(struct push_queue *queue);
/* Returns how many files of the list have something to send. */
size_t push_queue_count(const struct push_queue *queue, const struct push_cursor *cursor);
/* Returns how many files are left. */
size_t push_queue_left(const struct push_queue *queue);

/* Begins a cursor behind everything that is in the store now: a new sink gets what comes. */
int push_queue_begin(const struct push_queue *queue, struct push_cursor *ret_cursor);

#endif
