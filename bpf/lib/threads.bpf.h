/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A thread's slot: finding one, adding intervals up in it, giving it back (include/pyprofd/wait.h). */
#ifndef BPF_LIB_THREADS_H
#define BPF_LIB_THREADS_H

#include "lib/count.bpf.h"
#include "lib/frames.bpf.h"

static __always_inline struct pp_thread *thread_at(__u32 tid, __u32 way,
						   const struct pp_config *cfg)
{
	__u32 index = pp_thread_index(tid, way, cfg->thread_mask);

	return bpf_map_lookup_elem(&threads, &index);
}

static __always_inline struct pp_thread *thread_find(__u32 tid, const struct pp_config *cfg)
{
	struct pp_thread *t = thread_at(tid, 0, cfg);

	if (likely(t && t->tid == tid))
		return t;
	for (__u32 way = 1; way < PP_THREAD_WAYS; way++) {
		t = thread_at(tid, way, cfg);
		if (t && t->tid == tid)
			return t;
	}
	return NULL;
}

/* Writes begin and end: the agent's copies see them.  One CPU writes; 5.10 has no atomic operation that
 * the compiler may not turn into one that returns a value.  A switch in the middle of an exec's write
 * leaves the number right all the same. */
static __always_inline void thread_begin(struct pp_thread *t)
{
	asm volatile("" ::: "memory");
	*(volatile __u32 *)&t->sequence = (t->sequence + 1) | 1;
	asm volatile("" ::: "memory");
}
static __always_inline void thread_end(struct pp_thread *t)
{
	asm volatile("" ::: "memory");
	*(volatile __u32 *)&t->sequence = (t->sequence + 2) & ~1U;
	asm volatile("" ::: "memory");
}

/* A free slot, which nobody else takes until thread_taken().  5.10 has no compare-and-swap: the table of
 * claims stands in for it. */
static __always_inline struct pp_thread *thread_take(__u32 tid, __u32 index)
{
	struct pp_thread *t = bpf_map_lookup_elem(&threads, &index);

	if (!t || t->tid || bpf_map_update_elem(&slot_claims, &index, &tid, BPF_NOEXIST))
		return NULL;
	if (likely(!*(volatile __u32 *)&t->tid))
		return t;
	bpf_map_delete_elem(&slot_claims, &index); /* another CPU was done in between */
	return NULL;
}

/* A slot for a thread that has none; it begins to run now.  NULL: none is free, which is counted. */
static __always_inline struct pp_thread *thread_claim(__u32 tid, __u32 tgid, __u64 now_ns,
						      const struct pp_config *cfg)
{
	struct pp_thread *t = NULL;
	__u64 first_ns = now_ns;
	__u32 sequence, index = 0;

	for (__u32 way = 0; way < PP_THREAD_WAYS && !t; way++) {
		index = pp_thread_index(tid, way, cfg->thread_mask);
		t = thread_take(tid, index);
	}
	if (!t) {
		count_loss(PP_LOSS_THREADS_FULL);
		return NULL;
	}
	thread_begin(t);
	sequence = t->sequence;
	if (t->was_tid == tid)
		first_ns = t->first_ns;
	__builtin_memset(t, 0, sizeof(*t));
	t->sequence = sequence;
	t->tid = tid;
	t->id.tgid = tgid;
	t->created_ns = t->since_ns = now_ns;
	t->first_ns = first_ns;
	t->read_window = cfg->window - 1; /* nothing of an older one is in here */
	thread_end(t);
	bpf_map_delete_elem(&slot_claims, &index);
	return t;
}

/* The clocks of two CPUs may differ by a little: a thread's times never go back. */
static __always_inline __u64 thread_clock(const struct pp_thread *t, __u64 now_ns)
{
	return now_ns > t->since_ns ? now_ns : t->since_ns;
}

/* Nothing of what it did until now counts. */
static __always_inline void thread_restart(struct pp_thread *t, __u64 now_ns)
{
	__builtin_memset(t->total_ns, 0, sizeof(t->total_ns));
	__builtin_memset(t->place, 0, sizeof(t->place));
	t->created_ns = t->since_ns = now_ns;
}

/* ---- places and sums ---- */

/* Nothing of it is in either window. */
static __always_inline void place_clear(struct pp_place *place, const struct pp_config *cfg)
{
	__builtin_memset(place, 0, sizeof(*place));
	place->sum[0].window = place->sum[1].window = place->walked.window = cfg->window - 2;
}

/* An epoch later the agent may have forgotten its stack. */
static __always_inline __u64 preempted_key(const struct pp_config *cfg)
{
	return (__u64)cfg->epoch << 1 | 1;
}

static __always_inline struct pp_place *place_at(struct pp_thread *t, __u32 index)
{
	BARRIER(index);
	return &t->place[index < PP_THREAD_PLACES ? index : 0];
}

static __always_inline enum pp_wait place_wait(const struct pp_place *place)
{
	return pp_count_wait(place->flags);
}

/* threads.bpf.c.  They take numbers, not pointers: so the verifier goes through each once. */

/* A slot for a thread that has none.  Nonzero: none is free, which is counted. */
int thread_new(__u32 tid, __u32 tgid, __u64 now_ns);
/* What a thread that runs has got goes to the open window's counters and to its process's ledger. */
int thread_settle(__u32 tid, __u64 now_ns, __u32 counting_at);
/* Asks whose the thread is, and whether the filters want it. */
int thread_identify(__u32 tid, __u32 tgid, __u64 now_ns);
/* All that a place has got and nobody has taken yet goes to the open window's counters. */
int place_count(__u32 tid, __u32 at, __u32 counting_at);
/* The walk of a known place found another stack than switches[0].old: its sums of this window are to be
 * divided. */
int place_differs(__u32 tid, __u32 at);
/* A piece of a wait that was walked, into its place or the counters. */
int wait_weigh(__u32 tid, __u32 window, __u64 ns, __u64 queue_ns);
/* What of a wait that ended lies before the window.  Returns where the rest begins. */
__u64 wait_add_before(__u32 tid, __u32 window, __u64 woken_ns, __u64 now_ns);
/* Uses up to one that is chosen by chance, when one in `limit` is, each for itself: 1 or more. */
int chance_gap(__u32 limit);
/* After a walk: when the next one of the place is due. */
int place_plan(__u32 tid, __u32 at, __u64 now_ns);
/* A walk that was due is not made. */
int place_put_off(__u32 tid, __u32 at);
/* The place of a preempted thread is this stack, which another look at it found. */
int place_stack(__u32 tid, __u64 stack, __u32 flags);

static __always_inline struct pp_place_sum *sum_open(struct pp_place *place, __u32 window)
{
	struct pp_place_sum *sum = &place->sum[window & 1];

	if (unlikely(sum->window != window)) {
		sum->window = window;
		sum->events = 0;
		sum->ns = sum->queue_ns = 0;
		place->is_mixed[window & 1] = place->differs != 0;
	}
	return sum;
}

static __always_inline void wait_add(struct pp_thread *t, struct pp_place *place, __u32 window,
				     __u64 begin_ns, __u64 woken_ns, __u64 end_ns)
{
	struct pp_place_sum *sum;

	if (woken_ns < begin_ns)
		woken_ns = begin_ns;
	if (woken_ns > end_ns)
		woken_ns = end_ns;
	if (likely(!t->weight_shift)) {
		sum = sum_open(place, window);
		sum->ns += woken_ns - begin_ns;
		sum->queue_ns += end_ns - woken_ns;
	}
	if (unlikely(t->walk_weight))
		wait_weigh(t->tid, window, woken_ns - begin_ns, end_ns - woken_ns);
}

/* Adds a wait that ended, cut at the edge of the window. */
static __always_inline void thread_add_wait(struct pp_thread *t, __u64 woken_ns, __u64 now_ns,
					    const struct pp_config *cfg)
{
	__u32 window = cfg->window;
	__u64 begin_ns = t->since_ns;

	if (unlikely(begin_ns < cfg->window_start_ns[window & 1]))
		begin_ns = wait_add_before(t->tid, window, woken_ns, now_ns);
	if (likely(begin_ns < now_ns))
		wait_add(t, place_at(t, t->at), window, begin_ns, woken_ns, now_ns);
}

static __always_inline void thread_add_event(struct pp_thread *t, const struct pp_config *cfg)
{
	if (likely(!t->weight_shift))
		sum_open(place_at(t, t->at), cfg->window)->events++;
}

/* ---- the ledger ---- */

static const __u8 wait_ledgers[PP_WAIT_COUNT] = PP_WAIT_LEDGERS;

static __always_inline void ledger_add(struct pp_thread *t, __u32 wait, __u64 ns)
{
	__u32 group;

	BARRIER(wait);
	group = wait < PP_WAIT_COUNT ? wait_ledgers[wait] : PP_LEDGER_UNKNOWN;
	BARRIER(group);
	if (group < PP_LEDGER_COUNT)
		t->total_ns[group] += ns;
}

/* Takes a running thread's slot away, with all that it has got until now.  False: it has none. */
static __always_inline bool thread_retire(__u32 tid, __u64 now_ns, const struct pp_config *cfg)
{
	struct pp_thread *t = thread_find(tid, cfg);

	if (!t)
		return false;
	thread_begin(t);
	now_ns = thread_clock(t, now_ns);
	if (t->flags & PP_THREAD_WANTED)
		thread_settle(tid, now_ns, COUNTING_EXEC);
	t->was_tid = tid;
	t->tid = 0;
	thread_end(t);
	return true;
}

#endif
