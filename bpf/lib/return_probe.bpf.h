/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Finds return addresses that the kernel has replaced.  A function with a return probe, ours or
 * anybody's, returns to a trampoline in the [uprobes] mapping; the kernel keeps its address. */
#ifndef BPF_LIB_RETURN_PROBE_H
#define BPF_LIB_RETURN_PROBE_H

#include "lib/maps.bpf.h"

#define RETURN_INSTANCES_MAX 64U /* MAX_URETPROBE_DEPTH, kernel/events/uprobes.c */

/* Replaces w->pc, which was read as the return address of the frame below w->sp.  Returns nonzero,
 * with nothing done, when the kernel has replaced none there. */
__noinline int true_return_address(__u32 slot)
{
	struct pp_walk *w = walk_get(slot);
	struct task_struct *task = (struct task_struct *)bpf_get_current_task();
	struct return_instance *instance = BPF_CORE_READ(task, utask, return_instances);
	__u64 wanted;

	if (!w || w->is_leaf || !instance)
		return 1;
	wanted = w->sp - RETURN_ADDRESS_BELOW_CFA;
	for (__u32 i = 0; i < RETURN_INSTANCES_MAX && instance; i++) {
		if (BPF_CORE_READ(instance, stack) == wanted) {
			w->pc = BPF_CORE_READ(instance, orig_ret_vaddr);
			return !w->pc;
		}
		instance = BPF_CORE_READ(instance, next);
	}
	return 1;
}

#endif
