/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Finds return addresses that the kernel has replaced.  A function with a return probe, ours or
 * anybody's, returns to a trampoline in the [uprobes] mapping; the kernel keeps its address. */
#ifndef BPF_LIB_RETURN_PROBE_H
#define BPF_LIB_RETURN_PROBE_H

#include "lib/maps.bpf.h"
#include "lib/return_instance.bpf.h"

/* Replaces w->pc, which was read at the address `at` of the stack (aarch64: at the function's entry
 * sp was there).  Returns nonzero, with nothing done, when the kernel has replaced none there. */
__noinline int true_return_address(__u32 slot, __u64 at)
{
	struct pp_walk *w = walk_get(slot);
	struct task_struct *task = (struct task_struct *)bpf_get_current_task();
	struct return_instance *instance = BPF_CORE_READ(task, utask, return_instances);

	if (!w)
		return 1;
	for (__u32 i = 0; i < PP_MAX_RETURNS && instance; i++) {
		struct pp_return found;

		return_read(instance, &found);
		if (found.stack == at) {
			w->pc = found.address;
			return !found.address;
		}
		instance = BPF_CORE_READ(instance, next);
	}
	return 1;
}

#endif
