/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The shadow stack of a thread (include/pyprofd/calls.h): what a hit does once thread and function
 * are known.  No locks: a thread changes nodes of its own only. */
#ifndef BPF_LIB_CALLS_H
#define BPF_LIB_CALLS_H

#include "lib/call_hit.bpf.h"

static __always_inline struct pp_call_sums *sums_get(void)
{
	__u32 zero = 0;

	return bpf_map_lookup_elem(&call_sums, &zero);
}

/* Adds the time since the last event to the top, without what the two hits cost. */
static __always_inline void thread_pass(struct call_hit *h, struct pp_call_node *top)
{
	struct pp_call_thread *thread = h->thread;
	__u64 passed_ns = h->now_ns - thread->last_ns, cost_ns = 0;
	__u32 zero = 0;
	struct pp_call_costs *costs = bpf_map_lookup_elem(&call_costs, &zero);
	struct pp_call_sums *sums = sums_get();

	if (costs)
		cost_ns = costs->ns[thread->last & 1][h->event & 1];
	if (cost_ns > passed_ns)
		cost_ns = passed_ns;
	if (top)
		top->self_ns += passed_ns - cost_ns;
	if (sums) {
		sums->hits++;
		sums->cost_ns += cost_ns;
	}
	thread->last_ns = h->now_ns;
	thread->last = h->event;
}

static __always_inline struct pp_call_node *node_get(__u64 id)
{
	return bpf_map_lookup_elem(&call_nodes, &id);
}

static __always_inline __u64 parent_hash(const struct pp_call_thread *thread)
{
	return thread->top ? thread->top : thread->root;
}

/* Names the node of a function that is called at a line of itself: a generator's entries differ in
 * it, and are nodes of one path. */
static __always_inline __u64 child_id(const struct call_hit *h)
{
	return hash_mix(hash_mix(parent_hash(h->thread), h->names), h->line) | 1;
}

/* Goes to a node below the top of a thread.  Returns nonzero when there is no room for it, which is
 * counted.  Functions of their own have their own stack: before Linux 6.0 a walk leaves little of
 * the 512 bytes. */
__noinline int thread_enter_new(__u32 tid, __u64 id, __u64 code, __u64 names, __u64 calls)
{
	struct pp_call_thread *thread = bpf_map_lookup_elem(&call_threads, &tid);
	struct pp_call_sums *sums = sums_get();
	struct pp_call_node node = {.calls = calls, .code = code, .names = names};

	if (!thread || !sums)
		return 1;
	node.parent = thread->top;
	node.id = thread->id;
	node.tid = thread->tid;
	if (bpf_map_update_elem(&call_nodes, &id, &node, BPF_ANY)) {
		sums->unnoted++;
		thread->lost++;
		return 1;
	}
	sums->created++;
	thread->top = id;
	return 0;
}

/* Returns whether an entry could be counted without a walk. */
static __always_inline bool entry_is_known(struct call_hit *h)
{
	struct pp_call_thread *thread = h->thread;
	struct pp_call_node *child;
	struct pp_call_sums *sums;
	__u64 id;

	if (unlikely(thread->lost)) {
		/* What is called by a function without a node has none either. */
		thread_pass(h, node_get(thread->top));
		thread->lost++;
		sums = sums_get();
		if (sums)
			sums->unnoted++;
		return true;
	}
	id = child_id(h);
	child = node_get(id);
	if (!child)
		return false;
	thread_pass(h, thread->top ? node_get(thread->top) : NULL);
	child->calls++;
	thread->top = id;
	return true;
}

/* Looks for the function that returns among the callers of the top: others have ended without an
 * event. Returns nonzero when it is not among them. */
__noinline int return_resync(__u32 tid, __u64 names)
{
	struct pp_call_thread *thread = bpf_map_lookup_elem(&call_threads, &tid);
	__u64 at;

	if (!thread)
		return 1;
	at = thread->top;
	for (__u32 i = 0; i < PP_CALL_RESYNC_MAX && at; i++) {
		struct pp_call_node *node = node_get(at);

		if (!node)
			return 1;
		at = node->parent;
		if (node->names == names) {
			thread->top = at;
			return 0;
		}
	}
	return 1;
}

/* Returns whether a return could be counted without a walk. */
static __always_inline bool return_is_known(struct call_hit *h)
{
	struct pp_call_thread *thread = h->thread;
	struct pp_call_node *top = thread->top ? node_get(thread->top) : NULL;
	struct pp_call_sums *sums;

	if (unlikely(thread->lost)) {
		thread_pass(h, top);
		thread->lost--;
		return true;
	}
	if (likely(top && top->names == h->names)) {
		thread_pass(h, top);
		thread->top = top->parent;
		return true;
	}
	/* Found by a walk, and this is its first event. */
	if (top && !top->names)
		return false;
	thread_pass(h, top);
	sums = sums_get();
	if (sums)
		sums->unmatched++;
	/* The next event finds the stack anew. */
	if (return_resync(h->tid, h->names))
		bpf_map_delete_elem(&call_threads, &h->tid);
	return true;
}

#endif
