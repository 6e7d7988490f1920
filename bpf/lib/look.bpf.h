/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Looks at a wait that begins: whether it is for the GIL, the key that tells wait sites apart, and
 * the unwind if one is due. */
#ifndef BPF_LIB_LOOK_H
#define BPF_LIB_LOOK_H

#include "lib/thread_state.bpf.h"
#include "lib/threads.bpf.h"

/* ---- the GIL ----
 * Recognises waits for the GIL without symbols: the futex word lies in the GIL's own condition
 * variables and mutexes (CPython: Include/internal/pycore_gil.h of 3.7 to 3.15; docs/gil.md).
 *
 * struct _gil_runtime_state from last_holder on: int locked at 8, switch_number at 16, then cond,
 * mutex, switch_cond, switch_mutex: 2 x (48 + 40) bytes of glibc's; its mutex has 48 on aarch64. */
#define GIL_LOCKED 8U
#define GIL_WAIT_LOW 24U
#if defined(__TARGET_ARCH_arm64)
#define GIL_WAIT_HIGH 216U
#else
#define GIL_WAIT_HIGH 200U
#endif

/* Returns the address of last_holder for the thread whose state's head is in w->state; 0: no GIL
 * that we know.  Up to 3.6 it is that of _PyThreadState_Current. */
static __always_inline __u64 gil_find(const struct pp_walk *w, const struct pp_python *py)
{
	__u64 gil;

	if (py->flags & PP_PYTHON_FREE_THREADED)
		return 0;
	if (py->gil_mode == PP_GIL_CURRENT)
		return w->context.tls[0].address;
	if (py->gil_mode == PP_GIL_RUNTIME)
		return py->runtime + w->context.python_bias + py->gil_offset;
	if (py->interp_gil == PP_NO_OFFSET)
		return 0;
	gil = read_u64(state_field(w, py->ts_interp) + py->interp_gil);
	return gil ? gil + py->gil_holder : 0;
}

/* Returns whether this futex word belongs to the thread's GIL. */
static __always_inline bool gil_owns(const struct pp_thread *t, const struct pp_python *py,
				     __u64 word)
{
	__u64 low = t->gil + GIL_WAIT_LOW, high = t->gil + GIL_WAIT_HIGH;

	if (!t->gil)
		return false;
	/* 3.6 has them elsewhere and those of 2.7 are not known: the range is empty there. */
	if (py->gil_mode == PP_GIL_CURRENT) {
		low = t->python_bias + py->gil_wait_low;
		high = low + py->gil_wait_bytes;
	}
	return word >= low && word < high;
}

/* Returns the thread state of the GIL's holder, 0 if nobody holds it. */
static __always_inline __u64 gil_holder(const struct pp_thread *t, const struct pp_python *py)
{
	__u64 holder[2] = {};

	if (!t->gil || bpf_probe_read_user(holder, sizeof(holder), (const void *)t->gil))
		return 0;
	if (py->gil_mode == PP_GIL_CURRENT)
		return holder[0];
	return (__u32)holder[1] == 1 ? holder[0] : 0;
}

/* Returns the holder's thread id in its own pid namespace; its state's head is in w->state. */
static __always_inline __u32 state_thread_id(const struct pp_walk *w, const struct pp_python *py)
{
	if (py->ts_native_id != PP_NO_OFFSET)
		return state_field(w, py->ts_native_id);
#if defined(__TARGET_ARCH_arm64)
	return 0;
#else
	return read_u64(state_field(w, py->ts_thread_id) + PP_GLIBC_TID_OFFSET);
#endif
}

/* ---- the wait ---- */

/* Which unwind of the thread's own stack is due.  thread_look() itself knows whether that of the
 * GIL's holder is. */
enum look {
	LOOK_HOLDER, /* none: the site is known */
	LOOK_NEW,
	LOOK_AGAIN, /* the site is known, and this use was chosen */
};

/* Defined in look.bpf.c.  Their arguments are numbers, not pointers, so the verifier goes through
 * each function once. */

/* Sets why the current thread waits, from the call in switches[0].call_site; a futex may be the
 * GIL's. */
int thread_set_wait(__u32 tid, __u32 task_state);
/* Makes the unwinds of the look that began at switches[0].look_ns, in `slot`, which has the kernel
 * stack.  Returns nonzero when no slot was free: the wait is left out, and the waits that were
 * drawn carry its weight. */
int thread_look(__u32 tid, __u32 slot, __u32 task_state, __u32 look);
/* Ends the look at a wait that began at now_ns. */
int thread_looked(__u32 tid, __u64 now_ns);

/* Reads the innermost Python frame and its instruction.  Together with the registers they tell wait
 * sites apart, for three reads. */
static __always_inline void python_top(const struct pp_thread *t, __u64 *ret_frame,
				       __u64 *ret_instruction)
{
	__u32 index = t->python - 1;
	struct pp_python *py;
	__u64 frame;

	*ret_frame = *ret_instruction = 0;
	if (!t->python || !t->thread_state)
		return;
	py = bpf_map_lookup_elem(&pythons, &index);
	if (!py)
		return;
	frame = read_u64(t->thread_state + py->ts_frame);
	if (py->chain == PP_CHAIN_CFRAME_ENTRY || py->chain == PP_CHAIN_CFRAME_SHIM)
		frame = read_u64(frame + py->cframe_current);
	*ret_frame = frame;
	if (frame)
		*ret_instruction = read_u64(frame + py->frame_instr);
}

/* Returns the key that tells this wait site from others without an unwind: registers, Python's
 * innermost instruction, the system call and its first argument, what the GPU has to do, what the
 * thread is called.  The epoch is part of the key, so each site is unwound again in the next
 * epoch. */
static __always_inline __u64 wait_site_key(const struct pp_thread *t, const struct call_site *site,
					   __u32 task_state, const struct pp_config *cfg)
{
	__u64 frame, instruction, where, what;

	python_top(t, &frame, &instruction);
	where = site->pc * 0x9e3779b97f4a7c15ULL + site->sp * 0xc2b2ae3d27d4eb4fULL;
	what = frame * 0x165667b19e3779f9ULL + instruction * 0xd6e8feb86659fd93ULL;
	where ^= where >> 32 ^ site->name;
	what += (site->gpu << 62) + (site->number << 40) + (site->is_disk << 39) +
		((__u64)cfg->epoch << 8) + (task_state & 0xff);
	/* The registers of a preempted thread have arbitrary values. */
	return hash_mix(hash_mix(where, what), task_state ? site->argument : 0) | 1;
}

#endif
