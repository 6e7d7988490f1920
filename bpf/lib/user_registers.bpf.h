/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Takes the registers with which the thread entered the kernel, wherever the sample hit. */
#ifndef BPF_LIB_USER_REGISTERS_H
#define BPF_LIB_USER_REGISTERS_H

#include "lib/frames.bpf.h"

#if defined(__TARGET_ARCH_arm64)
#define user_registers user_pt_regs
#define SAVED_MODE pstate
#define KERNEL_MODE 5U /* EL1h */
#define THREAD_BYTES 16384U
#define STACK_TOP_PADDING 0U

static __always_inline bool registers_are_user(const struct user_registers *regs)
{
	return (regs->pstate & 0xf) == 0; /* EL0t */
}
static __always_inline bool registers_are_compat(const struct user_registers *regs)
{
	return regs->pstate >> 4 & 1;
}
/* Sets PP_REG_COUNT registers; returns the frame pointer. */
static __always_inline __u64 registers_by_number(const struct user_registers *regs, __u64 *r)
{
#pragma unroll
	for (int i = 0; i < 31; i++)
		r[i] = regs->regs[i];
	r[PP_REG_SP] = regs->sp;
	return regs->regs[29];
}
static __always_inline __u64 registers_pc(const struct user_registers *regs)
{
	return regs->pc;
}
static __always_inline bool registers_are_of_exec(const struct user_registers *regs)
{
	return false; /* the number of the call lies elsewhere */
}
#else
#define user_registers pt_regs
#define SAVED_MODE cs
#define KERNEL_MODE 0U
#define THREAD_BYTES 16384U /* arch/x86/include/asm/page_64_types.h, without KASAN */
#define STACK_TOP_PADDING 0U
#define USER32_CS 0x23U
#define SYSCALL_EXECVE 59U
#define SYSCALL_EXECVEAT 322U

static __always_inline bool registers_are_user(const struct user_registers *regs)
{
	return regs->cs & 3;
}
static __always_inline bool registers_are_compat(const struct user_registers *regs)
{
	return (__u16)regs->cs == USER32_CS;
}
/* Sets PP_REG_COUNT registers (psABI x86-64 figure 3.36); returns the frame pointer. */
static __always_inline __u64 registers_by_number(const struct user_registers *regs, __u64 *r)
{
	r[0] = regs->rax;
	r[1] = regs->rdx;
	r[2] = regs->rcx;
	r[3] = regs->rbx;
	r[4] = regs->rsi;
	r[5] = regs->rdi;
	r[6] = regs->rbp;
	r[7] = regs->rsp;
	r[8] = regs->r8;
	r[9] = regs->r9;
	r[10] = regs->r10;
	r[11] = regs->r11;
	r[12] = regs->r12;
	r[13] = regs->r13;
	r[14] = regs->r14;
	r[15] = regs->r15;
	return regs->rbp;
}
static __always_inline __u64 registers_pc(const struct user_registers *regs)
{
	return regs->rip;
}
static __always_inline bool registers_are_of_exec(const struct user_registers *regs)
{
	return regs->orig_rax == SYSCALL_EXECVE || regs->orig_rax == SYSCALL_EXECVEAT;
}
#endif

static __always_inline void registers_take(struct pp_walk *w, const struct user_registers *regs)
{
	w->fp = registers_by_number(regs, w->registers);
	w->pc = registers_pc(regs);
	w->sp = w->registers[PP_REG_SP];
	w->is_exec = registers_are_of_exec(regs);
}

/* Before 5.15: the stack's top has no padding on x86-64 and aarch64 (task_pt_regs()). */
static __always_inline const void *registers_at_top(struct task_struct *task)
{
	return (const char *)BPF_CORE_READ(task, stack) + THREAD_BYTES - STACK_TOP_PADDING -
	       sizeof(struct user_registers);
}

/* Returns the current thread's registers at the top of the kernel stack.  bpf_task_pt_regs (5.15)
 * knows the layout of every kernel. */
static __always_inline const void *saved_registers(struct task_struct *task)
{
	if (bpf_core_enum_value_exists(enum bpf_func_id, BPF_FUNC_task_pt_regs))
		return (const void *)bpf_task_pt_regs((void *)bpf_get_current_task_btf());
	return registers_at_top(task);
}

#define SAVED_WORDS (sizeof(struct user_registers) / 8)

/* Copies the sampled registers word by word: the verifier wants constant offsets from the
 * context. */
static __always_inline void copy_sampled(struct user_registers *to, struct bpf_perf_event_data *ctx)
{
	const volatile __u64 *from = (const volatile __u64 *)ctx;

#pragma unroll
	for (__u32 i = 0; i < SAVED_WORDS; i++) {
		((__u64 *)to)[i] = from[i];
		FORGET();
	}
}

static __always_inline int use_registers(struct pp_walk *w, const struct user_registers *regs)
{
	if (!registers_are_user(regs)) {
		w->stop = PP_STOP_NO_USER;
		return 1;
	}
	if (registers_are_compat(regs)) {
		w->stop = PP_STOP_COMPAT;
		return 1;
	}
	registers_take(w, regs);
	w->is_leaf = 1;
	w->is_in_kernel = 1;
	return 0;
}

static __always_inline void copy_saved(struct user_registers *to, struct task_struct *task)
{
	if (bpf_probe_read_kernel(to, sizeof(*to), saved_registers(task)))
		to->SAVED_MODE = KERNEL_MODE;
}

/* Does the same for another thread, which the verifier must know as a thread. */
static __always_inline void copy_saved_of(struct user_registers *to, struct task_struct *task)
{
	const void *from;

	if (bpf_core_enum_value_exists(enum bpf_func_id, BPF_FUNC_task_pt_regs))
		from = (const void *)bpf_task_pt_regs(task);
	else
		from = registers_at_top(task);
	if (bpf_probe_read_kernel(to, sizeof(*to), from))
		to->SAVED_MODE = KERNEL_MODE;
}

/* Sets w's native state.  Returns nonzero when there is no user stack; w->stop says why. */
static __always_inline int take_user_registers(struct pp_walk *w, struct task_struct *task,
					       struct bpf_perf_event_data *ctx, bool hit_user)
{
	struct user_registers *regs = (void *)w->saved;

	_Static_assert(sizeof(*regs) <= sizeof(w->saved), "room");
	if (hit_user)
		copy_sampled(regs, ctx);
	else
		copy_saved(regs, task);
	if (use_registers(w, regs))
		return 1;
	w->is_in_kernel = !hit_user;
	return 0;
}

#endif
