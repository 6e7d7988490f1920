/* SPDX-License-Identifier: BSD-2-Clause */
/* Sums up what the machine did, by process and GPU.  From profiles of kind ledger and capture
 * metadata: how busy its CPUs were, which processes used them for Python, native or kernel code,
 * and what the processes waited for. */
#ifndef QUERY_MACHINE_H
#define QUERY_MACHINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/kinds.h"
#include "profile/gpu_gauges.h"
#include "profile/ledger_state.h"
#include "query/input.h"

/* Of all threads and windows. */
struct machine_process {
	int64_t pid;
	const char *comm; /* borrowed from the profile */
	int64_t ns[LEDGER_STATE_COUNT];
};

/* Release with machine_release().  A zeroed one is empty. */
struct machine {
	struct machine_process
		*process; /* owned; the more CPU time first, of as much the more waits */
	uint32_t count;
	/* Processes without rows of their own, because pyprofd bounds those of a profile. */
	struct machine_process others;
	bool has_others;
	uint64_t elapsed_ns, busy_ns, cpus;
};

void machine_release(struct machine *machine);
/* Adds the capture metadata of a window; ignores other comments. */
void machine_add_facts(struct machine *machine, const char *comment);
/* Returns how to read windows of kind ledger for machine_fill(). */
struct input_options machine_input(void);
/* Lists the processes of a profile of kind ledger, once.  by_pid: a process that changes its name
 * keeps its sums, under the last name; else it has sums for each name.  Returns 0 or -ENOMEM. */
int machine_fill(struct machine *machine, const struct profile *profile, bool by_pid);
/* Return the time on the CPU; that of all waits. */
int64_t machine_cpu_ns(const struct machine_process *process);
int64_t machine_wait_ns(const struct machine_process *process);
void machine_add_up(struct machine_process *sum, const struct machine_process *process);

/* ---- the resident memory of each process, from profiles of kind resident: the last figures of a
 * range, how they grew, and the peak ---- */

struct process_memory {
	int64_t pid;			/* 0: of several processes */
	const char *comm;		/* of the profile */
	int64_t bytes[PP_MEMORY_COUNT]; /* in the last window that the process was in */
	uint64_t seen_ns;		/* when that began */
	int64_t peak_bytes;
	int64_t growth_bytes, growth_ns; /* in which time; 0: there was one reading only */
	int64_t processes;
};

/* What a row had in the last window that it was in. */
struct row_memory {
	uint64_t start_ns;
	int64_t bytes;
};

/* Release with process_memories_release(). */
struct process_memories {
	struct row_memory *row; /* owned; by row of the profile */
	size_t row_capacity;
	struct process_memory *process; /* owned */
	uint32_t count;
	struct process_memory others; /* those without rows of their own, in the last window */
	int64_t unread;		      /* processes whose memory was not read */
};

void process_memories_release(struct process_memories *memories);
/* Returns how to read the windows of a selection for them; where there are none, there is no
 * input. */
struct input_options process_memories_input(struct process_memories *memories,
					    const struct select *select);
/* Lists the processes of the profile, once; its strings are borrowed, and the larger ones come
 * first.  Returns 0 or -ENOMEM. */
int process_memories_fill(struct process_memories *memories, const struct profile *profile);

int64_t process_memory_bytes(const struct process_memory *process); /* INT64_MAX at most */
/* Adds the memory of processes to that of others. */
void process_memory_add(struct process_memory *sum, const struct process_memory *process);
/* Returns by how many bytes a process grew a minute, less than 0 when it shrank; NAN: there was one
 * reading only. */
double process_memory_growth(const struct process_memory *process);

/* ---- what GPUs did, and which processes were on them, from profiles of kind gpu ---- */

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
