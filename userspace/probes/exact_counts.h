/* SPDX-License-Identifier: BSD-2-Clause */
/* What exact calls, or exact lines, have of their own: what a hit costs, and what the kernel side
 * has counted.  exact.c attaches the probes of both.  The loop's thread. */
#ifndef PROBES_EXACT_COUNTS_H
#define PROBES_EXACT_COUNTS_H

#include <stddef.h>
#include <stdint.h>

#include <pyprofd/calls.h>

#include "attach/calls_side.h"
#include "drain/call_paths.h"
#include "drain/line_rows.h"
#include "probes/hit_costs.h"

struct counts;
struct dictionary;

struct exact_counts {
	enum exact_what what;
	struct calls_side *side; /* borrowed */

	/* calls */
	struct call_paths *paths; /* owned */
	struct call_costs call_costs;
	struct pp_call_sums call_sums; /* at the last collection */
	uint64_t removed;	       /* nodes of threads that have ended */
	uint64_t tidied_at;	       /* how many nodes there had been at the last try */

	/* lines */
	struct line_rows *rows; /* owned */
	struct pp_line_costs line_costs;
	struct pp_line_sums line_sums; /* at the last collection */
};

/* Measures what hits cost, and has it taken off.  Returns 0; -ENOMEM; -errno: the kernel refuses
 * probes on our own code. */
int exact_counts_init(struct exact_counts *counts, struct calls_side *side, enum exact_what what);
void exact_counts_release(struct exact_counts *counts); /* a zeroed one is fine */

/* Reads how long all hits up to now have taken, by what was measured.  Returns 0 or -errno. */
int exact_counts_cost(struct exact_counts *counts, uint64_t *ret_ns);
/* Makes room in the kernel side's tables when they are half full. */
void exact_counts_tidy(struct exact_counts *counts);
/* Adds what was counted up to the window's end.  Returns 0 or -errno. */
int exact_counts_collect(struct exact_counts *counts, uint64_t ended_ns,
			 struct dictionary *dictionary, struct counts *window);
/* Writes the comment of the profiles: what hits cost, what was taken off and what was lost. */
#define EXACT_COUNTS_TEXT_BYTES 320U
void exact_counts_describe(const struct exact_counts *counts, char text[EXACT_COUNTS_TEXT_BYTES]);

#endif
