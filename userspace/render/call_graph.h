/* SPDX-License-Identifier: BSD-2-Clause */
/* The functions of a profile and their callers, summed over all stacks.  A function counts at most
 * once per stack in its total, and so does each pair of caller and callee: recursion adds
 * nothing. */
#ifndef RENDER_CALL_GRAPH_H
#define RENDER_CALL_GRAPH_H

#include "base/cleanup.h"
#include "render/code_table.h"

/* What a function, or a pair of caller and callee, has in all stacks. */
struct call_sums {
	int64_t total; /* of stacks that have it */
	int64_t self;  /* of those where it is the leaf; a pair: where the callee is */
	int64_t total_samples, self_samples; /* 0: the profile does not count samples */
	/* Of self_samples, those of stacks that have it once.  Of exact calls self_samples are the
	 * calls, and these the primitive ones: from outside of itself. */
	int64_t outer_samples;
	uint64_t last_stack;
};

struct call_function {
	struct call_sums sums;
	uint32_t first_callee, first_caller; /* edge + 1; 0: none */
};

struct call_edge {
	uint32_t caller, callee; /* codes */
	struct call_sums sums;
	/* next edge of the same caller; of the same callee: edge + 1 */
	uint32_t next_callee, next_caller;
};

struct call_graph {
	struct profile *profile; /* borrowed */
	struct code_table code;
	struct groups groups;		/* with group_by: groups are the callers of all roots */
	struct call_function *function; /* by code */
	uint32_t function_count, function_capacity;
	struct call_edge *edge;
	uint32_t edge_count, edge_capacity;
	struct index_table edge_index;
	int64_t total, total_samples;
};

/* Returns which value of a profile has the numbers of exact calls; -ENOENT: it has none. */
int call_graph_calls_index(const struct profile *profile);
/* Builds the graph.  count_index: which value counts samples or calls, below 0: none.
 * Returns 0 or -ENOMEM. */
int call_graph_new(struct profile *profile, unsigned int value_index, int count_index,
		   const struct grouping *group_by, struct call_graph **ret_graph);
void call_graph_free(struct call_graph *graph);
DEFINE_OWNED(struct call_graph, call_graph)

#endif
