/* SPDX-License-Identifier: BSD-2-Clause */
/* Writes for how long processes had work queued on the GPU, and for how long provably none, into
 * the comments of the profile of kind cuda (profile/queue_line.h).  The loop's thread. */
#ifndef GPU_GPU_TIMES_H
#define GPU_GPU_TIMES_H

#include "base/cleanup.h"

struct gpu_times;
struct options;
struct probes;
struct process_table;
struct profiles;

/* All is borrowed. */
struct gpu_times_sources {
	const struct options *options;
	struct probes *probes;
	const struct process_table *processes;
};

/* *ret_times is NULL when `cuda` is not captured; all functions take that.  Returns 0 or
 * -ENOMEM. */
int gpu_times_new(const struct gpu_times_sources *sources, struct gpu_times **ret_times);
void gpu_times_free(struct gpu_times *times);
DEFINE_OWNED(struct gpu_times, gpu_times)

/* Takes what the kernel side has up to now: at a window's end.  Returns 0 or -errno. */
int gpu_times_collect(struct gpu_times *times);
/* Writes what was taken since the last call: the next profile begins.  Returns 0 or -ENOMEM. */
int gpu_times_describe(struct gpu_times *times, struct profiles *profiles);

#endif
