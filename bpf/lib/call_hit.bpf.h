/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* One hit of a probe that an interpreter has at its functions and lines: which site it is, what the
 * probe says, and a walk of the frames that it is in. */
#ifndef BPF_LIB_CALL_HIT_H
#define BPF_LIB_CALL_HIT_H

#include "lib/frames.bpf.h"
#include "lib/maps.bpf.h"
#include "lib/user_probe.bpf.h"
#include "lib/user_registers.bpf.h"

#include <pyprofd/calls.h>

/* By PP_CALL_EVENTS times the cookie of the link that was hit, and enum pp_call_event (agent).
 * Weak: files of one object have it together. */
__weak MAP(call_sites, ARRAY, (PP_CALL_EVENTS * PP_CALL_SITES_MAX), __u32, struct pp_call_site);

/* One hit, while it is handled. */
struct call_hit {
	const struct pp_call_site *site;
	struct task_struct *task;
	struct pp_call_thread *thread; /* of calls; NULL: its stack is not known */
	__u64 now_ns;
	__u64 start_time;
	__u64 names; /* hash of the names that the probe gives, never 0 */
	__u64 line;
	__u32 tid, tgid;
	__u32 event; /* enum pp_call_event */
};

/* ---- arguments ---- */

#if defined(__TARGET_ARCH_arm64)
#define REGISTER_AT(number) ((number) * 8U) /* struct user_pt_regs: x0 .. x30, sp */
#define REGISTERS 32U
static __always_inline __u64 register_at(__u32 number)
{
	return REGISTER_AT(number & (REGISTERS - 1));
}
#else
#define REGISTERS 16U
/* By DWARF number: psABI x86-64 figure 3.36. */
static const __u8 register_offset[REGISTERS] = {
	__builtin_offsetof(struct pt_regs, rax), __builtin_offsetof(struct pt_regs, rdx),
	__builtin_offsetof(struct pt_regs, rcx), __builtin_offsetof(struct pt_regs, rbx),
	__builtin_offsetof(struct pt_regs, rsi), __builtin_offsetof(struct pt_regs, rdi),
	__builtin_offsetof(struct pt_regs, rbp), __builtin_offsetof(struct pt_regs, rsp),
	__builtin_offsetof(struct pt_regs, r8),	 __builtin_offsetof(struct pt_regs, r9),
	__builtin_offsetof(struct pt_regs, r10), __builtin_offsetof(struct pt_regs, r11),
	__builtin_offsetof(struct pt_regs, r12), __builtin_offsetof(struct pt_regs, r13),
	__builtin_offsetof(struct pt_regs, r14), __builtin_offsetof(struct pt_regs, r15),
};
static __always_inline __u64 register_at(__u32 number)
{
	return register_offset[number & (REGISTERS - 1)];
}
#endif

/* Reads a register; the verifier allows only constant offsets from the context itself. */
static __always_inline __u64 register_of(void *ctx, __u32 number)
{
	__u64 value = 0;

	bpf_probe_read_kernel(&value, sizeof(value), (const char *)ctx + register_at(number));
	return value;
}

static __always_inline __u64 argument(void *ctx, const struct pp_probe_arg *arg)
{
	__u64 value = register_of(ctx, arg->base);

	if (arg->kind == PP_ARG_MEMORY) {
		__u64 address = value + arg->value;

		value = 0;
		if (arg->bytes == 4)
			bpf_probe_read_user(&value, 4, (const void *)address);
		else
			bpf_probe_read_user(&value, 8, (const void *)address);
	}
	return arg->bytes == 4 ? (__u32)value : value;
}

/* The addresses of a function's names tell it apart, and the first bytes of its own name whether
 * the memory was used again for another one. */
static __always_inline void take_names(struct call_hit *h, void *ctx)
{
	__u64 file = argument(ctx, &h->site->arg[PP_CALL_ARG_FILE]);
	__u64 name = argument(ctx, &h->site->arg[PP_CALL_ARG_NAME]);
	__u64 head[PP_CALL_NAME_BYTES / 8] = {};

	bpf_probe_read_user_str(head, sizeof(head), (const void *)name);
	h->line = argument(ctx, &h->site->arg[PP_CALL_ARG_LINE]);
	h->names = hash_mix(hash_mix(hash_mix(file, name), head[0]), head[1]) | 1;
}

/* ---- which site ---- */

static __always_inline __u32 site_number(void *ctx)
{
	if (bpf_core_enum_value_exists(enum bpf_func_id, BPF_FUNC_get_attach_cookie))
		return bpf_get_attach_cookie(ctx);
	return 0; /* there is one interpreter file */
}

/* Returns false when the site is not used (yet). */
static __always_inline bool hit_take(struct call_hit *h, void *ctx, enum pp_call_event event)
{
	struct task_struct *task = task_current();
	__u32 number;
	__u64 thread;

	h->now_ns = bpf_ktime_get_ns();
	h->event = event;
	number = PP_CALL_EVENTS * site_number(ctx) + event;
	h->site = bpf_map_lookup_elem(&call_sites, &number);
	if (!h->site || !h->site->is_used)
		return false;
	thread = bpf_get_current_pid_tgid();
	h->tid = (__u32)thread;
	h->tgid = thread >> 32;
	h->task = task;
	h->start_time = CURRENT_READ(task, start_time);
	take_names(h, ctx);
	return true;
}

/* ---- the frames that it is in ---- */

/* Each takes 8 frames (walk.bpf.c).  Not by walk_python_only(): before Linux 6.0 its call would be
 * one too many for the stack. */
#define CALLER_TURNS (PP_CALL_CALLERS_MAX / 8 + 1)

/* Walks the Python frames of the current thread; w is its. */
static __always_inline void walk_frames(struct call_hit *h, struct pp_walk *w, __u32 slot,
					void *ctx, bool wants_all)
{
	struct task_struct *task = h->task;

	if (take_user_registers(w, task, ctx, true))
		return;
	w->thread_pointer = CURRENT_READ(task, TASK_THREAD_POINTER);
	if (walk_python_begin(slot))
		return;
	for (__u32 i = 0; i < CALLER_TURNS; i++)
		if (walk_python_steps(slot) || !wants_all)
			break;
}

static __always_inline __u64 leaf_code(const struct pp_walk *w)
{
	/* Its names could not be read: the call counts all the same, under no name. */
	if (!w->python_count || w->out.frame[0].kind != PP_FRAME_PYTHON)
		return hash_mix(w->tid, w->started_ns) | 1;
	return w->out.frame[0].where;
}

#endif
