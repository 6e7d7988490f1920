/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Finds a thread's slot, adds intervals to it and gives it back (include/pyprofd/wait.h). */
#ifndef BPF_LIB_THREADS_H
#define BPF_LIB_THREADS_H

#include "lib/count.bpf.h"
#include "lib/frames.bpf.h"
#include "lib/user.bpf.h"

/* Divides the slots of threads, and the rows of the ledger of ended ones, among users. */

/* Takes a slot of threads[] on a user's account.  A user may have at most half as many slots as
 * remain free: a thread probes only a few slots, so many must stay free.  Returns 0; 1: the share
 * is used up. */
static __always_inline int slot_share_take(__u32 user, struct pp_config *cfg)
{
	struct pp_user_share *share;

	(void)share_claim(user);
	share = share_of(user);
	if (share) {
		if (cfg->slots_taken + 2 * (share->slots + 1ULL) > cfg->thread_mask)
			return 1;
		__sync_fetch_and_add(&share->slots, 1);
	}
	__sync_fetch_and_add(&cfg->slots_taken, 1);
	return 0;
}

static __always_inline void slot_share_give(__u32 user, struct pp_config *cfg)
{
	struct pp_user_share *share = share_of(user);

	/* The agent may have given the slot back just now; an unsigned wrap would never heal. */
	if (share && share->slots)
		__sync_fetch_and_add(&share->slots, -1);
	if (cfg->slots_taken)
		__sync_fetch_and_add(&cfg->slots_taken, -1);
}

/* Takes a row of ledgers[] on a user's account.  Returns 0; 1: the share is used up. */
static __always_inline int ledger_share_take(__u32 user, struct pp_config *cfg)
{
	struct pp_user_share *share = share_of(user);

	if (share) {
		if (share->ledger_turn != cfg->ledger_turn) {
			share->ledger_turn = cfg->ledger_turn;
			share->ledgers = 0;
		}
		if (cfg->ledgers_taken + share->ledgers >= PP_LEDGER_ROWS)
			return 1;
		__sync_fetch_and_add(&share->ledgers, 1);
	}
	__sync_fetch_and_add(&cfg->ledgers_taken, 1);
	return 0;
}

static __always_inline struct pp_thread *thread_at(__u32 tid, __u32 way,
						   const struct pp_config *cfg)
{
	__u32 index = pp_thread_index(tid, way, cfg->thread_mask, cfg->thread_seed);

	return bpf_map_lookup_elem(&threads, &index);
}

/* Returns by which way (1 to PP_THREAD_WAYS - 1) a thread's slot is found; 0: by none of these.
 * It is a global function in threads.bpf.c, so that the verifier checks it once. */
int thread_find_way(__u32 tid);

static __always_inline struct pp_thread *thread_find(__u32 tid, const struct pp_config *cfg)
{
	struct pp_thread *t = thread_at(tid, 0, cfg);
	__u32 way;

	if (likely(t && t->tid == tid))
		return t;
	way = (__u32)thread_find_way(tid);
	return way ? thread_at(tid, way, cfg) : NULL;
}

/* Brackets a write with a sequence number so that the agent's copies are consistent.  Only one CPU
 * writes; 5.10 has no atomic operation that the compiler may not turn into one that returns a
 * value.  A switch that interrupts an exec's write leaves the number right all the same. */
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

/* Locks a free slot until thread_claim() ends.  Linux 5.10 has no compare-and-swap; an insert with
 * BPF_NOEXIST into slot_claims does the same. */
static __always_inline struct pp_thread *thread_take(__u32 tid, __u32 index)
{
	struct pp_thread *t = bpf_map_lookup_elem(&threads, &index);

	if (!t || t->tid || bpf_map_update_elem(&slot_claims, &index, &tid, BPF_NOEXIST))
		return NULL;
	if (likely(!*(volatile __u32 *)&t->tid))
		return t;
	bpf_map_delete_elem(&slot_claims, &index); /* another CPU took it meanwhile */
	return NULL;
}

/* Claims a slot for a thread that has none and begins to run now.  Returns NULL, and counts why,
 * when no slot is free or the user's share is used up. */
static __always_inline struct pp_thread *thread_claim(__u32 tid, __u32 tgid, __u32 user,
						      __u64 now_ns, struct pp_config *cfg)
{
	struct pp_thread *t = NULL;
	__u64 first_ns = now_ns;
	__u32 sequence, index = 0;

	if (slot_share_take(user, cfg)) {
		count_loss(PP_LOSS_THREADS_SHARE);
		return NULL;
	}
	for (__u32 way = 0; way < PP_THREAD_WAYS && !t; way++) {
		index = pp_thread_index(tid, way, cfg->thread_mask, cfg->thread_seed);
		t = thread_take(tid, index);
	}
	if (!t) {
		count_loss(PP_LOSS_THREADS_FULL);
		slot_share_give(user, cfg);
		return NULL;
	}
	thread_begin(t);
	sequence = t->sequence;
	if (t->was_tid == tid)
		first_ns = t->first_ns;
	__builtin_memset(t, 0, sizeof(*t));
	t->sequence = sequence;
	t->tid = tid;
	t->user = user;
	t->id.tgid = tgid;
	t->created_ns = t->since_ns = now_ns;
	t->first_ns = first_ns;
	t->read_window = cfg->window - 1; /* nothing of an older one is in here */
	thread_end(t);
	bpf_map_delete_elem(&slot_claims, &index);
	return t;
}

/* Keeps a thread's times from going back, as the clocks of two CPUs may differ a little. */
static __always_inline __u64 thread_clock(const struct pp_thread *t, __u64 now_ns)
{
	return now_ns > t->since_ns ? now_ns : t->since_ns;
}

/* Forgets all that the thread did until now. */
static __always_inline void thread_restart(struct pp_thread *t, __u64 now_ns)
{
	__builtin_memset(t->total_ns, 0, sizeof(t->total_ns));
	__builtin_memset(t->site, 0, sizeof(t->site));
	t->created_ns = t->since_ns = now_ns;
}

/* ---- wait sites and sums ---- */

/* Empties a wait site: it has no sums in either window. */
static __always_inline void wait_site_clear(struct pp_wait_site *site, const struct pp_config *cfg)
{
	__builtin_memset(site, 0, sizeof(*site));
	site->sum[0].window = site->sum[1].window = site->walked.window = cfg->window - 2;
}

/* The key of a preempted thread's wait site in this epoch.  Later the agent may have forgotten its
 * stack. */
static __always_inline __u64 preempted_key(const struct call_site *site,
					   const struct pp_config *cfg)
{
	return (site->name ^ cfg->epoch) << 1 | 1;
}

static __always_inline struct pp_wait_site *wait_site_at(struct pp_thread *t, __u32 index)
{
	BARRIER(index);
	return &t->site[index < PP_THREAD_WAIT_SITES ? index : 0];
}

static __always_inline enum pp_wait wait_site_reason(const struct pp_wait_site *site)
{
	return pp_count_wait(site->flags);
}

/* Defined in threads.bpf.c.  Their arguments are numbers, not pointers, so the verifier goes
 * through each function once. */

/* Claims a slot for a thread of a user that has none.  Returns nonzero when there is none, which is
 * counted. */
int thread_new(__u32 tid, __u32 tgid, __u32 user, __u64 now_ns);
/* Moves what a running thread has collected to the open window's counters and to its process's
 * ledger.  Returns nonzero when the ledger had no room for its times: they stay in its slot. */
int thread_settle(__u32 tid, __u64 now_ns, __u32 counting_at);
/* Looks up the thread's process and whether it matches the filters. */
int thread_identify(__u32 tid, __u32 tgid, __u64 now_ns);
/* Moves the sums of a wait site that the agent has not read to the open window's counters. */
int wait_site_count(__u32 tid, __u32 at, __u32 counting_at);
/* Notes that unwinding a known wait site again gave another stack than switches[0].old: this
 * window's sums of the site will be divided among its stacks. */
int wait_site_differs(__u32 tid, __u32 at);
/* Adds a piece of a wait that was unwound to its wait site or to the counters. */
int wait_weigh(__u32 tid, __u32 window, __u64 ns, __u64 queue_ns);
/* Counts the part of an ended wait that lies before the window.  Returns where the rest begins. */
__u64 wait_add_before(__u32 tid, __u32 window, __u64 woken_ns, __u64 now_ns);
/* Returns in how many uses the next one is drawn, when each use is drawn with the chance 1 / limit:
 * 1 or more. */
int chance_gap(__u32 limit);
/* Draws, after an unwind, when the wait site is unwound next. */
int wait_site_plan(__u32 tid, __u32 at, __u64 now_ns);
/* Postpones an unwind that was due. */
int wait_site_put_off(__u32 tid, __u32 at);
/* Sets the cached stack of the current thread's wait site for preemptions to one that a sample or
 * another unwind has found.  gpu: enum pp_gpu of the thread now. */
int wait_site_stack(__u32 tid, __u64 stack, __u32 flags, __u32 gpu, __u64 key);

static __always_inline struct pp_wait_site_sum *sum_open(struct pp_wait_site *site, __u32 window)
{
	struct pp_wait_site_sum *sum = &site->sum[window & 1];

	if (unlikely(sum->window != window)) {
		sum->window = window;
		sum->events = 0;
		sum->ns = sum->queue_ns = 0;
		site->is_mixed[window & 1] = site->differs != 0;
	}
	return sum;
}

static __always_inline void wait_add(struct pp_thread *t, struct pp_wait_site *site, __u32 window,
				     __u64 begin_ns, __u64 woken_ns, __u64 end_ns)
{
	struct pp_wait_site_sum *sum;

	if (woken_ns < begin_ns)
		woken_ns = begin_ns;
	if (woken_ns > end_ns)
		woken_ns = end_ns;
	if (likely(!t->weight_shift)) {
		sum = sum_open(site, window);
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
		wait_add(t, wait_site_at(t, t->at), window, begin_ns, woken_ns, now_ns);
}

static __always_inline void thread_add_event(struct pp_thread *t, const struct pp_config *cfg)
{
	if (likely(!t->weight_shift))
		sum_open(wait_site_at(t, t->at), cfg->window)->events++;
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

/* Counts what is in a running thread's slot, and gives it back, while it is being written. */
static __always_inline void thread_release(struct pp_thread *t, __u64 now_ns, __u32 counting_at,
					   struct pp_config *cfg)
{
	__u32 tid = t->tid;

	t->was_tid = tid;
	if (t->flags & PP_THREAD_MATCHES && thread_settle(tid, now_ns, counting_at)) {
		t->tid = tid | PP_TID_ENDED;
		return;
	}
	slot_share_give(t->user, cfg);
	t->tid = 0;
}

/* Frees a running thread's slot and counts what is in it.  Returns false when it has none. */
static __always_inline bool thread_retire(__u32 tid, __u64 now_ns, struct pp_config *cfg)
{
	struct pp_thread *t = thread_find(tid, cfg);

	if (!t)
		return false;
	thread_begin(t);
	now_ns = thread_clock(t, now_ns);
	thread_release(t, now_ns, COUNTING_EXEC, cfg);
	thread_end(t);
	return true;
}

#endif
