/* SPDX-License-Identifier: BSD-2-Clause */
/* What the scheduler itself says of a process's time on the CPU: an independent truth.
 * Source: proc_pid_stat(5); Documentation/scheduler/sched-stats.rst for /proc/PID/task/TID/schedstat,
 * which kernels without CONFIG_SCHED_INFO lack. */
#ifndef DISCOVER_SCHEDULER_TIMES_H
#define DISCOVER_SCHEDULER_TIMES_H

#include <stdbool.h>
#include <stdint.h>

/* Threads whose schedstat is read at most: each costs some microseconds. */
#define SCHEDULER_TIMES_THREADS 64U

struct scheduler_times {
	uint64_t start_ns;     /* of the process; tells it from an earlier one of its pid */
	uint64_t stat_ns;      /* of all threads, exited ones too; in clock ticks (10 ms) */
	uint64_t schedstat_ns; /* of the threads that live now; exact */
	uint32_t threads;      /* of schedstat_ns */
	bool has_schedstat;    /* of all of them */
};

/* Pure.  The first field of a schedstat file, ns.  0 or -EBADMSG. */
int schedstat_parse(const char *text, uint64_t *ret_cpu_ns);

/* 0; -ESRCH; -EBADMSG; -errno. */
int scheduler_times_read(uint32_t tgid, struct scheduler_times *ret_times);

/* ns between two readings of one process, the exact ones where both have them.  has_exits: a thread has
 * exited between them. */
uint64_t scheduler_times_between(const struct scheduler_times *before,
				 const struct scheduler_times *after, bool has_exits);

#endif
