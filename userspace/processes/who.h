/* SPDX-License-Identifier: BSD-2-Clause */
/* Finds the process that a counter belongs to. */
#ifndef PROCESSES_WHO_H
#define PROCESSES_WHO_H

#include <stdint.h>

#include <pyprofd/process.h>

struct pp_count_key;
struct process;
struct process_table;

struct who {
	struct process *process;      /* NULL: a kernel thread, or gone before anybody could look */
	char comm[PP_COMM_BYTES + 1]; /* the process's name, else the thread's; "": unknown */
};
/* Looks the process up, and reads its details from /proc on the first call for it. */
void who_find(struct process_table *processes, struct pp_process_id id, uint32_t tid,
	      struct who *ret_who);
/* Takes over what a sample tells of its process: what it was called, and as whom it ran, at that
 * moment. */
void who_follow(struct who *who, const struct pp_count_key *key);
/* Has the details of a process, and whether filters want it, found out again: it is in another
 * cgroup.  Returns the process; NULL: it is not known, or has ended. */
struct process *who_moved(struct process_table *processes, uint32_t tgid);
/* Reads what /proc says about a process, unless it was read before or the process has ended. */
void who_read_details(struct process_table *processes, struct process *process);

#endif
