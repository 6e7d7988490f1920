/* SPDX-License-Identifier: BSD-2-Clause */
/* What GPUs did, and which processes were on them, from profiles of kind gpu. */
#ifndef QUERY_GPU_USAGE_H
#define QUERY_GPU_USAGE_H

#include <stdbool.h>
#include <stdint.h>

#include "profile/gpu_gauges.h"
#include "query/input.h"

/* The most GPUs.  A hostile profile may name more; those are counted and left out. */
#define GPU_USAGE_DEVICES_MAX 4096U

/* Of readings, one a second. */
struct gpu_usage_sum {
	double sum;
	int64_t readings; /* 0: nothing is known */
	int64_t max;
};

struct gpu_usage_device {
	int64_t device; /* as NVML counts them */
	const char *uuid, *name;
	struct gpu_usage_sum gauge[GPU_GAUGE_COUNT];
	int64_t reason_readings;	 /* of which reasons are known */
	double reason[GPU_REASON_COUNT]; /* how many of these had it */
};
struct gpu_usage_process {
	int64_t pid, device;
	const char *comm;
	struct gpu_usage_sum memory_bytes, sm;
};

/* Release with gpu_usage_release().  A zeroed one is empty. */
struct gpu_usage {
	struct gpu_usage_device *device;   /* owned; by their numbers */
	struct gpu_usage_process *process; /* owned; those with most memory first */
	uint32_t device_count, process_count;
	bool has_others;   /* some processes have no rows of their own */
	uint64_t left_out; /* GPUs beyond GPU_USAGE_DEVICES_MAX */
};

void gpu_usage_release(struct gpu_usage *usage);
/* Returns how to read the windows of a selection for it; where there are none, there is no input.
 * GPUs are the machine's: no filter chooses among them.  select: a copy of a verb's, which loses
 * its filters. */
struct input_options gpu_usage_input(struct select *select);
/* Lists what the profile has, whose strings it borrows.  select: its --pid and --comm choose
 * processes; NULL: all.  Returns 0 or -ENOMEM. */
int gpu_usage_fill(struct gpu_usage *usage, const struct profile *profile,
		   const struct select *select);
/* Returns the mean, in the gauge's unit; 0 where nothing is known. */
double gpu_usage_mean(const struct gpu_usage_sum *sum);

#endif
