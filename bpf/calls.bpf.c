/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Counts the entries and returns of Python functions.  Only a new thread or a new path of calls is
 * unwound; any other hit costs four look-ups. */
#include "lib/call_hit.bpf.h"
#include "lib/identify.bpf.h"

MAP(call_nodes, HASH, PP_CALL_NODES_MAX, __u64, struct pp_call_node);
MAP(call_threads, LRU_HASH, PP_CALL_THREADS_MAX, __u32, struct pp_call_thread);
MAP(call_costs, ARRAY, 1, __u32, struct pp_call_costs);
MAP(call_sums, PERCPU_ARRAY, 1, __u32, struct pp_call_sums);

/* ---- the shadow stack of a thread (include/pyprofd/calls.h) ----
 * Nodes need no lock: a thread changes its own nodes only. */

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

/* ---- what needs a walk: new threads and new paths ---- */

/* Begins the shadow stack of a thread whose process w is of. */
__noinline int thread_add(__u32 slot, __u64 start_time, __u64 now_ns, __u32 event)
{
	struct pp_walk *w = walk_get(slot);
	struct pp_call_thread thread = {.start_time = start_time, .last_ns = now_ns, .last = event};

	if (!w)
		return 1;
	thread.id = w->id;
	thread.tid = w->tid;
	thread.root = hash_mix(hash_mix((__u64)w->id.tgid << 32 | w->tid, start_time), 0x5eed);
	return bpf_map_update_elem(&call_threads, &w->tid, &thread, BPF_ANY) ? 1 : 0;
}

/* Makes a node of a caller that was walked. */
__noinline int caller_add(__u32 slot, __u32 at)
{
	struct pp_walk *w = walk_get(slot);
	struct pp_call_thread *thread = w ? bpf_map_lookup_elem(&call_threads, &w->tid) : NULL;
	__u64 code, id;

	if (!thread)
		return 1;
	BARRIER(at);
	code = w->out.frame[at & (PP_MAX_FRAMES - 1)].where;
	id = hash_mix(hash_mix(parent_hash(thread), code), 1) | 1;
	if (!node_get(id))
		return thread_enter_new(w->tid, id, code, 0, 0);
	thread->top = id;
	return 0;
}

/* Makes nodes of the callers, from the root to the one before the leaf frames.  What is nearer to
 * the root than PP_CALL_CALLERS_MAX is left out. */
__noinline int callers_add(__u32 slot, __u32 leaves)
{
	struct pp_walk *w = walk_get(slot);
	__u32 count;

	if (!w)
		return 1;
	count = w->python_count;
	if (count > PP_CALL_CALLERS_MAX)
		count = PP_CALL_CALLERS_MAX;
	for (__u32 i = 0; i < PP_CALL_CALLERS_MAX; i++) {
		if (i + leaves >= count)
			break;
		if (caller_add(slot, count - 1 - i))
			return 1;
	}
	return 0;
}

static __always_inline void entry_walked(struct call_hit *h, struct pp_walk *w)
{
	struct pp_call_thread *thread = h->thread;

	thread_pass(h, thread->top ? node_get(thread->top) : NULL);
	if (!thread->lost)
		thread_enter_new(h->tid, child_id(h), h->site->is_ours ? h->line : leaf_code(w),
				 h->names, 1);
}

/* A function that a walk has found returns: from here on it is known by its names. */
static __always_inline void return_walked(struct call_hit *h, struct pp_walk *w)
{
	struct pp_call_thread *thread = h->thread;
	struct pp_call_node *top = thread->top ? node_get(thread->top) : NULL;
	struct pp_call_sums *sums = sums_get();

	thread_pass(h, top);
	if (!top)
		return;
	if (!top->names && top->code == leaf_code(w)) {
		top->names = h->names;
		thread->top = top->parent;
		return;
	}
	if (sums)
		sums->unmatched++;
	bpf_map_delete_elem(&call_threads, &h->tid);
}

static __always_inline void handle_walked(struct call_hit *h, struct pp_walk *w, __u32 slot,
					  void *ctx)
{
	const bool is_new = !h->thread;

	walk_reset(w, 0, h->now_ns, PP_SAMPLE_WALK_NS);
	if (!h->site->is_ours)
		walk_frames(h, w, slot, ctx, is_new);
	if (is_new) {
		thread_add(slot, h->start_time, h->now_ns, h->event);
		h->thread = bpf_map_lookup_elem(&call_threads, &h->tid);
		if (!h->thread)
			return;
		/* A function that returns was called, too, before its thread was known. */
		if (!h->site->is_ours)
			callers_add(slot, h->event == PP_CALL_ENTRY);
	}
	if (h->event == PP_CALL_ENTRY)
		entry_walked(h, w);
	else
		return_walked(h, w);
	/* The walk is no time of the program's. */
	h->thread = bpf_map_lookup_elem(&call_threads, &h->tid);
	if (h->thread)
		h->thread->last_ns = bpf_ktime_get_ns();
}

static __always_inline void handle_new(struct call_hit *h, void *ctx)
{
	struct pp_config *cfg = config_get();
	struct task_struct *task = h->task;
	struct scratch taken;

	if (!cfg || (cfg->flags & PP_CONFIG_PAUSED && !h->site->is_ours))
		return;
	scratch_enter_pool(&taken);
	if (!taken.walk)
		return;
	if (identify(taken.walk, task, (__u64)h->tgid << 32 | h->tid, CURRENT_READ(task, flags),
		     false, cfg) ||
	    h->site->is_ours)
		handle_walked(h, taken.walk, taken.slot, ctx);
	scratch_leave(&taken);
}

/* ---- the programs ---- */

static __always_inline bool hit_begin(struct call_hit *h, void *ctx, enum pp_call_event event)
{
	if (!hit_take(h, ctx, event))
		return false;
	h->thread = bpf_map_lookup_elem(&call_threads, &h->tid);
	if (h->thread && unlikely(h->thread->start_time != h->start_time))
		h->thread = NULL; /* another thread had its number */
	return true;
}

SEC("uprobe")
int on_call_entry(struct pt_regs *ctx)
{
	struct call_hit h;

	REFUSE_PRIVATE_STACK(ctx, probe_programs);
	if (hit_begin(&h, ctx, PP_CALL_ENTRY) && (!h.thread || !entry_is_known(&h)))
		handle_new(&h, ctx);
	return 0;
}

SEC("uprobe")
int on_call_return(struct pt_regs *ctx)
{
	struct call_hit h;

	REFUSE_PRIVATE_STACK(ctx, probe_programs);
	if (hit_begin(&h, ctx, PP_CALL_RETURN) && (!h.thread || !return_is_known(&h)))
		handle_new(&h, ctx);
	return 0;
}
