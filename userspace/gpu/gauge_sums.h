/* SPDX-License-Identifier: BSD-2-Clause */
/* Sums up rounds of GPUs' gauges (gauges/intake.h) over a time. */
#ifndef GPU_GAUGE_SUMS_H
#define GPU_GAUGE_SUMS_H

#include <stdbool.h>
#include <stdint.h>

#include "gauges/intake.h"

struct gauge_sum {
	uint64_t count, sum, max; /* of the readings that had a value */
};
struct gauge_sums_device {
	uint32_t index;
	struct gauges_device last;
	uint64_t rounds;
	struct gauge_sum gauge[GPU_GAUGE_COUNT];
	uint64_t reason_rounds; /* those that had reasons */
	uint64_t reason[GPU_REASON_COUNT];
};
struct gauge_sums_process {
	uint32_t pid, device;
	uint64_t rounds;
	struct gauge_sum memory_bytes, sm;
};

/* A zeroed one is empty.  Several hundred KiB: on the heap. */
struct gauge_sums {
	uint32_t device_count, process_count;
	uint64_t left_out; /* the most processes of a round that found no room */
	struct gauge_sums_device device[GAUGES_DEVICES_MAX];
	/* When they are too many, those that are not in the last round leave their room. */
	struct gauge_sums_process process[GAUGES_PROCESSES_MAX];
};

void gauge_sums_add(struct gauge_sums *sums, const struct gauges_round *round);
/* Adds the GPUs alone. */
void gauge_sums_add_devices(struct gauge_sums *sums, const struct gauges_round *round);
/* Empties it. */
void gauge_sums_reset(struct gauge_sums *sums);
/* Returns the one GPU on which the process was; -ENOENT: none is known; -EMFILE: several, or some
 * processes found no room. */
int gauge_sums_device_of(const struct gauge_sums *sums, uint32_t pid);

#endif
