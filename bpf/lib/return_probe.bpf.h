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

#define UPROBES_PAGE_BYTES 4096U
#define UPROBES_COPY_BYTES 128U /* UPROBE_XOL_SLOT_BYTES, 64 on aarch64 */

/* Sets w to what the program believes where the kernel lets it run code of its own: in the copy of
 * an instruction, or in the trampoline of a function that has just returned.  w is at the leaf. */
__noinline int leave_uprobes_page(__u32 slot)
{
	struct pp_walk *w = walk_get(slot);
	struct task_struct *task = (struct task_struct *)bpf_get_current_task();
	struct return_instance *instance;
	struct pp_return found;
	__u64 copy;

	if (!w || !bpf_core_field_exists(struct xol_area, vaddr))
		return 1;
	if (w->pc - BPF_CORE_READ(task, mm, uprobes_state.xol_area, vaddr) >= UPROBES_PAGE_BYTES)
		return 1;
	copy = BPF_CORE_READ(task, utask, xol_vaddr);
	if (BPF_CORE_READ(task, utask, active_uprobe) && w->pc - copy < UPROBES_COPY_BYTES) {
		/* Behind the instruction once it was run; no branch is run there. */
		w->pc += BPF_CORE_READ(task, utask, vaddr) - copy;
		return 0;
	}
	instance = BPF_CORE_READ(task, utask, return_instances);
	if (!instance)
		return 1;
	return_read(instance, &found);
	if (!found.address)
		return 1;
	w->pc = found.address;
	/* The trampoline may have pushed something. */
	w->sp = found.stack + RETURN_ADDRESS_BELOW_CFA;
	w->is_leaf = 0;
	return 0;
}

#endif
