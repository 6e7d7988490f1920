/* SPDX-License-Identifier: BSD-2-Clause */
/* Keeps the child at work that reads GPUs' gauges (gauges/child.h), takes what it says, and never
 * waits for it.  Nothing is started before a program with CUDA is seen.  The loop's thread. */
#ifndef GPU_GAUGES_H
#define GPU_GAUGES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "gpu/gauge_sums.h"

struct gauges;
/* program: what the child is, "/proc/self/exe" for this one.  Starts nothing yet.  All other
 * functions accept NULL: event `cuda` is not captured.  Returns 0 or -ENOMEM. */
int gauges_new(const char *program, struct gauges **ret_gauges);
/* Kills the child. */
void gauges_free(struct gauges *gauges);
DEFINE_OWNED(struct gauges, gauges)

/* Takes what the child has written, replaces one that has ended, is silent or says nonsense, and
 * starts it when that is due and wanted.  Call it a few times a second. */
void gauges_turn(struct gauges *gauges, bool is_wanted, uint64_t now_ns);

/* Returns the last round; NULL: the gauges are not known now.  Valid until the next turn. */
const struct gauges_round *gauges_now(const struct gauges *gauges);
/* Returns sums since the start, of GPUs alone; NULL for NULL. */
const struct gauge_sums *gauges_total(const struct gauges *gauges);
/* Returns the one GPU that a process has memory of, as NVML counts GPUs (CUDA's numbers may differ:
 * CUDA_VISIBLE_DEVICES), in this part of the window or the one before; -ENOENT: none is known;
 * -EMFILE: several, or there were more processes than room for them. */
int gauges_device_of(const struct gauges *gauges, uint32_t pid);

/* Ends a part of a window: its sums are gauges_part()'s until the next call.  is_written: it is the
 * end of profiles, whose sums are gauges_closed()'s until the next call that says so. */
void gauges_cut(struct gauges *gauges, bool is_written, uint64_t now_ns);
const struct gauge_sums *gauges_part(const struct gauges *gauges);
const struct gauge_sums *gauges_closed(const struct gauges *gauges);

struct gauges_stats {
	uint64_t starts; /* of children */
	uint64_t cpu_ns; /* of all children */
	uint64_t failures[GAUGES_FAILURE_COUNT];
	uint64_t lost; /* PP_LOSS_GAUGES_LOST: failures of a child that had begun to read */
};
void gauges_get_stats(const struct gauges *gauges, struct gauges_stats *ret_stats);

#endif
