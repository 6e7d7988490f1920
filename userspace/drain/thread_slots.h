/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads the slots of threads (include/pyprofd/wait.h) at the end of a window: what their waits add
 * to the window's counters, including waits that have not ended, which are cut at the window's
 * edge. */
#ifndef DRAIN_THREAD_SLOTS_H
#define DRAIN_THREAD_SLOTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <pyprofd/config.h>
#include <pyprofd/wait.h>

#include "drain/counts.h"

struct slots_window {
	uint32_t number;	   /* pp_config.window while it was open */
	uint64_t start_ns, end_ns; /* CLOCK_MONOTONIC */
	uint64_t wait_min_ns;	   /* waits that are shorter at the window's end are left out */
};

/* Begins the first window, before the kernel side runs: no older window's slots are still to be
 * read. */
void thread_slots_open(volatile struct pp_config *config, uint32_t window, uint64_t started_ns);

/* Copies one slot, consistently, and marks it as read for this window; the copy's read_window is
 * the value from before.  While the kernel side walks, waits for the walk to end.  Returns false
 * when the slot is free, or when it was being written at each try (then *ret_torn grows, and it is
 * not marked). */
bool thread_slot_take(struct pp_thread *slot, uint32_t window, struct pp_thread *ret_copy,
		      uint64_t *ret_torn);

/* What the slot of a thread says of its life. */
struct thread_glance {
	uint64_t first_ns; /* when the thread was first seen to run */
	/* the same, or when it executed another program or the filter's result changed */
	uint64_t created_ns;
	uint64_t since_ns; /* when it began to run or to wait */
	uint32_t flags;	   /* enum pp_thread_flag */
	bool has_exited;
};

/* Reads the slot of `tid`; `slots` is the map's array, seed pp_config.thread_seed.  Returns false
 * when the thread has no slot, or when another thread has taken it after the exit. */
bool thread_slots_glance(const struct pp_thread *slots, uint32_t count, uint32_t seed, uint32_t tid,
			 struct thread_glance *ret_glance);
/* Returns a number that changes when a thread without a slot takes one (or another thread
 * moves). */
uint64_t thread_slots_moves(const struct pp_thread *slots, uint32_t count, uint32_t seed,
			    uint32_t tid);

/* Corrects a copy whose slot says that the thread runs, although it does not: we missed its
 * switch-out.  In the copy the thread then waits since its last switch-in, for an unknown
 * reason. */
void thread_slot_stray(struct pp_thread *copy);
/* Frees the slot of a thread that no longer exists and whose last switch we missed.  Returns false
 * when the slot was written since the copy, and stays. */
bool thread_slot_free(struct pp_thread *slot, const struct pp_thread *copy);

/* Adds to counts the waits of one thread (a copy) in the window.  Returns 0 or -ENOMEM. */
int thread_slot_count(const struct pp_thread *thread, const struct slots_window *window,
		      struct counts *counts);

/* Computes the thread's times up to end_ns, including the run or wait that has not ended. */
void thread_slot_totals(const struct pp_thread *thread, uint64_t end_ns,
			uint64_t ret_total_ns[PP_LEDGER_COUNT]);

enum pp_wait thread_slot_wait(const struct pp_thread *thread); /* PP_WAIT_NONE: the thread runs */
enum pp_ledger wait_ledger(enum pp_wait wait);
const char *wait_label(enum pp_wait wait); /* value of the label `wait`; static */

#endif
