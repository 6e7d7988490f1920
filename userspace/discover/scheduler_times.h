/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads a process's CPU time from the scheduler, as an independent truth.
 * Source: proc_pid_stat(5); Documentation/scheduler/sched-stats.rst for
 * /proc/PID/task/TID/schedstat, which kernels without CONFIG_SCHED_INFO do not have. */
#ifndef DISCOVER_SCHEDULER_TIMES_H
#define DISCOVER_SCHEDULER_TIMES_H

#include <stdbool.h>
#include <stdint.h>

/* The most threads of which we read schedstat: each costs some microseconds. */
#define SCHEDULER_TIMES_THREADS 64U

struct scheduler_times {
	uint64_t start_ns;     /* of the process; tells it from an earlier one with the same pid */
	uint64_t stat_ns;      /* of all threads, exited ones included; in clock ticks (10 ms) */
	uint64_t schedstat_ns; /* of the threads that live now; exact */
	uint32_t threads;      /* how many threads are in schedstat_ns */
	bool has_schedstat;    /* all threads have one */
};

/* Parses the first field of a schedstat file, in ns. Returns 0 or -EBADMSG. */
int schedstat_parse(const char *text, uint64_t *ret_cpu_ns);

/* Returns 0; -ESRCH; -EBADMSG; -errno. */
int scheduler_times_read(uint32_t tgid, struct scheduler_times *ret_times);

/* Returns the CPU time in ns between two readings of one process, from the exact times where both
 * readings have them. has_exits: a thread exited between the readings. */
uint64_t scheduler_times_between(const struct scheduler_times *before,
				 const struct scheduler_times *after, bool has_exits);

#endif
