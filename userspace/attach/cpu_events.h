/* SPDX-License-Identifier: BSD-2-Clause */
/* Opens one perf event per CPU, which runs the sampling program.  Its timer is started anew at
 * random times with a random period: a fixed one meets a program that does the same each second, or
 * each 10 ms, always or never (docs/design/profiles.md).  One thread. */
#ifndef ATTACH_CPU_EVENTS_H
#define ATTACH_CPU_EVENTS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "child/perf_opener.h"

struct pp_sample_timer;

/* A restart is a system call here and an interrupt there: 3 us of each. */
#define CPU_EVENTS_VARIED 32U

struct cpu_events;

struct cpu_events_options {
	int program; /* fd of the BPF program, borrowed */
	uint32_t hz;
	/* The PMU's cycles with a target frequency of hz; else cpu-clock, hz times a second on
	 * average. */
	bool use_cycles;
	struct pp_sample_timer *timers; /* borrowed; by CPU, for the program */
	struct perf_opener *opener;	/* borrowed; NULL: the calling process opens the events */
};

/* Creates the events. */
int cpu_events_new(const struct cpu_events_options *options, struct cpu_events **ret_events);
void cpu_events_free(struct cpu_events *events);
DEFINE_OWNED(struct cpu_events, cpu_events)

/* Opens events on CPUs that came online and closes those of CPUs that went offline.  Call it now
 * and then. Returns 0; -errno of the first CPU that failed (-ENOENT: no such PMU event). */
int cpu_events_follow(struct cpu_events *events);
/* Opens all CPUs' events anew with another rate, before the old ones are closed.  Returns 0;
 * -errno: all go on at the old rate. */
int cpu_events_set_hz(struct cpu_events *events, uint32_t hz);
/* Returns a descriptor that is readable when it is time for cpu_events_vary(). */
int cpu_events_fd(const struct cpu_events *events);
/* Starts the timers of some CPUs anew, CPU_EVENTS_VARIED at most. */
void cpu_events_vary(struct cpu_events *events);
/* Returns the number of CPUs that are sampled. */
uint32_t cpu_events_count(const struct cpu_events *events);

#endif
