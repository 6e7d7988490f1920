/* SPDX-License-Identifier: BSD-2-Clause */
/* The sweep: threads that sleep since before the profiler started pass no context switch, so their
 * stacks and reasons are read from outside, once.  Start it when the switches' program runs: what goes to
 * sleep later is seen there.  One thread. */
#ifndef FINISH_SWEEP_H
#define FINISH_SWEEP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <pyprofd/process.h>
#include <pyprofd/wait.h>

#include "base/cleanup.h"

struct finisher;
struct sweep;

struct swept {
	uint32_t tid; /* as the host sees it */
	struct pp_process_id id;
	uint64_t user_stack, kernel_stack; /* hashes in the dictionary; 0: none */
	uint32_t flags; /* enum pp_count_flag, the wait and the reasons why walks ended included */
	enum pp_wait wait;
	uint64_t switches; /* pp_sweep_record's: another number, and it has moved */
	uint64_t moves;	   /* thread_slots_moves() while it had no slot */
	/* Not known to have slept all the while it was read: its user stack may be of two moments. */
	bool is_torn;
};

struct sweep_stats {
	size_t threads; /* asleep, wanted, and seen by no switch */
	size_t torn;
	size_t late;	/* without a user stack: the sweep had cost SWEEP_MAX_NS */
	size_t refused; /* threads beyond the bound, and stacks that found no memory */
	size_t walks, passes;
	uint64_t spent_ns; /* of the agent's time */
};

/* Which threads.  Either all of some processes, those included that switches tell of ... */
struct sweep_scope {
	void *context;
	bool (*wants)(void *context, uint32_t tgid);
	/* ... or, without wants(), those that no switch tells of and that are not known already; NULL:
	 * none is. */
	bool (*is_known)(void *context, uint32_t tid);
};

/* Opens it.  Returns 0; -ENOTSUP: the kernel side was opened without `waits`; -errno.  The finisher is
 * borrowed: its tables are open and processes are followed.  The scope is copied, its context borrowed;
 * only processes that the filters let through are looked at. */
int sweep_new(const struct finisher *finisher, const struct sweep_scope *scope,
	      struct sweep **ret_sweep);
void sweep_free(struct sweep *sweep);
DEFINE_OWNED(struct sweep, sweep)

/* Goes on for about budget_ns (a stack is never left half read: up to some ms more for a very deep
 * one).  1: there is more to do; 0: done; -errno: it broke off, what it found until then is there. */
int sweep_step(struct sweep *sweep, uint64_t budget_ns);
/* Both at once. */
int sweep_run(const struct finisher *finisher, struct sweep **ret_sweep);

/* Once it is done.  NULL: this thread was awake, is not wanted, or was forgotten. */
const struct swept *sweep_find(const struct sweep *sweep, uint32_t tid);
/* All that were found until now, by tid once it is done; NULL gives the first, and is the end.  Pointers
 * hold until the next step.  `moves` is the caller's to set. */
struct swept *sweep_next(struct sweep *sweep, const struct swept *swept);
/* The thread has moved since, or is gone: its stacks are kept for others only. */
void sweep_forget(struct sweep *sweep, struct swept *swept);

/* The dictionary forgets what nobody sends: describes the stacks of the threads that are left again.
 * After each dictionary_set_epoch() and dictionary_make_room().  0; -ENOSPC; -ENOMEM. */
int sweep_refresh(struct sweep *sweep);

void sweep_get_stats(const struct sweep *sweep, struct sweep_stats *ret_stats);

#endif
