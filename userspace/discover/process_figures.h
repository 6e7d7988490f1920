/* SPDX-License-Identifier: BSD-2-Clause */
/* What the kernel says a process takes: resident memory, from /proc/PID/status, and CPU time, from
 * the scheduler, as an independent truth.  Source: proc_pid_status(5), proc_pid_stat(5);
 * Documentation/scheduler/sched-stats.rst for /proc/PID/task/TID/schedstat, which kernels without
 * CONFIG_SCHED_INFO do not have. */
#ifndef DISCOVER_PROCESS_FIGURES_H
#define DISCOVER_PROCESS_FIGURES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct resident_memory {
	uint64_t anonymous_bytes; /* RssAnon: heap, stacks, private pages that were written */
	uint64_t file_bytes;	  /* RssFile: mapped files, programs and libraries among them */
	uint64_t shared_bytes;	  /* RssShmem: shared memory, tmpfs */
	uint64_t peak_bytes;	  /* VmHWM: the most that was resident in all */
};

/* Parses a text without reading /proc. Its line `Name:` is chosen by the process. Returns 0;
 * -ENODATA: the task has no memory of its own (a kernel thread, or one that has ended); -EBADMSG:
 * a figure is missing or is no number of kB. */
int resident_memory_parse(const char *text, size_t size, struct resident_memory *ret_memory);
/* Reads and parses the file of a process. Returns as resident_memory_parse(); -ESRCH; -errno. */
int resident_memory_read(uint32_t pid, struct resident_memory *ret_memory);

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
