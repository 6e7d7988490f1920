/* SPDX-License-Identifier: BSD-2-Clause */
/* What is held of the sampled allocations, as counters of a window: PP_KIND_HELD.  What a process
 * held when it ended or became another program is counted once, in the window in which that was. */
#ifndef PROBES_HELD_H
#define PROBES_HELD_H

#include <stdbool.h>
#include <stdint.h>

#include "base/slice.h"
#include "drain/map_batches.h"

struct counts;
struct dictionary;
struct free_debts;
struct probes;
struct process_table;

/* All is borrowed. */
struct held_sources {
	struct probes *probes; /* NULL: no allocations are captured */
	const struct process_table *processes;
	struct free_debts *debts;
	struct dictionary *dictionary; /* keeps the stacks of what is held */
};

/* How far the reading for one window has come.  All zeros: not begun. */
struct held_reading {
	struct map_batches blocks;
	bool is_begun;
};

struct held_window {
	uint64_t ended_ns;
	/* Blocks of processes that live are counted: their profile is written with this window. */
	bool is_written;
};

/* Adds what is held at the end of a window to its counters, until the slice is over (NULL: all).
 * Returns 1: there is more; 0; -ENOMEM; -errno. */
int held_collect(const struct held_sources *sources, const struct held_window *window,
		 struct held_reading *reading, struct counts *counts, const struct slice *slice);

#endif
