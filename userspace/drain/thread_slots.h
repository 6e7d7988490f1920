/* SPDX-License-Identifier: BSD-2-Clause */
/* The slots of threads (include/pyprofd/wait.h) at the end of a window: what their waits add to its
 * counters, those that still go on included, cut at the edge. */
#ifndef DRAIN_THREAD_SLOTS_H
#define DRAIN_THREAD_SLOTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <pyprofd/wait.h>

#include "drain/counts.h"

struct slots_window {
	uint32_t number;	   /* pp_config.window while it was open */
	uint64_t start_ns, end_ns; /* CLOCK_MONOTONIC */
	uint64_t wait_min_ns;	   /* waits that are shorter so far are left out */
};

/* A whole copy of one slot, which is marked as read for this window; the copy's read_window is the one
 * that was read before.  Waits for a walk to end.  False: it is free, or was written to all the time
 * (then *ret_torn grows, and it is not marked). */
bool thread_slot_take(struct pp_thread *slot, uint32_t window, struct pp_thread *ret_copy,
		      uint64_t *ret_torn);

/* What the slot of a thread says of its life; `slots` are those of the map. */
struct thread_glance {
	uint64_t first_ns;   /* when it was first seen to run */
	uint64_t created_ns; /* the same, or when its program or the filters' mind changed */
	uint64_t since_ns;   /* when it began to run or to wait */
	uint32_t flags;	     /* enum pp_thread_flag */
	bool has_exited;
};

/* False: it has none, or another thread has taken it since it exited. */
bool thread_slots_glance(const struct pp_thread *slots, uint32_t count, uint32_t tid,
			 struct thread_glance *ret_glance);
/* A number that changes when a thread without a slot takes one (or another thread moves). */
uint64_t thread_slots_moves(const struct pp_thread *slots, uint32_t count, uint32_t tid);

/* The slot says that the thread runs, and it does not: the switch by which it left was not seen.  In this
 * copy it waits since it came, for what nobody knows. */
void thread_slot_stray(struct pp_thread *copy);
/* The thread of this copy is no more, and no switch has told of it.  Its slot is free then, unless it was
 * written to since. */
void thread_slot_free(struct pp_thread *slot, const struct pp_thread *copy);

/* Adds to counts what one thread (a copy) waited in the window.  0 or -ENOMEM. */
int thread_slot_count(const struct pp_thread *thread, const struct slots_window *window,
		      struct counts *counts);

/* The thread's times up to end_ns, what it does now included. */
void thread_slot_totals(const struct pp_thread *thread, uint64_t end_ns,
			uint64_t ret_total_ns[PP_LEDGER_COUNT]);

enum pp_wait thread_slot_wait(const struct pp_thread *thread); /* PP_WAIT_NONE: it runs */
enum pp_ledger wait_ledger(enum pp_wait wait);
const char *wait_label(enum pp_wait wait); /* value of the label `wait`; static */

#endif
