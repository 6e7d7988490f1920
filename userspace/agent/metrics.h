/* SPDX-License-Identifier: BSD-2-Clause */
/* The agent's metrics, as pyprofd-serve shows them at /metrics: one list for the answer to a live
 * request `stats` and for docs/metrics.md; those of GPUs are in gpu_metrics.h. */
#ifndef AGENT_METRICS_H
#define AGENT_METRICS_H

#include <stddef.h>

struct gauges;
struct summary;

/* Borrowed. */
struct metrics_sources {
	const struct summary *summary;
	const struct gauges *gauges; /* NULL: CUDA is not captured */
};

/* X(name, enum live_metric, label or "", where its values are (metrics.c), what it says).  Names
 * have base units and, for counters, end in _total. */
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
int metrics_tell(const struct metrics_sources *sources, char **ret_text, size_t *ret_size);

#endif
