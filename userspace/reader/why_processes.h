/* SPDX-License-Identifier: BSD-2-Clause */
/* What `pyprof why` knows of each process that called CUDA: sums for the rules
 * (query/gpu_findings.h), and the lines that they come from.  First windows and samples of kind
 * cuda are added, then samples of kind wall or cpu, then processes are judged. */
#ifndef READER_WHY_PROCESSES_H
#define READER_WHY_PROCESSES_H

#include <stdio.h>

#include "base/index_table.h"
#include "pprof/profile_read.h"
#include "query/gpu_findings.h"
#include "query/machine.h"
#include "reader/gpu_table.h"
#include "render/table.h"

#define WHY_LINES 3U /* of a finding */
/* A hostile profile may name more; those are counted and left out. */
#define WHY_PROCESSES_MAX 65536U
#define WHY_THREADS_MAX 262144U

/* A line of Python that a finding comes from, or a function of a program without. */
struct why_line {
	char *name, *file, *place; /* owned; place: the short path and line */
	uint32_t line;		   /* 0: unknown */
	double share;		   /* of the finding's calls or time */
};

struct why_lines {
	struct why_line line[WHY_LINES];
	unsigned int count;
};

/* One thread's calls of CUDA. */
struct why_thread {
	uint32_t process;
	int64_t tid; /* 0: not known */
	double calls, launches, graph_launches, syncs, sync_wait_ns, copy_wait_ns;
};

struct why_process {
	int64_t pid;
	char *comm;    /* owned */
	uint32_t lead; /* the thread that launches most */
	struct gpu_sums sums;
	struct gpu_finding finding[GPU_PROCESS_FINDINGS]; /* in gpu_findings_judge()'s order */
	struct why_lines lines[GPU_PROCESS_FINDINGS];	  /* by id */
	/* While windows are read, on a clock that runs while something is recorded: of its first
	 * and last window; of the first one a minute later, UINT64_MAX: none. */
	uint64_t begin_ns, end_ns, late_ns;
	double late_allocs;
	uint64_t begin_wall_ns, end_wall_ns; /* the same since 1970; 0: not known */
	uint32_t window; /* the number of the last window in which it was; 0: none */
	double window_launches, window_syncs;
};

/* What a line has of one process, before the most of them are found. */
struct why_weight {
	uint32_t process, finding, code;
	double weight;
};

/* Release with why_processes_release().  A zeroed one is empty. */
struct why_processes {
	struct why_process *process; /* owned */
	uint32_t count, capacity;
	struct index_table by_pid;
	struct why_thread *thread; /* owned */
	uint32_t thread_count, thread_capacity;
	struct index_table by_tid;
	uint64_t left_out; /* samples of processes and threads beyond the bounds */
	uint32_t windows;
	uint64_t recorded_ns;
};

void why_processes_release(struct why_processes *processes);
/* Adds a window of kind cuda, whose deltas are calls.  Returns 0 or -ENOMEM. */
int why_add_window(struct why_processes *processes, struct profile *profile,
		   const struct profile_window *window);
/* Adds all samples of kind cuda: a table that gpu_table_fill() has filled from a profile with the
 * label tid.  Ends the windows.  Returns 0 or -ENOMEM. */
int why_add_calls(struct why_processes *processes, struct gpu_table *table);
/* Samples of the launching threads.  Begin with why_samples_init(); release with
 * why_samples_release(). */
struct why_samples {
	struct why_processes *processes; /* borrowed */
	struct code_table code;
	struct why_weight *weight; /* owned */
	uint32_t weight_count, weight_capacity;
	const struct profile *profile; /* NULL: no window came */
};

void why_samples_init(struct why_samples *samples, struct why_processes *processes);
void why_samples_release(struct why_samples *samples);
/* Adds a window of kind wall or cpu whose deltas are ns, of processes that it lies in the time of.
 * Returns 0 or -ENOMEM. */
int why_samples_add(struct why_samples *samples, const struct profile *profile,
		    const struct profile_window *window);
/* Ends it.  has_waits: the profile was of kind wall.  Returns 0 or -ENOMEM. */
int why_samples_end(struct why_samples *samples, const struct short_paths *short_paths,
		    bool has_waits);
/* Judges all processes, and puts those that lose most first.  Nothing may be added afterwards. */
void why_judge(struct why_processes *processes, bool is_scaled);

/* ---- what is shown (why_view.c) ---- */

struct why_shown {
	const struct why_processes *processes;
	const struct gpu_usage *gauges;
	const char *title;
	uint64_t duration_ns; /* that was recorded */
	uint32_t rows;	      /* processes; 0: all */
	bool color;
	bool is_scaled; /* launches were counted for a part of the time */
};

/* Prints each process: what was found, what was looked at and did not stand out, what cannot be
 * judged; then each GPU that has gauges. */
void why_print_text(const struct why_shown *shown);
/* Writes all of it.  Returns 0 or -EIO. */
int why_print_json(const struct why_shown *shown, FILE *out);
/* Writes the findings, a row each, with their evidence.  Returns 0 or -ENOMEM. */
int why_put_table(const struct why_shown *shown, struct table *table);

#endif
