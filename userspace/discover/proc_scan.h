/* SPDX-License-Identifier: BSD-2-Clause */
/* Lists the processes in /proc and reads their stat, status and cgroup files.  A process may vanish
 * at any moment: -ESRCH.  Source: proc_pid_stat(5), proc_pid_status(5). */
#ifndef DISCOVER_PROC_SCAN_H
#define DISCOVER_PROC_SCAN_H

#include <dirent.h>
#include <stddef.h>

#include "base/slice.h"
#include "discover/process.h"
#include "discover/process_table.h"

/* Returns the effective user of a process, or the real one where that is root: anybody may start a
 * set-user-ID program.  In a user namespace of somebody else than root that namespace's owner,
 * because he may act there as tens of thousands of users.  Of one of a user's other ids that user
 * (base/who_answers.h).  That of the last fork or exec, where the
 * kernel side has told it, or of the first call of process_user_kept(); of a process that has ended
 * else what the table of processes knows. */
uint32_t process_user(const struct process *process);
/* Keeps what it returns: it is asked for often. */
uint32_t process_user_kept(struct process *process);

/* /proc/PID/stat. start_ns is CLOCK_MONOTONIC, rounded down to a clock tick (10 ms). When the host
 * was suspended after the start, start_ns is too early by the time of the suspension. */
struct proc_stat {
	uint32_t pid, ppid;
	char comm[PP_COMM_BYTES]; /* truncated, as by the kernel for all but its own threads */
	bool is_kernel_thread;
	bool is_zombie; /* or dead: it has no thread left */
	uint64_t start_ns;
	uint64_t cpu_ns; /* of all its threads, exited ones included; in steps of a clock tick */
};

/* /proc/PID/status. */
struct proc_status {
	uint32_t tgid, ppid;
	uint32_t uid;	    /* the effective one, as ps shows it */
	uint32_t real_uid;  /* who started it, where a set-user-ID program runs */
	uint32_t inner_pid; /* its pid in the innermost pid namespace */
	uint64_t switches;  /* how often it was switched out; 0: not known */
	bool is_runnable;   /* running, or ready to run */
	bool has_ended;	    /* a zombie: nobody has waited for it yet, or other threads go on */
};

/* Parse a text without reading /proc. ticks_per_sec: sysconf(_SC_CLK_TCK); boot_offset_ns:
 * CLOCK_BOOTTIME - CLOCK_MONOTONIC. Return 0 or -EBADMSG. */
int proc_stat_parse(const char *text, size_t size, uint64_t ticks_per_sec, uint64_t boot_offset_ns,
		    struct proc_stat *ret_stat);
int proc_status_parse(const char *text, size_t size, struct proc_status *ret_status);

/* Read and parse the file of a process. Return 0; -ESRCH; -EBADMSG; -errno. */
int proc_stat_read(uint32_t pid, struct proc_stat *ret_stat);
int proc_status_read(uint32_t pid, struct proc_status *ret_status);
/* Reads the status file of one thread. */
int thread_status_read(uint32_t tgid, uint32_t tid, struct proc_status *ret_status);

/* Calls back for each process, kernel threads and zombies included, in the order of pids. A result
 * other than 0 from the callback ends the scan and is returned. Otherwise returns 0 or -errno. */
int proc_scan(int (*callback)(void *context, const struct proc_stat *stat), void *context);
/* The same in slices.  All zero begins; proc_scanning_end() in any case. */
struct proc_scanning {
	DIR *dir; /* owned */
};
/* Goes on until the slice is over, and by one process at least.  Returns 1: there may be more; else
 * as proc_scan(). */
int proc_scan_step(struct proc_scanning *scanning,
		   int (*callback)(void *context, const struct proc_stat *stat), void *context,
		   const struct slice *slice);
void proc_scanning_end(struct proc_scanning *scanning);

/* Fills uid, inner_pid, comm, cgroup and container_id, and ppid where it is 0. A ppid that came
 * with a fork event stays, because /proc shows who adopted an orphan. Sets details_read.
 * -ESRCH: the process is gone or its pid was reused; then nothing changes. */
int process_read_details(struct process_table *table, struct process *process);

/* Reads the name of a thread. Returns 0; -ESRCH. */
int thread_comm_read(uint32_t tgid, uint32_t tid, char ret_comm[PP_COMM_BYTES]);

/* ---- /proc/PID/cgroup: cgroups(7); the runtimes' naming ---- */

#define CGROUP_PATH_MAX_BYTES 4096U /* NUL included */
#define CONTAINER_ID_BYTES 65U	    /* 64 hex digits and a NUL */

struct container {
	char cgroup[CGROUP_PATH_MAX_BYTES]; /* "/…"; "" when no line could be read */
	/* "" outside of containers, and for lxc, which uses names instead of ids */
	char id[CONTAINER_ID_BYTES];
};

/* Picks one line of the file: if any line has a container id, only from those.  Of these it takes
 * that of cgroup v2 ("0::"), else v1's name=systemd, else pids, else the first.  A path of "/" is
 * taken only when there is no other, because on hybrid hosts all processes may be in v2's root. */
void container_parse(const char *text, size_t size, struct container *ret_container);

/* Returns whether a component of a path, of this size, is a user's service manager
 * (user@UID.service). */
bool cgroup_is_user_manager(const char *part, size_t size);
/* Returns how much of a cgroup's path root has made: users make what they like below their slice
 * and their service manager. */
size_t cgroup_of_root(const char *path);

/* Finds the container id in a cgroup path, in the innermost component that has one, and that root
 * has made: 64 hex digits, alone or after a runtime's prefix (docker-, cri-containerd-, crio-,
 * libpod-, …; also PODSLICE:RUNTIME:ID), with or without ".scope".  A monitor process beside a
 * container (crio-conmon-…) is not counted as inside it.  Returns 0; -ENOENT. */
int container_id_find(const char *cgroup, char ret_id[CONTAINER_ID_BYTES]);

#endif
