/* SPDX-License-Identifier: BSD-2-Clause */
/* Tells by the kernel's BTF which tracepoints it has, and which arguments some of them take. */
#ifndef ATTACH_TRACEPOINTS_H
#define ATTACH_TRACEPOINTS_H

#include <stdbool.h>
#include <stddef.h>

/* Returns 0: programs can be attached to the tracepoint; -ENOENT: there is none of this name,
 * `near` has the nearest one or ""; -EPERM: no program of ours may run there, `why` says why;
 * -errno. */
int tracepoint_check(const char *group, const char *name, char *near, size_t near_size, char *why,
		     size_t why_size);

struct btf;

/* Of mark_victim, which fires when the kernel has chosen a process to end for want of memory. */
enum mark_victim {
	MARK_VICTIM_NONE, /* there is none, or it has arguments that we do not know */
	MARK_VICTIM_PID,  /* (int pid): a thread's id, up to 6.8 */
	MARK_VICTIM_TASK, /* (struct task_struct *task, uid_t uid): 6.9 and later */
};
enum mark_victim mark_victim_arguments(const struct btf *kernel);

/* Returns whether cgroup_attach_task has (dst_cgrp, path, task, threadgroup): since 4.18. */
bool cgroup_attach_tells_task(const struct btf *kernel);

/* Returns whether the last argument of sched_switch is the state in which the thread was switched
 * out: from 5.18 on (preempt, prev, next, prev_state).  False before that, and for any other
 * order. */
bool sched_switch_tells_state(const struct btf *kernel);

#endif
