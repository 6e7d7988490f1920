/* SPDX-License-Identifier: BSD-2-Clause */
/* The perf events that pyprofd opens: perf_event_open(2).  Each is of one CPU and all processes. */
#ifndef CHILD_PERF_EVENT_H
#define CHILD_PERF_EVENT_H

#include <linux/perf_event.h>
#include <stdint.h>

/* Debian's kernels have a kernel.perf_event_paranoid of 3, Ubuntu's of 4, with which
 * perf_event_open() needs CAP_SYS_ADMIN even where there is CAP_PERFMON (Debian's patch "Allow
 * further restriction of perf_event_open").  This is the most with which CAP_PERFMON is enough. */
#define PERF_PARANOID_MAX 2
#define PERF_PARANOID_PATH "/proc/sys/kernel/perf_event_paranoid"

/* What a record of PERF_EVENT_MAPPINGS ends with. */
#define PERF_EVENT_MAPPINGS_SAMPLE_TYPE (PERF_SAMPLE_TID | PERF_SAMPLE_TIME)

enum perf_event_kind {
	/* cpu-clock with the fixed period 1e9 / hz ns.  Not enabled yet. */
	PERF_EVENT_CPU_CLOCK,
	/* The PMU's cycles with a target frequency of hz. */
	PERF_EVENT_CYCLES,
	/* Side-band records alone, with times by CLOCK_MONOTONIC: executable mappings (mmap2), and
	 * exec (comm).  hz is not used. */
	PERF_EVENT_MAPPINGS,
	PERF_EVENT_KINDS
};

struct perf_event_request {
	uint32_t serial; /* of the exchange with the child; not used here */
	uint32_t kind;	 /* enum perf_event_kind */
	uint32_t cpu;
	uint32_t hz;
};

/* Opens an event in the calling process.  Returns 0 and a descriptor, which the caller closes;
 * -EINVAL: no such kind, or no rate; -ENODEV: the CPU is offline; -ENOENT: no such PMU event;
 * -EACCES, -EPERM; -errno. */
int perf_event_open_here(const struct perf_event_request *request, int *ret_fd);

#endif
