/* SPDX-License-Identifier: BSD-2-Clause */
#include "render/call_graph.h"

#include <errno.h>
#include <stdlib.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/array.h"
#include "base/saturating.h"

/* What one stack adds. */
struct share {
	int64_t value, samples;
	uint64_t stack; /* number + 1 */
};

void call_graph_free(struct call_graph *graph)
{
	if (!graph)
		return;
	code_table_release(&graph->code);
	groups_release(&graph->groups);
	index_table_release(&graph->edge_index);
	free(graph->function);
	free(graph->edge);
	free(graph);
}

static bool edge_equal(const void *context, uint32_t index, const void *key)
{
	const struct call_graph *graph = context;
	const uint32_t *pair = key;

	return graph->edge[index].caller == pair[0] && graph->edge[index].callee == pair[1];
}

static int find_edge(struct call_graph *graph, uint32_t caller, uint32_t callee,
		     struct call_edge **ret_edge)
{
	uint32_t pair[] = {caller, callee}, at;
	uint32_t hash = (uint32_t)XXH3_64bits(pair, sizeof(pair));
	int err;

	if (!index_table_find(&graph->edge_index, hash, edge_equal, graph, pair, &at)) {
		at = graph->edge_count;
		err = INDEX_RESERVE(&graph->edge_index, hash, graph->edge, at,
				    graph->edge_capacity);
		if (err)
			return err;
		graph->edge[at] =
			(struct call_edge){.caller = caller,
					   .callee = callee,
					   .next_callee = graph->function[caller].first_callee,
					   .next_caller = graph->function[callee].first_caller};
		graph->function[caller].first_callee = at + 1;
		graph->function[callee].first_caller = at + 1;
		graph->edge_count++;
	}
	*ret_edge = &graph->edge[at];
	return 0;
}

static void add_share(struct call_sums *sums, const struct share *share, bool is_leaf)
{
	const bool is_first = sums->last_stack != share->stack;

	if (is_first) {
		sums->last_stack = share->stack;
		sums->total = add_saturating(sums->total, share->value);
		sums->total_samples = add_saturating(sums->total_samples, share->samples);
	}
	if (!is_leaf)
		return;
	sums->self = add_saturating(sums->self, share->value);
	sums->self_samples = add_saturating(sums->self_samples, share->samples);
	if (is_first)
		sums->outer_samples = add_saturating(sums->outer_samples, share->samples);
}

static int add_function(struct call_graph *graph, uint32_t code, const struct share *share,
			bool is_leaf)
{
	int err = 0;

	while (!err && code >= graph->function_count) {
		err = ARRAY_RESERVE(graph->function, graph->function_count,
				    graph->function_capacity);
		if (!err)
			graph->function[graph->function_count++] = (struct call_function){0};
	}
	if (!err)
		add_share(&graph->function[code].sums, share, is_leaf);
	return err;
}

static int add_edge(struct call_graph *graph, uint32_t caller, uint32_t callee,
		    const struct share *share, bool is_leaf)
{
	struct call_edge *edge;
	int err = find_edge(graph, caller, callee, &edge);

	if (!err)
		add_share(&edge->sums, share, is_leaf);
	return err;
}

/* Adds a group as the caller of the root. */
static int add_group(struct call_graph *graph, uint32_t label_set, const struct share *share,
		     uint32_t *ret_code)
{
	struct code code = {.class = FRAME_CLASS_OTHER};
	uint32_t group;
	int err = groups_of_set(&graph->groups, label_set, &group);

	if (err)
		return err;
	code.name = graph->groups.group[group].label;
	err = code_table_add(&graph->code, &code, ret_code);
	return err ? err : add_function(graph, *ret_code, share, false);
}

static int add_stack(struct call_graph *graph, const struct profile_row *row,
		     const struct share *share)
{
	const struct stack *stack = &graph->profile->stacks.stack[row->stack];
	bool has_caller = graph->groups.by.keys;
	uint32_t caller = 0, code = 0;
	int err = has_caller ? add_group(graph, row->label_set, share, &caller) : 0;

	for (uint32_t i = stack->count; !err && i-- > 0; has_caller = true) {
		err = code_table_of_location(&graph->code, stack->location[i], &code);
		if (!err)
			err = add_function(graph, code, share, !i);
		if (!err && has_caller)
			err = add_edge(graph, caller, code, share, !i);
		caller = code;
	}
	return err;
}

int call_graph_calls_index(const struct profile *profile)
{
	return profile_find_value(&profile->options, "calls", "count");
}

int call_graph_new(struct profile *profile, unsigned int value_index, int count_index,
		   const struct grouping *group_by, struct call_graph **ret_graph)
{
	OWNED(call_graph) struct call_graph *graph = calloc(1, sizeof(*graph));
	int err = 0;

	if (!graph)
		return -ENOMEM;
	graph->profile = profile;
	code_table_init(&graph->code, profile, CODE_BY_FUNCTION);
	groups_init(&graph->groups, profile, group_by);
	for (uint32_t i = 0; !err && i < profile->row_count; i++) {
		const int64_t *value = profile_row_values(profile, i);
		struct share share = {.value = value[value_index],
				      .samples = count_index < 0 ? 0 : value[count_index],
				      .stack = (uint64_t)i + 1};

		err = add_stack(graph, &profile->row[i], &share);
		graph->total = add_saturating(graph->total, share.value);
		graph->total_samples = add_saturating(graph->total_samples, share.samples);
	}
	if (err)
		return err;
	*ret_graph = TAKE(graph);
	return 0;
}
