/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Reads the slots that hold a thread's PyThreadState, and what that state says. */
#ifndef BPF_LIB_THREAD_STATE_H
#define BPF_LIB_THREAD_STATE_H

#include "lib/frames.bpf.h"

static __always_inline __u64 read_u64(__u64 address)
{
	__u64 value = 0;

	if (bpf_probe_read_user(&value, sizeof(value), (const void *)address))
		return 0;
	return value;
}

/* glibc x86-64 (2.36, 2.43 measured): the first 32 pthread keys lie in struct pthread at 0x310,
 * 16 bytes each with the value second; later ones in blocks of 32 pointed to from 0x510. */
#define GLIBC_KEYS_OFFSET 0x310
#define GLIBC_KEY_BLOCKS_OFFSET 0x510
#define GLIBC_KEY_BLOCK 32U
/* musl 1.2: struct pthread has a pointer to an array of values at 0x80. */
#define MUSL_KEYS_OFFSET 0x80

static __always_inline __u64 pthread_value(const struct pp_walk *w, __u64 key_address, bool musl)
{
	__u64 tp = w->thread_pointer, block;
	__u32 tss[2] = {};

	/* Py_tss_t: is_initialized, then the key. */
	if (bpf_probe_read_user(tss, sizeof(tss), (const void *)(key_address - 4)) || tss[1] > 1024)
		return 0;
	if (musl)
		return read_u64(read_u64(tp + MUSL_KEYS_OFFSET) + 8 * (__u64)tss[1]);
	if (tss[1] < GLIBC_KEY_BLOCK)
		return read_u64(tp + GLIBC_KEYS_OFFSET + 16 * (__u64)tss[1] + 8);
	block = read_u64(tp + GLIBC_KEY_BLOCKS_OFFSET + 8 * (__u64)(tss[1] / GLIBC_KEY_BLOCK));
	return block ? read_u64(block + 16 * (__u64)(tss[1] % GLIBC_KEY_BLOCK) + 8) : 0;
}

/* ELF TLS ABI, variant II: the dtv's address lies at tp + 8; glibc's entries are 16 bytes. */
static __always_inline __u64 dtv_value(const struct pp_walk *w, const struct pp_tls *tls)
{
	__u64 module = read_u64(tls->address);
	__u64 entry = tls->mode == PP_TLS_DTV ? 16 : 8;
	__u64 block;

	if (!module || module > 4096)
		return 0;
	block = read_u64(read_u64(w->thread_pointer + 8) + entry * module);
	/* glibc marks a block that was not allocated yet with -1. */
	return block && block != ~0ULL ? read_u64(block + (__s64)tls->offset) : 0;
}

static __always_inline __u64 tls_value(const struct pp_walk *w, const struct pp_tls *tls)
{
	switch (tls->mode) {
	case PP_TLS_THREAD_OFFSET:
		return read_u64(w->thread_pointer + (__s64)tls->offset);
	case PP_TLS_DTV:
	case PP_TLS_DTV_MUSL:
		return dtv_value(w, tls);
	case PP_TLS_PTHREAD_KEY:
		return pthread_value(w, tls->address, false);
	case PP_TLS_PTHREAD_KEY_MUSL:
		return pthread_value(w, tls->address, true);
	case PP_TLS_GLOBAL:
		return read_u64(tls->address);
	default:
		return 0;
	}
}

static __always_inline __u64 state_field(const struct pp_walk *w, __u16 offset)
{
	__u64 at = offset;

	BARRIER(at);
	if (at > PP_TSTATE_READ_BYTES - 8)
		return 0;
	return *(const __u64 *)(w->state + at);
}

static __always_inline bool state_read(struct pp_walk *w, __u64 state)
{
	return state && !bpf_probe_read_user(w->state, sizeof(w->state), (const void *)state);
}

/* Reads the head of a thread state and checks that it is this thread's: thread_id is
 * pthread_self(), which on glibc and musl for x86-64 is the thread pointer.  What a thread's own
 * slot holds is its own: a sub-interpreter's state keeps the thread_id of the thread that made it
 * (3.12). */
static __always_inline bool state_is_ours(struct pp_walk *w, const struct pp_python *py,
					  __u64 state, __u32 mode)
{
	if (!state_read(w, state))
		return false;
	if (mode != PP_TLS_GLOBAL && mode != PP_TLS_NONE)
		return true;
#if defined(__TARGET_ARCH_arm64)
	/* struct pthread ends at the thread pointer there: its size is not ours to know. */
	return true;
#else
	return state_field(w, py->ts_thread_id) == w->thread_pointer;
#endif
}

static __always_inline bool holds_gil(struct pp_walk *w, const struct pp_python *py)
{
	__u64 base, holder[2] = {};

	switch (py->gil_mode) {
	case PP_GIL_RUNTIME: /* last_holder, then int locked */
		base = py->runtime + w->context.python_bias + py->gil_offset;
		if (bpf_probe_read_user(holder, sizeof(holder), (const void *)base))
			return false;
		return holder[0] == w->thread_state && (__u32)holder[1] == 1;
	case PP_GIL_INTERPRETER:
		base = read_u64(state_field(w, py->ts_interp) + py->gil_offset);
		if (!base || bpf_probe_read_user(holder, sizeof(holder),
						 (const void *)(base + py->gil_holder)))
			return false;
		return holder[0] == w->thread_state && (__u32)holder[1] == 1;
	case PP_GIL_TSTATE_BIT: /* struct _status of 3.13: holds_gil is bit 5 */
		return state_field(w, py->gil_offset) >> 5 & 1;
	case PP_GIL_TSTATE_INT:
		return (__u32)state_field(w, py->gil_offset) != 0;
	case PP_GIL_CURRENT:
		return read_u64(w->context.tls[0].address) == w->thread_state;
	default:
		return false;
	}
}

static __always_inline bool collects_garbage(struct pp_walk *w, const struct pp_python *py)
{
	switch (py->gc_mode) {
	case PP_GC_RUNTIME:
		return (__u32)read_u64(py->runtime + w->context.python_bias + py->gc_offset) != 0;
	case PP_GC_INTERPRETER:
		return (__u32)read_u64(state_field(w, py->ts_interp) + py->gc_offset) != 0;
	case PP_GC_GLOBAL:
		return (__u32)read_u64(w->context.python_bias + py->gc_offset) != 0;
	default:
		return false;
	}
}

#endif
