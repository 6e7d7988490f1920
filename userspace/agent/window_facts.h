/* SPDX-License-Identifier: BSD-2-Clause */
/* Says how a profile was taken: in one of its comments, and in the summary at the end. */
#ifndef AGENT_WINDOW_FACTS_H
#define AGENT_WINDOW_FACTS_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/quotas.h"

struct dictionary;
struct foreign;
struct identities;
struct keeper;
struct kernel_side;
struct naming;
struct output;
struct peek;
struct process_watch;
struct ring;
struct sources;
struct summary;
struct tables;
struct text_table;

/* Where the counters are; all is borrowed. */
struct window_facts {
	struct kernel_side *kernel;
	const struct dictionary *dictionary;
	const struct naming *naming;
	const struct identities *identities;
	const struct text_table *texts;
	const struct process_watch *watch;
	const struct ring *stacks_ring;
	struct quotas quotas;
	const struct tables *tables;
	const struct sources *sources;
	const struct peek *peek;
	const struct foreign *foreign;
	const struct output *output;
	struct keeper *keeper; /* NULL: there is no store */
	struct summary *summary;
	uint64_t started_ns; /* CLOCK_MONOTONIC, of the first window */
	uint64_t bounded;    /* PP_LOSS_ROWS_BOUNDED: added to by who closes windows */
	bool is_cycles;	     /* clock=cycles */
};

/* Reads what the host did before the first window: the summary and *told begin there. */
void window_facts_start(const struct window_facts *facts, struct summary *told);
/* Fills in what the summary does not count as it comes. */
void window_facts_update(const struct window_facts *facts);
/* Returns the CPU time since the start of the agent, its children that parse files and walks in the
 * kernel. */
uint64_t window_facts_cost_ns(const struct window_facts *facts);
/* Writes a comment on what changed since *told, which becomes the summary.  *ret_text is heap.
 * Returns 0 or -ENOMEM. */
int window_facts_tell(const struct window_facts *facts, struct summary *told, char **ret_text);

#endif
