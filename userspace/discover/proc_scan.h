/* SPDX-License-Identifier: BSD-2-Clause */
/* Walks /proc, and reads what it says of one process.  Processes may vanish at any moment: -ESRCH.
 * Source: proc_pid_stat(5), proc_pid_status(5). */
#ifndef DISCOVER_PROC_SCAN_H
#define DISCOVER_PROC_SCAN_H

#include "discover/process.h"
#include "discover/process_table.h"

/* /proc/PID/stat.  start_ns is CLOCK_MONOTONIC, rounded down to a clock tick (10 ms); a host that
 * was suspended since then shows it too early by the time it slept. */
struct proc_stat {
	uint32_t pid, ppid;
	char comm[PP_COMM_BYTES]; /* cut, as the kernel does for all but its own threads */
	bool is_kernel_thread;
	bool is_zombie; /* or dead: none of its threads is left */
	uint64_t start_ns;
	uint64_t cpu_ns; /* of all its threads, exited ones too; in clock ticks as well */
};

/* /proc/PID/status. */
struct proc_status {
	uint32_t tgid, ppid;
	uint32_t uid;	    /* the effective one, as ps shows it */
	uint32_t inner_pid; /* in the innermost pid namespace */
	uint64_t switches;  /* how often it has left a CPU; 0: not told */
	bool is_runnable;   /* or runs */
	bool has_ended;	    /* nobody has taken note of it yet, or other threads go on */
};

/* Pure.  ticks_per_sec: sysconf(_SC_CLK_TCK); boot_offset_ns: CLOCK_BOOTTIME - CLOCK_MONOTONIC.
 * Return 0 or -EBADMSG. */
int proc_stat_parse(const char *text, size_t size, uint64_t ticks_per_sec, uint64_t boot_offset_ns,
		    struct proc_stat *ret_stat);
int proc_status_parse(const char *text, size_t size, struct proc_status *ret_status);

/* Return 0; -ESRCH; -EBADMSG; -errno. */
int proc_stat_read(uint32_t pid, struct proc_stat *ret_stat);
int proc_status_read(uint32_t pid, struct proc_status *ret_status);
/* The same of one thread. */
int thread_status_read(uint32_t tgid, uint32_t tid, struct proc_status *ret_status);

/* Calls back for each process, kernel threads and zombies included, in the order of pids.  A
 * callback's result other than 0 ends the scan and is returned.  Else returns 0 or -errno. */
int proc_scan(int (*callback)(void *context, const struct proc_stat *stat), void *context);

/* Fills uid, inner_pid, comm, cgroup, container_id; ppid where it is 0 (the one that a fork event
 * told stays, /proc shows who adopted an orphan).  Sets details_read.
 * -ESRCH: gone, or another process has its pid now; nothing is changed then. */
int process_read_details(struct process_table *table, struct process *process);

/* 0; -ESRCH. */
int thread_comm_read(uint32_t tgid, uint32_t tid, char ret_comm[PP_COMM_BYTES]);

#endif
