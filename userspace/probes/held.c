/* SPDX-License-Identifier: BSD-2-Clause */
/* What is held of the sampled allocations, as counters of a window: PP_KIND_HELD.  What a process
 * held when it ended or became another program is counted once, in the window in which that was. */

#include <bpf/bpf.h>
#include <errno.h>
#include <stdlib.h>

#include <pyprofd/probe.h>

#include "attach/probe_side.h"
#include "base/random.h"
#include "discover/process_table.h"
#include "drain/counts.h"
#include "drain/dictionary.h"
#include "drain/free_debts.h"
#include "drain/table.h"
#include "probes/probes.h"
#include "windows/source.h"

struct held {
	const struct services *services;
	struct free_debts *debts;  /* owned */
	struct map_batches blocks; /* how far the reading for the window has come */
	bool is_begun;
};

struct adding {
	const struct held *held;
	const struct source_window *window;
	const struct probe_side *side;
	int err;
};

static bool was_freed_unseen(const struct adding *adding, const struct pp_block *block)
{
	const struct pp_debt_key key = {.user_stack = block->key.user_stack,
					.tgid = block->key.id.tgid};
	uint64_t owed;

	if (bpf_map_lookup_elem(adding->side->debts, &key, &owed))
		return false;
	return free_debts_take(adding->held->debts, block, owed, (uint32_t)random_number());
}

/* Returns whether the block stays in the table. */
static bool add_block(struct adding *adding, const struct pp_block *block)
{
	const struct process *process =
		process_table_find(adding->held->services->processes, block->key.id);
	const struct pp_count count = {.samples = block->objects, .weight = block->bytes};
	const bool has_ended =
		!process || (process->exit_ns && process->exit_ns <= adding->window->slots.end_ns);
	struct pp_count_key key = block->key;

	if (block->since_ns > adding->window->slots.end_ns)
		return true;
	if (was_freed_unseen(adding, block))
		return false;
	/* Nobody sends them again. */
	(void)dictionary_use_stack(adding->held->services->dictionary, key.user_stack);
	(void)dictionary_use_kernel(adding->held->services->dictionary, key.kernel_stack);
	key.kind = PP_KIND_HELD;
	if (!adding->err && (adding->window->is_written || has_ended))
		adding->err = counts_add(adding->window->counts, &key, &count);
	return !has_ended;
}

static void on_block(void *context, const void *key, const void *value)
{
	const struct adding *adding = context;

	if (!add_block(context, value))
		(void)bpf_map_delete_elem(adding->side->blocks, key);
}

static bool source_close(void *state)
{
	struct held *held = state;

	free_debts_free(held->debts);
	return true;
}

static int source_open(void *state)
{
	struct held *held = state;

	return free_debts_new(&held->debts);
}

static int source_collect(void *state, const struct source_window *window)
{
	struct held *held = state;

	(void)window;
	held->is_begun = false;
	return 0;
}

/* Of one file only the last window has what is held: it is read when profiles are written, and
 * where processes may have ended. */
static int source_add(void *state, const struct source_window *window, const struct slice *slice)
{
	struct held *held = state;
	const struct probe_side *side =
		probes_allocs(held->services->sources->state[PP_SOURCE_PROBES]);
	struct adding adding = {.held = held, .window = window, .side = side};
	int more = 1;

	if (window->is_part || !side)
		return 0;
	if (!held->is_begun)
		held->blocks = (struct map_batches){.map_fd = side->blocks,
						    .key_bytes = sizeof(struct pp_block_key),
						    .value_bytes = sizeof(struct pp_block)};
	held->is_begun = true;
	while (more > 0) {
		more = map_batches_read(&held->blocks, on_block, &adding);
		if (adding.err)
			return adding.err;
		if (slice_is_over(slice))
			break;
	}
	return more;
}

const struct source alloc_source = {.name = "alloc",
				    .bytes = sizeof(struct held),
				    .open = source_open,
				    .close = source_close,
				    .collect = source_collect,
				    .add = source_add};
