/* SPDX-License-Identifier: BSD-2-Clause */
/* The GPU's memory that is live (include/pyprofd/cuda.h: cuda_blocks[]), as counters of a window:
 * PP_KIND_CUDA_HELD, and PP_KIND_CUDA_SEEN where the profile goes on and somebody watches.  What a
 * process had when it ended or became another program is counted once, in the window in which that
 * was.  A source (windows/source.h); the loop's thread. */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "attach/cuda_side.h"
#include "discover/process_table.h"
#include "drain/counts.h"
#include "drain/dictionary.h"
#include "drain/table.h"
#include "gpu/cuda.h"
#include "probes/probes.h"
#include "windows/source.h"
#include "windows/top.h"

struct ended {
	struct pp_cuda_handle context;
	uint64_t ns;
};

struct cuda_live {
	const struct services *services;
	/* Of the window that is closing: how far its reading has come. */
	bool is_begun;
	struct map_batches blocks;
	struct ended ended[PP_CUDA_ENDED_MAX]; /* contexts, until the window's end */
	uint32_t ended_count;
};

struct adding {
	struct cuda_live *live;
	const struct cuda_side *side;
	const struct source_window *window;
	bool is_watched; /* clients see what is live */
	int err;
};

/* ---- contexts that have ended ---- */

static int on_ended(void *context, const void *key, const void *value)
{
	const struct adding *adding = context;
	struct cuda_live *live = adding->live;
	const uint64_t ns = *(const uint64_t *)value;

	/* What ended later was live at the window's end. */
	if (ns > adding->window->slots.end_ns || live->ended_count == PP_CUDA_ENDED_MAX)
		return 0;
	memcpy(&live->ended[live->ended_count].context, key, sizeof(struct pp_cuda_handle));
	live->ended[live->ended_count++].ns = ns;
	return 0;
}

static bool was_ended(const struct cuda_live *live, struct pp_process_id id,
		      const struct pp_cuda_block *block)
{
	for (uint32_t i = 0; i < live->ended_count; i++) {
		const struct ended *ended = &live->ended[i];
		const uint64_t context = ended->context.handle;

		if (ended->context.id.tgid != id.tgid ||
		    ended->context.id.generation != id.generation || ended->ns < block->since_ns)
			continue;
		if (context == (PP_CUDA_ALL_OF_DEVICE | block->device) ||
		    (context && context == block->context))
			return true;
	}
	return false;
}

/* One that has ended once more meanwhile is for the next window. */
static void forget_ended(const struct adding *adding)
{
	const int fd = adding->side->ended;
	uint64_t ns;

	for (uint32_t i = 0; i < adding->live->ended_count; i++) {
		const struct ended *ended = &adding->live->ended[i];

		if (!table_get(fd, &ended->context, &ns) && ns == ended->ns)
			(void)table_remove(fd, &ended->context);
	}
}

/* ---- blocks ---- */

static int count_block(const struct adding *adding, struct pp_process_id id,
		       const struct pp_cuda_block *block, bool has_ended)
{
	const bool is_written = adding->window->is_written || has_ended;
	const struct pp_count_key key = {.user_stack = block->user_stack,
					 .detail = block->row,
					 .id = id,
					 .tid = block->tid,
					 .flags = block->flags,
					 .kind = is_written ? PP_KIND_CUDA_HELD
							    : PP_KIND_CUDA_SEEN};
	const struct pp_count count = {.samples = 1, .weight = block->bytes};

	if (!is_written && !adding->is_watched)
		return 0;
	return counts_add(adding->window->counts, &key, &count);
}

static void on_block(void *context, const void *key_at, const void *value)
{
	struct adding *adding = context;
	const struct pp_cuda_block_key *key = key_at;
	const struct pp_cuda_block *block = value;
	const struct services *services = adding->live->services;
	const struct pp_process_id id = {.tgid = key->tgid, .generation = block->generation};
	const bool has_ended = !process_table_is_alive(services->processes, id);

	if (block->since_ns > adding->window->slots.end_ns && !has_ended)
		return;
	if (was_ended(adding->live, id, block)) {
		cuda_side_remove_block(adding->side, key, block);
		return;
	}
	/* Nobody sends its stack again. */
	(void)dictionary_use_stack(services->dictionary, block->user_stack);
	cuda_hold(services->sources->state[PP_SOURCE_CUDA], block->row);
	if (!adding->err)
		adding->err = count_block(adding, id, block, has_ended);
	if (has_ended)
		cuda_side_remove_block(adding->side, key, block);
}

static int begin(struct adding *adding)
{
	struct cuda_live *live = adding->live;

	live->is_begun = true;
	live->blocks = (struct map_batches){.map_fd = adding->side->blocks,
					    .key_bytes = sizeof(struct pp_cuda_block_key),
					    .value_bytes = sizeof(struct pp_cuda_block)};
	return table_read(adding->side->ended, sizeof(struct pp_cuda_handle), sizeof(uint64_t),
			  on_ended, adding);
}

/* ---- as a source ---- */

static int source_collect(void *state, const struct source_window *window)
{
	struct cuda_live *live = state;

	(void)window;
	live->is_begun = false;
	live->ended_count = 0;
	return 0;
}

/* Adds what is live at the end of a window, whose rows are collected (gpu/cuda.h). */
static int source_add(void *state, const struct source_window *window, const struct slice *slice)
{
	struct cuda_live *live = state;
	const struct services *services = live->services;
	struct adding adding = {.live = live,
				.side = probes_cuda(services->sources->state[PP_SOURCE_PROBES]),
				.window = window,
				.is_watched = top_wants(services->top, 1U << PP_PROFILE_CUDA)};
	int more = 1, err;

	if (!adding.side || (window->is_part && !adding.is_watched))
		return 0;
	err = live->is_begun ? 0 : begin(&adding);
	if (err)
		return err;
	while (more > 0) {
		more = map_batches_read(&live->blocks, on_block, &adding);
		if (adding.err)
			return adding.err;
		if (slice_is_over(slice))
			break;
	}
	if (!more)
		forget_ended(&adding);
	return more;
}

const struct source cuda_live_source = {.name = "cuda_live",
					.bytes = sizeof(struct cuda_live),
					.collect = source_collect,
					.add = source_add};
