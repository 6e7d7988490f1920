/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Follows calls from their beginning, where the stack is taken, to their end, where the time is
 * added.  Calls that end without having begun, and such as never end, are counted. */
#ifndef BPF_LIB_SPANS_H
#define BPF_LIB_SPANS_H

#include "lib/probe.bpf.h"
#include "lib/text.bpf.h"

/* What tells calls of one thread apart.  Functions: sp at their first instruction, below 2^48, and
 * the probe above it.  A thread collects garbage once at a time; imports are numbered by depth. */
#define PLACE_PROBE_SHIFT 48
#define PLACE_GC (0xff00ULL << PLACE_PROBE_SHIFT)
#define PLACE_IMPORT (0xff01ULL << PLACE_PROBE_SHIFT)
#define PLACE_IMPORT_TOP (0xff02ULL << PLACE_PROBE_SHIFT)
#define IMPORTS_DEEP 200U /* further ones inside count without their time */
#define IMPORTS_BACK 8U	  /* how many imports that never ended are skipped */

static __always_inline __u64 function_place(const struct hit *h, __u64 sp)
{
	return sp ^ (__u64)h->site->probe << PLACE_PROBE_SHIFT;
}

static __always_inline struct call *call_find(const struct hit *h, __u64 place)
{
	struct call_key key = {.thread = h->thread, .place = place};

	return bpf_map_lookup_elem(&calls, &key);
}

static __always_inline void call_forget(const struct hit *h, const struct call *call, __u64 place)
{
	struct call_key key = {.thread = h->thread, .place = place};
	__u32 user = call->user;

	if (!bpf_map_delete_elem(&calls, &key))
		open_calls_add(user, -1);
}

/* Remembers a call whose stack was sent.  is_alone: another call that is remembered at this place
 * has ended without its end being seen, by longjmp() or an exception for example. */
static __always_inline void call_remember(struct hit *h, __u64 place, __u64 name, bool is_alone)
{
	struct call_key key = {.thread = h->thread, .place = place};
	__u32 slot = h->taken.slot;
	struct call *call = bpf_map_lookup_elem(&call_scratch, &slot);
	bool is_new = !call_find(h, place);

	if (!call)
		return;
	fill_count_key(h->w, &call->key);
	call->inner_ns = 0;
	call->name = name;
	call->user = h->w->user;
	call->scale = h->scale;
	/* The walk is ours, not the program's. */
	call->began_ns = bpf_ktime_get_ns();
	if (!is_new && is_alone)
		count_loss(PP_LOSS_PROBE_UNMATCHED);
	if (is_new && open_calls_are_refused(h->w->user)) {
		count_loss(PP_LOSS_PROBE_SHARE);
		return;
	}
	if (bpf_map_update_elem(&calls, &key, call, BPF_ANY)) {
		count_loss(PP_LOSS_PROBE_CALLS_FULL);
		return;
	}
	open_calls_add(h->w->user, is_new);
	news_add(h->w->user);
}

static __always_inline void call_count(const struct hit *h, const struct call *call, __u64 ns)
{
	if (count_add(&call->key, scaled(1, call->scale), scaled(ns, call->scale),
		      table_number(h->cfg)) > 0)
		return; /* it stands for the call, which is not open any more */
	if (h->w)
		news_drop(h->w->user);
}

/* A call has ended that was not seen to begin. */
static __always_inline void count_unbegun(const struct hit *h)
{
	/* While hits do not count, or beginnings are not attached, no call begins. */
	if (h->scale && !h->site->is_partial)
		count_loss(PP_LOSS_PROBE_UNMATCHED);
}

/* Ends the call of a place. */
static __always_inline void call_end(const struct hit *h, __u64 place)
{
	struct call *call = call_find(h, place);

	if (!call) {
		count_unbegun(h);
		return;
	}
	call_count(h, call, h->now_ns - call->began_ns);
	call_forget(h, call, place);
}

/* ---- imports, which nest ---- */

static __always_inline __u64 import_place(__u64 depth)
{
	return PLACE_IMPORT | depth;
}

static __always_inline void import_set_depth(struct hit *h, __u64 depth)
{
	struct call *top = call_find(h, PLACE_IMPORT_TOP);

	if (top && !depth)
		call_forget(h, top, PLACE_IMPORT_TOP);
	else if (top)
		top->name = depth;
	else
		call_remember(h, PLACE_IMPORT_TOP, depth, false);
}

static __always_inline __u64 import_depth(const struct hit *h)
{
	const struct call *top = call_find(h, PLACE_IMPORT_TOP);

	return top ? top->name : 0;
}

static __always_inline void import_begin(struct hit *h, __u64 name)
{
	__u64 depth = import_depth(h) + 1;

	import_set_depth(h, depth);
	if (depth > IMPORTS_DEEP)
		count_loss(PP_LOSS_PROBE_CALLS_FULL);
	else
		call_remember(h, import_place(depth), name, false);
}

/* Ends the import of a name.  Imports above it never ended: their thread's end was not seen. */
static __always_inline void import_end(struct hit *h, __u64 name)
{
	__u64 depth = import_depth(h), took_ns;
	struct call *call = NULL, *outer;
	__u32 i;

	if (depth > IMPORTS_DEEP) {
		import_set_depth(h, depth - 1);
		return;
	}
	for (i = 0; i < IMPORTS_BACK && depth; i++, depth--) {
		call = call_find(h, import_place(depth));
		if (call && call->name == name)
			break;
		call = NULL;
		count_loss(PP_LOSS_PROBE_UNMATCHED);
	}
	if (!call) {
		if (!depth)
			count_unbegun(h);
		return;
	}
	took_ns = h->now_ns - call->began_ns;
	call_count(h, call, took_ns > call->inner_ns ? took_ns - call->inner_ns : 0);
	outer = call_find(h, import_place(depth - 1));
	if (outer)
		outer->inner_ns += took_ns;
	call_forget(h, call, import_place(depth));
	import_set_depth(h, depth - 1);
}

#endif
