/* SPDX-License-Identifier: BSD-2-Clause */
/* Sums up what GPUs did, and which processes were on them, from the comments of profiles
 * (profile/gauge_line.h). */
#ifndef QUERY_GPU_USAGE_H
#define QUERY_GPU_USAGE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/index_table.h"
#include "profile/gauge_line.h"
#include "query/select.h"

/* The most GPUs, and processes on one of them, with figures of their own.  A hostile profile may
 * name more; those are counted and left out. */
#define GPU_USAGE_DEVICES_MAX 4096U
#define GPU_USAGE_PROCESSES_MAX 65536U

/* A mean over windows, each by its seconds. */
struct gpu_usage_sum {
	double sum, seconds; /* seconds 0: nothing is known */
	uint64_t min, max;
};

struct gpu_usage_device {
	uint64_t device;
	char uuid[GPU_UUID_BYTES], name[GPU_NAME_BYTES];
	double seconds;
	uint64_t memory_total_bytes, power_limit; /* as in struct gauge_line, of the last line */
	struct gpu_usage_sum gauge[GPU_GAUGE_COUNT];
	double reason_seconds;		 /* of which reasons are known */
	double reason[GPU_REASON_COUNT]; /* seconds */
};
struct gpu_usage_process {
	uint64_t pid, device;
	char comm[GPU_COMM_BYTES];
	double seconds;
	struct gpu_usage_sum memory_bytes, sm;
};

/* Release with gpu_usage_release().  A zeroed one is empty. */
struct gpu_usage {
	/* Borrowed; its --pid and --comm choose processes; NULL: all.  GPUs are the machine's. */
	const struct select *select;
	struct gpu_usage_device *device; /* owned */
	uint32_t device_count, device_capacity;
	struct index_table device_index;
	struct gpu_usage_process *process; /* owned */
	uint32_t process_count, process_capacity;
	struct index_table process_index;
	bool has_others;   /* some processes have no line of their own */
	uint64_t left_out; /* lines */
};

void gpu_usage_release(struct gpu_usage *usage);
/* Adds a comment; ignores those that are not of GPUs.  Returns 0 or -ENOMEM. */
int gpu_usage_add(struct gpu_usage *usage, const char *comment);
/* Returns the mean, in the unit of the lines' numbers; 0 where nothing is known. */
double gpu_usage_mean(const struct gpu_usage_sum *sum);
/* Puts the GPUs in the order of their numbers, and the processes in that of their memory.  Nothing
 * may be added afterwards. */
void gpu_usage_sort(struct gpu_usage *usage);

#endif
