/* SPDX-License-Identifier: BSD-2-Clause */
/* Swaps the kernel side's tables of counters and empties the closed ones; begins its epochs, so
 * that the dictionary can forget what is not sent again. */
#ifndef AGENT_TABLES_H
#define AGENT_TABLES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "drain/counts.h"

struct kernel_side;
struct services;

struct tables {
	struct kernel_side *kernel; /* borrowed */
	bool has_wakers;	    /* `wakers`: there is a table of wake-ups, too */
	uint32_t window;	    /* number of the open window */
	uint64_t early_swaps;	    /* of tables that were half full before their window ended */
	/* What the open window has counted outside of the kernel's open tables; owned. */
	struct counts counts;
	struct wakes wakes;
};
void tables_release(struct tables *tables);

/* Begins the first window: nothing lies before it. */
void tables_start(const struct tables *tables, uint64_t started_ns);
/* Ends the open window at ended_ns and begins the next one, which counts into empty tables.
 * Returns the number of the tables that are closed by this. */
uint32_t tables_begin_window(struct tables *tables, uint64_t ended_ns);
/* Waits until nobody writes to closed tables any more. */
void tables_settle(void);
/* Hands over what the window counted outside of the tables; the caller releases both. */
void tables_take(struct tables *tables, struct counts *ret_counts, struct wakes *ret_wakes);
/* Tells the kernel side that all slots of threads were read for a window: what a slot gives up from
 * now on belongs to the next one. */
void tables_end_slots(const struct tables *tables, uint32_t window);
/* Empties closed tables into counts and wakes.  Returns 0; -ENOMEM; -errno. */
int tables_drain(struct tables *tables, uint32_t number, struct counts *counts,
		 struct wakes *wakes);
/* How many counters are named between two calls of tables_relieve(): tables fill meanwhile. */
#define NAMED_AT_ONCE 256U
/* Swaps and empties the open tables if one of them is half full.  Call it often.  Returns 0;
 * -ENOMEM; -errno. */
int tables_relieve(struct tables *tables);

/* ---- epochs: when the kernel side sends stacks and code again ---- */

/* Returns how large the dictionary may get: CPUs bring samples, and processes bring code.
 * budget_bytes: --max-memory; 0: none. */
size_t dictionary_limit(uint64_t budget_bytes, uint32_t cpus, size_t processes);

struct epochs {
	const struct services *services;
	uint32_t epoch;
	uint32_t windows_closed;
	uint64_t refused; /* by the dictionary, when it made room last */
};
/* Begins the first epoch.  The dictionary is empty. */
void epochs_start(struct epochs *epochs);
/* Call it at the end of each window.  The dictionary makes room when it refused something.  Returns
 * whether a new epoch has begun: stacks that no thread will send again must be kept in use. */
bool epochs_end_window(struct epochs *epochs);

#endif
