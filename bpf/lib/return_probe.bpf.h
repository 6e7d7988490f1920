/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Finds return addresses that the kernel has replaced.  A function with a return probe, ours or
 * anybody's, returns to a trampoline in the [uprobes] mapping; the kernel keeps its address. */
#ifndef BPF_LIB_RETURN_PROBE_H
#define BPF_LIB_RETURN_PROBE_H

#include "lib/kernel.bpf.h"
#include "lib/maps.bpf.h"

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
#define TRAMPOLINE_BYTES 32U
#define TRAMPOLINE_STEPS 12U
#define TRAMPOLINES_SEEN 4U /* there is one in each 4 GiB with such breakpoints */

/* ---- x86-64: what the kernel runs in user space around its system calls ---- */

#if defined(__TARGET_ARCH_arm64)
static __always_inline int leave_breakpoint_call(struct pp_walk *w, struct task_struct *task)
{
	return 1;
}
static __always_inline int trampoline_depth(__u64 start, __u64 pc, __u64 zero)
{
	return 0;
}
static __always_inline void step_back_to_breakpoint(struct pp_walk *w)
{
}
#else
#define CODE_INT3 0xccU

/* Returns how many bytes a trampoline has on the stack when it is at pc: it saves registers, enters
 * the kernel and restores them (arch/x86/kernel/uprobes.c: uretprobe_trampoline_entry,
 * uprobe_trampoline_entry).  Returns -1: there is other code.  zero: walk's `zero`, so that the
 * verifier looks at a step once and not with each sum that steps before it can have made. */
__noinline int trampoline_depth(__u64 start, __u64 pc, __u64 zero)
{
	__u8 code[TRAMPOLINE_BYTES] = {};
	__u64 at = zero, depth = zero, end = pc - start;

	if (end >= TRAMPOLINE_BYTES || bpf_probe_read_user(code, sizeof(code), (const void *)start))
		return -1;
	for (__u32 i = 0; i < TRAMPOLINE_STEPS; i++) {
		__u32 byte;

		at &= TRAMPOLINE_BYTES - 1;
		depth &= 127;
		if (at == end)
			return depth;
		byte = code[at++];
		if (byte == 0x41) /* REX.B: r8 to r15 */
			byte = code[at++ & (TRAMPOLINE_BYTES - 1)];
		if (byte >> 3 == 0x50 >> 3) /* push */
			depth += 8;
		else if (byte >> 3 == 0x58 >> 3) /* pop */
			depth -= 8;
		else if (byte == 0x48) /* mov $number, %rax */
			at += 6;
		else if (byte == 0x0f) /* syscall */
			at += 1;
		else if (byte == 0xf3) /* endbr64 */
			at += 3;
		else
			return -1;
	}
	return -1;
}

/* struct uprobe_trampoline as it is where there is one (arch/x86/kernel/uprobes.c).  Not by CO-RE:
 * where vmlinux has no such type libbpf looks for it in modules, which takes CAP_SYS_ADMIN. */
struct breakpoint_trampoline {
	struct breakpoint_trampoline *next, **pprev;
	__u64 start;
};

/* A breakpoint at a nop of five bytes becomes a call of a trampoline, from 6.18 on: goes back
 * behind that call.  Returns nonzero when w is in none. */
static __always_inline int leave_breakpoint_call(struct pp_walk *w, struct task_struct *task)
{
	struct breakpoint_trampoline trampoline = {};
	__u64 pc = 0;
	int depth;

	if (!bpf_core_field_exists(struct uprobes_state, head_tramps))
		return 1;
	trampoline.next = (void *)BPF_CORE_READ(task, mm, uprobes_state.head_tramps.first);
	for (__u32 i = 0; i < TRAMPOLINES_SEEN && trampoline.next; i++) {
		if (bpf_probe_read_kernel(&trampoline, sizeof(trampoline), trampoline.next))
			return 1;
		if (w->pc - trampoline.start < TRAMPOLINE_BYTES)
			break;
	}
	if (w->pc - trampoline.start >= TRAMPOLINE_BYTES)
		return 1;
	depth = trampoline_depth(trampoline.start, w->pc, w->zero);
	if (depth < 0 || bpf_probe_read_user(&pc, sizeof(pc), (const void *)(w->sp + depth)))
		return 1;
	w->pc = pc;
	w->sp += depth + 8;
	return 0;
}

/* Registers that functions save (psABI x86-64): rbx, rbp, r12 to r15. */
static __always_inline bool is_pushed(const struct pp_walk *w, __u64 value)
{
	return value == w->registers[3] || value == w->registers[6] || value == w->registers[12] ||
	       value == w->registers[13] || value == w->registers[14] || value == w->registers[15];
}

/* int3 leaves pc behind its byte until handle_swbp() (kernel/events/uprobes.c) sets it back, and it
 * is there again once the kernel has emulated an instruction of one byte.  Between them lies a
 * `push`, which is seen on the stack. */
static __always_inline void step_back_to_breakpoint(struct pp_walk *w)
{
	__u8 code[2] = {};
	__u64 top = 0;

	if (!w->is_in_kernel ||
	    bpf_probe_read_user(code, sizeof(code), (const void *)(w->pc - 1)) ||
	    code[0] != CODE_INT3)
		return;
	/* It is set back, and the byte before is what fills the room between functions. */
	if (code[1] == CODE_INT3)
		return;
	if (!bpf_probe_read_user(&top, sizeof(top), (const void *)w->sp) && is_pushed(w, top))
		return;
	w->pc--;
}
#endif

/* ---- code of the kernel's in user space ---- */

/* In the trampoline to which a function has returned that has a return probe. */
static __always_inline int leave_return_trampoline(struct pp_walk *w, struct task_struct *task,
						   __u64 start)
{
	struct return_instance *instance = BPF_CORE_READ(task, utask, return_instances);
	int depth = trampoline_depth(start, w->pc, w->zero);
	struct pp_return found = {};
	__u64 sp, pc = 0;

	if (instance)
		return_read(instance, &found);
	sp = found.stack + RETURN_ADDRESS_BELOW_CFA;
	/* Inside of its system call the kernel takes away what was saved. */
	if (depth > 0 && w->sp + depth != sp && w->sp != sp) {
		/* The kernel has handled it: the first word that was saved is the address now
		 * (sys_uretprobe(), from 6.11 on), and the newest call is another one. */
		sp = w->sp + depth;
		if (bpf_probe_read_user(&pc, sizeof(pc), (const void *)(sp - 8)))
			return 1;
		found.address = pc;
	}
	if (!found.address)
		return 1;
	w->pc = found.address;
	w->sp = sp;
	w->is_leaf = 0;
	return 0;
}

/* Sets w to what the program believes where the kernel lets it run code of its own: in the copy of
 * an instruction, in the trampoline of a function that has just returned, or at a breakpoint.  w is
 * at the leaf. */
__noinline int leave_uprobes_page(__u32 slot)
{
	struct pp_walk *w = walk_get(slot);
	struct task_struct *task = (struct task_struct *)bpf_get_current_task();
	__u64 copy, page;

	if (!w)
		return 1;
	step_back_to_breakpoint(w);
	if (!leave_breakpoint_call(w, task))
		return 0;
	if (!bpf_core_field_exists(struct xol_area, vaddr))
		return 1;
	page = BPF_CORE_READ(task, mm, uprobes_state.xol_area, vaddr);
	if (!page || w->pc - page >= UPROBES_PAGE_BYTES)
		return 1;
	/* The first copy's room has the trampoline. */
	if (w->pc - page < UPROBES_COPY_BYTES)
		return leave_return_trampoline(w, task, page);
	copy = BPF_CORE_READ(task, utask, xol_vaddr);
	if (w->pc - copy >= UPROBES_COPY_BYTES)
		return 1;
	/* Behind the instruction once it was run; no branch is run there. */
	w->pc += BPF_CORE_READ(task, utask, vaddr) - copy;
	return 0;
}

#endif
