/* SPDX-License-Identifier: BSD-2-Clause */
/* Keeps the child at work that reads GPUs' gauges (gauges/child.h), takes what it says, and never
 * waits for it.  Nothing is started before a program with CUDA is seen.  The loop's thread. */
#ifndef GPU_GAUGES_H
#define GPU_GAUGES_H

#include <stdint.h>

#include "gpu/gauge_sums.h"

struct gauges; /* the state of gauges_source */

/* Returns the last round; NULL: the gauges are not known now.  Valid until the next turn. */
const struct gauges_round *gauges_now(const struct gauges *gauges);
/* Returns sums since the start, of GPUs alone. */
const struct gauge_sums *gauges_total(const struct gauges *gauges);
/* Returns the one GPU that a process has memory of, as NVML counts GPUs (CUDA's numbers may differ:
 * CUDA_VISIBLE_DEVICES), in this part of the window or the one before; -ENOENT: none is known;
 * -EMFILE: several, or there were more processes than room for them. */
int gauges_device_of(const struct gauges *gauges, uint32_t pid);

struct gauges_stats {
	uint64_t starts; /* of children */
	uint64_t cpu_ns; /* of all children */
	uint64_t failures[GAUGES_FAILURE_COUNT];
	uint64_t lost; /* PP_LOSS_GAUGES_LOST: failures of a child that had begun to read */
};
void gauges_get_stats(const struct gauges *gauges, struct gauges_stats *ret_stats);

#endif
