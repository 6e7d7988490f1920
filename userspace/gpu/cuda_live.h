/* SPDX-License-Identifier: BSD-2-Clause */
/* The GPU's memory that is live (include/pyprofd/cuda.h: cuda_blocks[]), as counters of a window:
 * PP_KIND_CUDA_HELD, and PP_KIND_CUDA_SEEN where the profile goes on and somebody watches.  What a
 * process had when it ended or became another program is counted once, in the window in which that
 * was.  The loop's thread. */
#ifndef GPU_CUDA_LIVE_H
#define GPU_CUDA_LIVE_H

#include <stdbool.h>
#include <stdint.h>

#include <pyprofd/cuda.h>

#include "drain/table.h"

struct counts;
struct services;
struct slice;

struct cuda_ended {
	struct pp_cuda_handle context;
	uint64_t ns;
};

struct cuda_live_window {
	uint64_t ended_ns;
	bool is_written; /* its profile is, with what is live then */
	bool is_watched; /* clients see what is live */
};

/* How far the reading for one window has come.  All zeros: not begun. */
struct cuda_live_reading {
	struct map_batches blocks;
	struct cuda_ended ended[PP_CUDA_ENDED_MAX]; /* contexts, until the window's end */
	uint32_t ended_count;
	bool is_begun;
};

/* Adds what is live at the end of a window to its counters, until the slice is over (NULL: all),
 * once its rows are collected (gpu/cuda.h).  Returns 1: there is more; 0; -ENOMEM; -errno. */
int cuda_live_collect(const struct services *services, const struct cuda_live_window *window,
		      struct cuda_live_reading *reading, struct counts *counts,
		      const struct slice *slice);

#endif
