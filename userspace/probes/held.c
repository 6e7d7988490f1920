/* SPDX-License-Identifier: BSD-2-Clause */
#include "probes/held.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <pyprofd/alloc.h>
#include <sys/random.h>

#include "discover/process_table.h"
#include "drain/counts.h"
#include "drain/dictionary.h"
#include "drain/free_debts.h"
#include "probes/probes.h"

struct adding {
	const struct held_sources *sources;
	const struct held_window *window;
	struct counts *counts;
	int debts_fd; /* below 0: there are none */
	int err;
};

static bool was_freed_unseen(const struct adding *adding, const struct pp_block *block)
{
	const struct pp_debt_key key = {.user_stack = block->key.user_stack,
					.tgid = block->key.id.tgid};
	uint64_t owed;
	uint32_t chance = 0;

	if (adding->debts_fd < 0 || bpf_map_lookup_elem(adding->debts_fd, &key, &owed))
		return false;
	(void)!getrandom(&chance, sizeof(chance), GRND_NONBLOCK);
	return free_debts_take(adding->sources->debts, block, owed, chance);
}

/* Returns whether the block stays in the table. */
static bool add_block(struct adding *adding, const struct pp_block *block)
{
	const struct process *process =
		process_table_find(adding->sources->processes, block->key.id);
	const struct pp_count count = {.samples = block->objects, .weight = block->bytes};
	const bool has_ended =
		!process || (process->exit_ns && process->exit_ns <= adding->window->ended_ns);
	struct pp_count_key key = block->key;

	if (block->since_ns > adding->window->ended_ns)
		return true;
	if (was_freed_unseen(adding, block))
		return false;
	/* Nobody sends them again. */
	(void)dictionary_use_stack(adding->sources->dictionary, key.user_stack);
	(void)dictionary_use_kernel(adding->sources->dictionary, key.kernel_stack);
	key.kind = PP_KIND_HELD;
	if (!adding->err && (adding->window->is_written || has_ended))
		adding->err = counts_add(adding->counts, &key, &count);
	return !has_ended;
}

static void on_block(void *context, const void *key, const void *value)
{
	const struct adding *adding = context;

	if (!add_block(context, value))
		(void)bpf_map_delete_elem(probes_blocks(adding->sources->probes), key);
}

int held_collect(const struct held_sources *sources, const struct held_window *window,
		 struct held_reading *reading, struct counts *counts, const struct slice *slice)
{
	struct adding adding = {.sources = sources,
				.window = window,
				.counts = counts,
				.debts_fd = probes_debts(sources->probes)};
	int more = 1;

	if (!reading->is_begun) {
		reading->blocks = (struct map_batches){.map_fd = probes_blocks(sources->probes),
						       .key_bytes = sizeof(struct pp_block_key),
						       .value_bytes = sizeof(struct pp_block)};
		reading->is_begun = true;
	}
	if (reading->blocks.map_fd < 0)
		return 0;
	while (more > 0) {
		more = map_batches_read(&reading->blocks, on_block, &adding);
		if (adding.err)
			return adding.err;
		if (slice_is_over(slice))
			break;
	}
	return more;
}
