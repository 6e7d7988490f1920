/* SPDX-License-Identifier: BSD-2-Clause */
/* Opens one perf event per CPU, which runs the sampling program.  One thread. */
#ifndef ATTACH_CPU_EVENTS_H
#define ATTACH_CPU_EVENTS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "child/perf_opener.h"

struct cpu_events;

struct cpu_events_options {
	int program; /* fd of the BPF program, borrowed */
	uint32_t hz;
	/* The PMU's cycles with a target frequency of hz; else cpu-clock with the fixed period
	 * 1e9 / hz ns, so that each sample has the same weight. */
	bool use_cycles;
	struct perf_opener *opener; /* borrowed; NULL: the calling process opens the events */
};

/* Creates the events. */
int cpu_events_new(const struct cpu_events_options *options, struct cpu_events **ret_events);
void cpu_events_free(struct cpu_events *events);
DEFINE_OWNED(struct cpu_events, cpu_events)

/* Opens events on CPUs that came online and closes those of CPUs that went offline.  Call it now
 * and then. Returns 0; -errno of the first CPU that failed (-ENOENT: no such PMU event). */
int cpu_events_follow(struct cpu_events *events);
/* Opens all CPUs' events anew with another rate, before the old ones are closed:
 * PERF_EVENT_IOC_PERIOD would leave the weight of a sample as it was.  Returns 0; -errno: all go on
 * at the old rate. */
int cpu_events_set_hz(struct cpu_events *events, uint32_t hz);
/* Returns the number of CPUs that are sampled. */
uint32_t cpu_events_count(const struct cpu_events *events);
/* Returns the ns of one sample with cpu-clock; 0 with cycles. */
uint64_t cpu_events_period_ns(const struct cpu_events *events);

#endif
