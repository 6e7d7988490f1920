/* SPDX-License-Identifier: BSD-2-Clause */
/* How a run goes: what a user sees on the terminal meanwhile, the line at its end, and the metrics
 * that pyprofd-serve shows. */
#ifndef AGENT_PROGRESS_H
#define AGENT_PROGRESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "windows/summary.h"

struct services;

#define PROGRESS_LINE_BYTES 2048U
/* Complete: reached the root, in the kernel or by the agent, or had no user part at all. */
uint64_t summary_complete(const struct summary *summary);
/* Samples that are in no profile: the kernel could not count them. */
uint64_t summary_lost(const struct summary *summary);

/* Return whether an enum pp_loss is of samples; whether an enum pp_stop is the end of a whole
 * stack. */
bool summary_is_sample_loss(unsigned int loss);
bool summary_is_whole(unsigned int stop);

/* One line without a newline, cut to `columns` (0: as long as it gets).
 * "12s  34 processes  1,188 samples  0 lost  99.8 % complete" */
void progress_format(const struct summary *summary, unsigned int columns, char *line, size_t size);
/* "60.0 s: 11,880 samples of 34 processes, 99.8 % complete (truncated: 12 no_info), 3 lost (3
 * counts_full), also 1 ring_full; own CPU 0.21 % of one core, memory 31.4 MiB + 12.0 MiB of maps"
 * and "; the hypervisor took 1.9 s of CPU time (steal)" where that can be seen in the samples. */
void summary_format(const struct summary *summary, char *line, size_t size);

struct progress {
	FILE *stream;
	bool is_shown;	   /* the stream is a terminal and nobody asked for quiet */
	bool is_on_screen; /* a line stands there now */
	uint64_t next_ns;  /* when the next update is due */
};
void progress_init(struct progress *progress, FILE *stream, bool quiet);
/* Rewrites the line about once a second; call it as often as you like. */
void progress_update(struct progress *progress, const struct summary *summary, uint64_t now_ns);
/* Takes the line off the screen.  Call it before any other line is printed there, and at the
 * end. */
void progress_clear(struct progress *progress);
/* Clears, then prints the closing line (not when quiet was asked for). */
void progress_finish(struct progress *progress, const struct summary *summary, bool quiet);

/* ---- metrics: the answer to a live request `stats` ---- */

/* X(name, enum live_metric, label or "", where its values are (progress.c), what it says), also for
 * docs/metrics.md; those of GPUs are in gpu_metrics.h.  Names have base units and, for counters,
 * end in _total. */
#define AGENT_METRICS(X)                                                                           \
	X("pyprofd_build_info", GAUGE, "version", VERSION,                                         \
	  "Always 1; its label is the version of the agent that runs.")                            \
	X("pyprofd_uptime_seconds", GAUGE_NS, "", NUMBER(elapsed_ns),                              \
	  "Time since the agent began to record.")                                                 \
	X("pyprofd_samples_total", COUNTER, "kind", KIND_CPU(samples),                             \
	  "Samples that were counted, with a whole stack or not.")                                 \
	X("pyprofd_profiled_seconds_total", COUNTER_NS, "kind", KIND_TIMES,                        \
	  "Time in the profiles, summed over all threads: CPU time, and waits.")                   \
	X("pyprofd_scheduler_seconds_total", COUNTER_NS, "", NUMBER(scheduler_ns),                 \
	  "CPU time of what is profiled by the scheduler's count; 0: not known.")                  \
	X("pyprofd_unwind_errors_total", COUNTER, "reason", STOPS,                                 \
	  "Samples whose native stack does not reach its root, by reason.")                        \
	X("pyprofd_python_unwind_errors_total", COUNTER, "reason", PYTHON_STOPS,                   \
	  "Samples of Python threads that lack Python frames, by reason.")                         \
	X("pyprofd_samples_lost_total", COUNTER, "reason", SAMPLE_LOSSES,                          \
	  "Samples that are in no profile, by reason.")                                            \
	X("pyprofd_losses_total", COUNTER, "reason", OTHER_LOSSES,                                 \
	  "What else was lost or given up, by reason: a name, a stack, a second try.")             \
	X("pyprofd_table_swaps_early_total", COUNTER, "", NUMBER(early_swaps),                     \
	  "Windows that were cut early, as a kernel table was half full.")                         \
	X("pyprofd_sampled_processes_total", COUNTER, "", NUMBER(processes),                       \
	  "Different processes that have had a sample.")                                           \
	X("pyprofd_cpu_seconds_total", COUNTER_NS, "", NUMBER(own_cpu_ns),                         \
	  "CPU time of the agent and of its children that parse files.")                           \
	X("pyprofd_resident_memory_bytes", GAUGE, "", NUMBER(own_rss_bytes),                       \
	  "Resident memory of the agent.")                                                         \
	X("pyprofd_profiled_memory_bytes", GAUGE, "memory", MEMORIES,                              \
	  "Resident memory of the profiled processes, summed up by kind; 0: it is not recorded.")  \
	X("pyprofd_profiled_memory_processes", GAUGE, "", NUMBER(memory_processes),                \
	  "Processes in these sums.")                                                              \
	X("pyprofd_largest_process_memory_bytes", GAUGE, "place", LARGEST,                         \
	  "Resident memory of each of the 16 largest of them, which have no names here.")          \
	X("pyprofd_loop_stall_seconds", GAUGE_NS, "", NUMBER(loop_stall_max_ns),                   \
	  "Longest turn of the agent's loop in the open window.")

/* Writes all metrics as records of the live socket, on the heap.  Returns 0 or -ENOMEM. */
int metrics_tell(const struct services *services, char **ret_text, size_t *ret_size);

#endif
