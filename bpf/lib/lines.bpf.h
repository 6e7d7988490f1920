/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What a hit of a known line does: the time since the last event of its function in this thread
 * goes to the line that was running.  No locks: a thread that is in an interpreter's probe holds
 * the GIL, and only its own hits change what is a thread's. */
#ifndef BPF_LIB_LINES_H
#define BPF_LIB_LINES_H

#include "lib/call_hit.bpf.h"
#include "lib/line_maps.bpf.h"

/* ---- sums ---- */

static __always_inline struct pp_line_sums *line_sums_get(void)
{
	__u32 zero = 0;

	return bpf_map_lookup_elem(&line_sums, &zero);
}

static __always_inline void line_count_unread(void)
{
	struct pp_line_sums *sums = line_sums_get();

	if (sums)
		sums->unread++;
}

static __always_inline void line_count_unnoted(void)
{
	struct pp_line_sums *sums = line_sums_get();

	if (sums)
		sums->unnoted++;
}

/* Adds what the hit costs to the thread. */
static __always_inline void line_count_hit(struct pp_line_thread *thread, bool is_wanted)
{
	__u32 zero = 0;
	const struct pp_line_costs *costs = bpf_map_lookup_elem(&line_costs, &zero);
	struct pp_line_sums *sums = line_sums_get();

	if (costs)
		thread->cost_ns += is_wanted ? costs->wanted_ns : costs->other_ns;
	if (!sums)
		return;
	sums->hits++;
	sums->wanted += is_wanted;
}

/* ---- threads ---- */

/* Returns the thread's state, which begins with its first hit; NULL: there is no room. */
static __always_inline struct pp_line_thread *line_thread(const struct call_hit *h)
{
	struct pp_line_thread *thread = bpf_map_lookup_elem(&line_threads, &h->tid), fresh = {};
	struct task_struct *task = h->task, *leader;

	if (likely(thread && thread->start_time == h->start_time))
		return thread;
	leader = CURRENT_READ(task, group_leader);
	fresh.start_time = h->start_time;
	fresh.process = hash_mix(h->tgid, BPF_CORE_READ(leader, start_time));
	bpf_map_update_elem(&line_threads, &h->tid, &fresh, BPF_ANY);
	return bpf_map_lookup_elem(&line_threads, &h->tid);
}

/* Names a function in a process. */
static __always_inline __u64 line_function(const struct pp_line_thread *thread,
					   const struct call_hit *h)
{
	return hash_mix(thread->process, h->names);
}

/* ---- the lines that a function's activations are in ---- */

static __always_inline __u64 line_row_id(__u64 function, __u64 line)
{
	return hash_mix(function, line) | 1;
}

__noinline int run_make(__u64 function, __u64 thread_key, __u32 tid, __u32 tgid)
{
	struct pp_line_run_key key = {.function = function, .thread = thread_key};
	struct pp_line_run run = {.tid = tid, .tgid = tgid};

	return bpf_map_update_elem(&line_runs, &key, &run, BPF_NOEXIST) ? 1 : 0;
}

static __always_inline struct pp_line_run *run_get(const struct call_hit *h, __u64 function)
{
	struct pp_line_run_key key = {.function = function, .thread = h->start_time ^ h->tid};
	struct pp_line_run *run = bpf_map_lookup_elem(&line_runs, &key);

	if (likely(run))
		return run;
	run_make(function, key.thread, h->tid, h->tgid);
	return bpf_map_lookup_elem(&line_runs, &key);
}

/* Returns where the innermost activation has its row; NULL: there is none, or it is too deep. */
static __always_inline __u64 *run_row(struct pp_line_run *run)
{
	__u32 at = run->depth - 1;

	BARRIER(at);
	return at < PP_LINE_DEPTH ? &run->row[at & (PP_LINE_DEPTH - 1)] : NULL;
}

static __always_inline void run_set_row(struct pp_line_run *run, __u64 id)
{
	__u64 *row = run_row(run);

	if (row)
		*row = id;
}

/* Returns the bit of the innermost activation; 0: it has none. */
static __always_inline __u32 run_bit(const struct pp_line_run *run)
{
	__u32 at = run->depth - 1;

	return at < PP_LINE_DEPTH ? 1U << (at & (PP_LINE_DEPTH - 1)) : 0;
}

/* Adds the time since the function's last event to the line that was running. */
static __always_inline void run_pass(const struct call_hit *h, const struct pp_line_thread *thread,
				     struct pp_line_run *run)
{
	__u64 passed_ns = h->now_ns - run->since_ns, cost_ns = thread->cost_ns - run->cost_ns;
	const __u64 *id = run_row(run);
	struct pp_line_row *row = id && *id ? bpf_map_lookup_elem(&line_rows, id) : NULL;
	struct pp_line_sums *sums = line_sums_get();

	if (cost_ns > passed_ns)
		cost_ns = passed_ns;
	if (row)
		row->ns += passed_ns - cost_ns;
	if (row && sums)
		sums->cost_ns += cost_ns;
	run->since_ns = h->now_ns;
	run->cost_ns = thread->cost_ns;
}

/* A function is called, or a generator goes on in the line where it has yielded. */
static __always_inline void run_enter(const struct call_hit *h, const struct pp_line_thread *thread,
				      struct pp_line_run *run, __u64 function)
{
	const __u64 id = line_row_id(function, h->line);
	struct pp_line_sums *sums = line_sums_get();

	run_pass(h, thread, run);
	run->depth++;
	run->told &= ~run_bit(run);
	run_set_row(run, bpf_map_lookup_elem(&line_rows, &id) ? id : 0);
	if (sums && run->depth > PP_LINE_DEPTH)
		sums->too_deep++;
}

/* Returns whether no line has begun since the function was called or went on. */
static __always_inline bool run_leave(const struct call_hit *h, const struct pp_line_thread *thread,
				      struct pp_line_run *run)
{
	const __u32 bit = run_bit(run);
	bool is_untold = bit && !(run->told & bit);

	run_pass(h, thread, run);
	if (!run->depth)
		return false; /* it was called before the start, and no line has begun since */
	run_set_row(run, 0);
	run->depth--;
	return is_untold;
}

#endif
