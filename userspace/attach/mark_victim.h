/* SPDX-License-Identifier: BSD-2-Clause */
/* Tells which arguments the kernel's tracepoint mark_victim has, which fires when the kernel has
 * chosen a process to end for want of memory. */
#ifndef ATTACH_MARK_VICTIM_H
#define ATTACH_MARK_VICTIM_H

struct btf;

enum mark_victim {
	MARK_VICTIM_NONE, /* there is none, or it has arguments that we do not know */
	MARK_VICTIM_PID,  /* (int pid): a thread's id, up to 6.8 */
	MARK_VICTIM_TASK, /* (struct task_struct *task, uid_t uid): 6.9 and later */
};
enum mark_victim mark_victim_arguments(const struct btf *kernel);

#endif
