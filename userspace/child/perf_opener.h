/* SPDX-License-Identifier: BSD-2-Clause */
/* Opens perf events for the agent: by itself where CAP_PERFMON is enough, else through a child that
 * has CAP_SYS_ADMIN (CHILD_EVENTS), so that the agent can give that capability up.  One thread. */
#ifndef CHILD_PERF_OPENER_H
#define CHILD_PERF_OPENER_H

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/cleanup.h"

/* ---- perf_event.c: perf_event_open(2); each event is of one CPU and all processes ---- */

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
	/* Side-band records of mappings (mmap2) alone, with times by CLOCK_MONOTONIC.  hz is not
	 * used. */
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

/* ---- perf_opener.c: by itself, or through the child ---- */

struct perf_opener;

/* Starts the child, where the number in paranoid_path is above PERF_PARANOID_MAX and the caller has
 * CAP_SYS_ADMIN.  program: what the child is, "/proc/self/exe" for the agent's own.  paranoid_path:
 * PERF_PARANOID_PATH.  Returns 0 or -ENOMEM. */
int perf_opener_new(const char *program, const char *paranoid_path,
		    struct perf_opener **ret_opener);
/* Ends the child. */
void perf_opener_free(struct perf_opener *opener);
DEFINE_OWNED(struct perf_opener, perf_opener)

/* Opens an event as perf_event_open_here() does.  opener NULL: in the calling process.  Besides
 * that -ETIME, -EPIPE, -ETIMEDOUT: the child does not answer.  Under no_new_privs a child that
 * replaces it has only what the agent still has. */
int perf_opener_open(struct perf_opener *opener, const struct perf_event_request *request,
		     int *ret_fd);
/* Returns whether a child opens the events. */
bool perf_opener_has_child(const struct perf_opener *opener);

/* The child: it opens nothing but the kinds above, reads nothing foreign, and
 * hands each descriptor to the agent.  Answers requests from CHILD_SOCKET_FD until the agent closes
 * it, and ends the process. */
_Noreturn void perf_child_main(void);

#endif
