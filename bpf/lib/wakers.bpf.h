/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* --wakers at context switches: a wait that ends is added up under its waker.  `wakers_are_on` is set before
 * the load. */
#ifndef BPF_LIB_WAKERS_H
#define BPF_LIB_WAKERS_H

#include "lib/threads.bpf.h"

static __always_inline void wake_add(struct pp_wake_key *key, __u64 ns, __u32 shift, __u32 window)
{
	struct pp_count first = {.samples = 1ULL << shift, .weight = ns << shift};
	struct pp_count *count;
	long err;

	count = window & 1 ? bpf_map_lookup_elem(&wakes_1, key)
			   : bpf_map_lookup_elem(&wakes_0, key);
	if (!count) {
		err = window & 1 ? bpf_map_update_elem(&wakes_1, key, &first, BPF_NOEXIST)
				 : bpf_map_update_elem(&wakes_0, key, &first, BPF_NOEXIST);
		if (!err)
			return;
		count = window & 1 ? bpf_map_lookup_elem(&wakes_1, key)
				   : bpf_map_lookup_elem(&wakes_0, key);
		if (!count) {
			count_loss(PP_LOSS_WAKES_FULL);
			return;
		}
	}
	__sync_fetch_and_add(&count->samples, first.samples);
	__sync_fetch_and_add(&count->weight, first.weight);
}

/* A wait begins: who woke the thread before is not who ends this one. */
static __always_inline void wake_forget(const struct pp_thread *t)
{
	__u32 tid = t->tid;

	bpf_map_delete_elem(&wakers, &tid);
}

/* The thread comes back from a wait that was not left out. */
static __always_inline void wake_count(const struct pp_thread *t, __u64 woken_ns, __u32 window)
{
	const struct pp_place *place = place_at((struct pp_thread *)t, t->at);
	__u32 tid = t->tid, zero = 0;
	struct pp_waker *waker = bpf_map_lookup_elem(&wakers, &tid);
	struct pp_wake_key *key = bpf_map_lookup_elem(&wake_keys, &zero);

	if (!waker || !key)
		return;
	key->user_stack = place->user_stack;
	key->kernel_stack = place->kernel_stack;
	key->id = t->id;
	key->tid = tid;
	key->flags = place->flags;
	key->waker = *waker;
	key->waker.weight_shift = 0;
	wake_add(key, woken_ns - t->since_ns, (t->weight_shift & 15) + (waker->weight_shift & 15),
		 window);
	bpf_map_delete_elem(&wakers, &tid);
}

#endif
