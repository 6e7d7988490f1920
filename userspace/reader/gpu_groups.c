/* SPDX-License-Identifier: BSD-2-Clause */
#include "reader/gpu_groups.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/array.h"
#include "base/saturating.h"

void gpu_groups_release(struct gpu_groups *groups)
{
	index_table_release(&groups->index);
	free(groups->group);
	*groups = (struct gpu_groups){0};
}

/* Returns the value that a view's rows are ranked by, and by which a stack is most of one. */
static enum gpu_value rank_of(enum gpu_view view)
{
	switch (view) {
	case GPU_VIEW_SYNCS:
		return GPU_WAIT;
	case GPU_VIEW_COPIES:
	case GPU_VIEW_COLLECTIVES:
		return GPU_BYTES;
	case GPU_VIEW_MEMORY:
		return GPU_LIVE;
	default:
		return GPU_CALLS;
	}
}

static bool is_shown(const struct gpu_call *call, enum gpu_view view)
{
	switch (view) {
	case GPU_VIEW_SYNCS:
		return call->class == GPU_SYNC || call->value[GPU_WAIT];
	case GPU_VIEW_COPIES:
		return call->class == GPU_COPY;
	case GPU_VIEW_KERNELS:
		return call->class == GPU_LAUNCH;
	case GPU_VIEW_COLLECTIVES:
		return call->class == GPU_COLLECTIVE;
	case GPU_VIEW_MEMORY:
		return call->class == GPU_ALLOC || call->class == GPU_FREE || call->value[GPU_LIVE];
	default:
		return true;
	}
}

static uint32_t word_of(const struct gpu_call *call, enum gpu_view view)
{
	return view == GPU_VIEW_KERNELS	 ? call->kernel
	       : view == GPU_VIEW_COPIES ? call->direction
					 : call->api;
}

/* ---- filling ---- */

#define ANY_CODE UINT32_MAX

static bool group_equal(const void *context, uint32_t index, const void *key)
{
	const struct gpu_groups *groups = context;
	const uint32_t *pair = key;

	return groups->group[index].word == pair[0] &&
	       (groups->view == GPU_VIEW_KERNELS || groups->group[index].code == pair[1]);
}

static int find_group(struct gpu_groups *groups, uint32_t word, uint32_t code,
		      struct gpu_group **ret_group)
{
	const uint32_t pair[] = {word, groups->view == GPU_VIEW_KERNELS ? ANY_CODE : code};
	const uint32_t hash = (uint32_t)XXH3_64bits(pair, sizeof(pair));
	uint32_t at;
	int err;

	if (!index_table_find(&groups->index, hash, group_equal, groups, pair, &at)) {
		err = ARRAY_RESERVE(groups->group, groups->count, groups->capacity);
		if (!err)
			err = index_table_add(&groups->index, hash, groups->count);
		if (err)
			return err;
		at = groups->count++;
		groups->group[at] =
			(struct gpu_group){.word = word, .code = code, .stack = GPU_NO_STACK};
	}
	*ret_group = &groups->group[at];
	return 0;
}

static int add_line(struct gpu_groups *groups, const struct gpu_table *table,
		    const struct gpu_line *line)
{
	const struct gpu_call *call = &table->call[line->call];
	const enum gpu_value rank = rank_of(groups->view);
	struct gpu_group *group;
	int err;

	if (!is_shown(call, groups->view))
		return 0;
	err = find_group(groups, word_of(call, groups->view), line->code, &group);
	if (err)
		return err;
	for (unsigned int i = 0; i < GPU_VALUES; i++) {
		const double error = gpu_line_error(table, line, i);

		group->value[i] = add_saturating(group->value[i], line->value[i]);
		group->variance[i] += error * error;
		groups->all[i] = add_saturating(groups->all[i], line->value[i]);
	}
	if (line->stack != GPU_NO_STACK &&
	    (group->stack == GPU_NO_STACK || line->value[rank] > group->stack_weight)) {
		group->stack = line->stack;
		group->stack_weight = line->value[rank];
	}
	return 0;
}

/* By kernel: which line has most of its launches. */
static int find_top_lines(struct gpu_groups *groups, const struct gpu_table *table)
{
	CLEANUP(gpu_groups_release) struct gpu_groups lines = {.view = GPU_VIEW_ALL};
	int err = 0;

	for (uint32_t i = 0; i < table->line_count && !err; i++) {
		const struct gpu_line *line = &table->line[i];
		const struct gpu_call *call = &table->call[line->call];
		struct gpu_group *sum;

		if (!is_shown(call, groups->view))
			continue;
		err = find_group(&lines, call->kernel, line->code, &sum);
		for (unsigned int k = 0; k < GPU_VALUES && !err; k++) {
			const double error = gpu_line_error(table, line, k);

			sum->value[k] = add_saturating(sum->value[k], line->value[k]);
			sum->variance[k] += error * error;
		}
	}
	for (uint32_t i = 0; i < lines.count && !err; i++) {
		const struct gpu_group *sum = &lines.group[i];
		struct gpu_group *group;

		err = find_group(groups, sum->word, sum->code, &group);
		if (err || sum->value[GPU_CALLS] <= group->line_value[GPU_CALLS])
			continue;
		group->code = sum->code;
		for (unsigned int k = 0; k < GPU_VALUES; k++) {
			group->line_value[k] = sum->value[k];
			group->line_variance[k] = sum->variance[k];
		}
	}
	return err;
}

/* ---- order ---- */

static int by_number(int64_t left, int64_t right)
{
	return (left < right) - (left > right);
}

static int compare_groups(const void *left, const void *right, void *context)
{
	const enum gpu_value rank = *(const enum gpu_value *)context;
	const struct gpu_group *a = left, *b = right;
	int order = by_number(a->value[rank], b->value[rank]);

	if (!order && rank == GPU_LIVE)
		order = by_number(a->value[GPU_BYTES], b->value[GPU_BYTES]);
	if (!order)
		order = by_number(a->value[GPU_CALLS], b->value[GPU_CALLS]);
	if (!order)
		order = (a->word > b->word) - (a->word < b->word);
	return order ? order : (a->code > b->code) - (a->code < b->code);
}

int gpu_groups_fill(struct gpu_groups *groups, const struct gpu_table *table, enum gpu_view view)
{
	enum gpu_value rank = rank_of(view);
	int err = 0;

	groups->view = view;
	for (uint32_t i = 0; i < table->line_count && !err; i++)
		err = add_line(groups, table, &table->line[i]);
	if (!err && view == GPU_VIEW_KERNELS)
		err = find_top_lines(groups, table);
	if (err)
		return err;
	if (groups->count)
		qsort_r(groups->group, groups->count, sizeof(*groups->group), compare_groups,
			&rank);
	index_table_release(&groups->index);
	return 0;
}
