/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* For `wakers`: adds up each wait that ends under its waker, at the switch-in.  `wakers_are_on` is
 * set before the load. */
#ifndef BPF_LIB_WAKERS_H
#define BPF_LIB_WAKERS_H

#include "lib/threads.bpf.h"

DEFINE_ROW_ADD(wakes, struct pp_wake_key)

/* A wait that finds no row is counted for the process that waited. */
static __noinline int wake_coarse(const struct pp_wake_key *key, const struct pp_count *more,
				  long err, __u32 number)
{
	struct pp_count_key coarse = {.id = key->id, .flags = key->flags, .kind = PP_KIND_WAKE};

	return count_coarse(&coarse, more, err, number);
}

static __always_inline void wake_add(struct pp_wake_key *key, __u64 ns, __u32 shift, __u32 number)
{
	struct pp_count more = {.samples = 1ULL << shift, .weight = ns << shift};
	long made = row_wakes(key, &more, number);

	if (made > 0)
		table_grows(PP_TABLE_WAKES, number);
	else if (made < 0)
		wake_coarse(key, &more, made, number);
}

/* Forgets who woke the thread before: that thread will not end the wait that begins. */
static __always_inline void wake_forget(const struct pp_thread *t)
{
	__u32 tid = t->tid;

	bpf_map_delete_elem(&wakers, &tid);
}

/* Counts, at a switch-in, a wait that was not left out. */
static __always_inline void wake_count(const struct pp_thread *t, __u64 woken_ns, __u32 number)
{
	const struct pp_wait_site *site = wait_site_at((struct pp_thread *)t, t->at);
	__u32 tid = t->tid, zero = 0;
	struct pp_waker *waker = bpf_map_lookup_elem(&wakers, &tid);
	struct pp_wake_key *key = bpf_map_lookup_elem(&wake_keys, &zero);

	if (!waker || !key)
		return;
	key->user_stack = site->user_stack;
	key->kernel_stack = site->kernel_stack;
	key->id = t->id;
	key->tid = tid;
	key->flags = site->flags;
	key->waker = *waker;
	key->waker.weight_shift = 0;
	wake_add(key, woken_ns - t->since_ns, (t->weight_shift & 15) + (waker->weight_shift & 15),
		 number);
	bpf_map_delete_elem(&wakers, &tid);
}

#endif
