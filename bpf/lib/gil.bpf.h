/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Recognises waits for the GIL without symbols: the futex word lies in the GIL's own condition
 * variables and mutexes (CPython: Include/internal/pycore_gil.h of 3.7 to 3.15; docs/gil.md). */
#ifndef BPF_LIB_GIL_H
#define BPF_LIB_GIL_H

#include "lib/thread_state.bpf.h"

/* struct _gil_runtime_state from last_holder on: int locked at 8, switch_number at 16, then cond,
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

#endif
