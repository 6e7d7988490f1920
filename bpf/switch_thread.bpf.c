/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Time off the CPU: the stack when a thread leaves, the interval when it comes back.  The program runs
 * as the thread that leaves, with its run queue locked: no allocation, no sleep, no page fault. */
#include "lib/budget.bpf.h"
#include "lib/look.bpf.h"
#include "lib/threads.bpf.h"
#include "lib/timeline_switch.bpf.h"
#include "lib/times.bpf.h"
#include "lib/wait_reason.bpf.h"
#include "lib/wakers.bpf.h"
#include "lib/walk.bpf.h"

/* docs/design/0012 */
#define WALK_WEIGHT_MAX (1U << 24)
#define IDENTIFY_NS 100000000ULL
#define GIL_RETRY_NS 50000ULL
#define CLOCK_NS 1000000ULL
#define SWITCH_STATE_ARGUMENT 3 /* of sched_switch, counted from 0 */

/* ---- the clock ---- */

/* The run queue's clock, as the switch set it; 0: not there. */
static __always_inline __u64 queue_clock(struct task_struct *task)
{
	return bpf_core_field_exists(task->se.cfs_rq) ? task->se.cfs_rq->rq->clock : 0;
}

/* CLOCK_MONOTONIC to a microsecond, without a reading at each switch, which costs 100 ns on a virtual
 * machine: the queue's `clock`, and how far the two are apart, read anew each millisecond. */
static __always_inline __u64 switch_clock(struct switch_state *state, __u64 clock)
{
	__u64 now_ns;

	if (likely(clock && clock - state->clock_read < CLOCK_NS))
		return clock + state->clock_offset;
	now_ns = bpf_ktime_get_ns();
	state->clock_read = clock;
	state->clock_offset = now_ns - clock;
	return now_ns;
}

/* ---- coming back ---- */

/* How long the thread that comes waited after it was woken: the scheduler's own bookkeeping, which costs no
 * program at wake-ups.  run_delay has what it waited on other CPUs' queues, last_queued since when on
 * this one, whose clock says `clock`. */
static __always_inline __u64 queued_ns(struct task_struct *next, const struct pp_thread *t,
				       __u64 clock)
{
	__u64 queued = next->sched_info.last_queued;
	__u64 wait_ns = next->sched_info.run_delay - t->run_delay_ns;

	return queued && clock > queued ? wait_ns + clock - queued : wait_ns;
}

static __always_inline void wait_ends(struct pp_thread *t, __u64 queue_ns, __u64 now_ns,
				      const struct pp_config *cfg)
{
	__u64 woken_ns = t->since_ns;

	thread_begin(t);
	now_ns = thread_clock(t, now_ns);
	if (t->wait != PP_WAIT_RUN_QUEUE && queue_ns < now_ns - t->since_ns)
		woken_ns = now_ns - queue_ns;
	ledger_add(t, t->wait, woken_ns - t->since_ns);
	t->total_ns[PP_LEDGER_RUN_QUEUE] += now_ns - woken_ns;
	if (likely(!(t->flags & PP_THREAD_SKIPPED) && now_ns - t->since_ns >= cfg->wait_min_ns)) {
		thread_add_wait(t, woken_ns, now_ns, cfg);
		if (unlikely(t->flags & PP_THREAD_EVENT))
			thread_add_event(t, cfg);
		if (wakers_are_on)
			wake_count(t, woken_ns, cfg->table[cfg->window & 1]);
	}
	if (timeline_is_on)
		timeline_come(t, woken_ns, now_ns);
	t->flags &= ~(PP_THREAD_WAITING | PP_THREAD_SKIPPED | PP_THREAD_EVENT | PP_THREAD_COUNTS);
	t->since_ns = now_ns;
	thread_end(t);
}

/* A thread leaves that had not come: the kernel did not tell, as some do not of a switch from one of
 * the threads that they hide.  Its own notes know when that was.  Takes numbers: so the verifier goes
 * through it once. */
int came_unseen(__u32 tid, __u64 queue_ns, __u64 came_ns)
{
	struct pp_config *cfg = config_get();
	struct pp_thread *t = cfg ? thread_find(tid, cfg) : NULL;

	if (!t)
		return 0;
	count_loss(PP_LOSS_SWITCHES_UNSEEN);
	wait_ends(t, queue_ns, came_ns, cfg);
	return 0;
}

/* A thread comes that had not left: nobody knows for how much of the time it ran. */
static __always_inline void left_unseen(struct pp_thread *t, __u64 now_ns)
{
	count_loss(PP_LOSS_SWITCHES_UNSEEN);
	thread_begin(t);
	now_ns = thread_clock(t, now_ns);
	t->total_ns[PP_LEDGER_UNKNOWN] += now_ns - t->since_ns;
	t->since_ns = now_ns;
	thread_end(t);
}

static __always_inline void thread_comes(struct task_struct *next, __u64 clock, __u64 now_ns,
					 const struct pp_config *cfg)
{
	struct pp_thread *t = thread_find(next->pid, cfg);

	if (unlikely(!t))
		thread_new(next->pid, next->tgid, now_ns);
	else if (likely(t->flags & PP_THREAD_WAITING))
		wait_ends(t, queued_ns(next, t, clock), now_ns, cfg);
	else if (t->flags & PP_THREAD_WANTED)
		left_unseen(t, now_ns);
}

/* ---- leaving ---- */

/* Which of the thread's places this wait is at; PP_THREAD_PLACES: none of them. */
static __always_inline __u32 place_find(const struct pp_thread *t, __u64 key)
{
	if (t->place[0].key == key)
		return 0;
	if (t->place[1].key == key)
		return 1;
	return t->place[2].key == key ? 2 : PP_THREAD_PLACES;
}

/* A thread that could run stands anywhere: its place is that of its last sample.  Until the first one, where samples
 * are taken, of its last walk.  PP_THREAD_PLACES: a walk is due. */
static __always_inline __u32 preempted_place(struct pp_thread *t, const struct pp_config *cfg)
{
	struct pp_place *place = &t->place[PP_PLACE_PREEMPTED];
	const struct pp_place *last = place_at(t, t->at);

	if (t->seen_stack && cfg->epoch - t->seen_epoch < 2)
		place_stack(t->tid, t->seen_stack, t->seen_flags);
	else if (cfg->flags & PP_CONFIG_SEE_RUNNING && t->at != PP_PLACE_PREEMPTED && last->key &&
		 last->user_stack)
		place_stack(t->tid, last->user_stack, last->flags);
	return place->key == preempted_key(cfg) ? PP_PLACE_PREEMPTED : PP_THREAD_PLACES;
}

/* Whether a known place is walked again.  When the budget says no, the place is used as it is, and asks for less. */
static __always_inline bool place_is_due(struct pp_thread *t, __u32 at, struct budget *budget,
					 __u64 now_ns)
{
	struct pp_place *place = place_at(t, at);
	__u64 weight;
	__u32 shift;

	if (likely(--place->left))
		return false;
	budget_tick_of_switches(budget, now_ns);
	if (budget_takes(budget, &shift)) {
		weight = (__u64)place->limit << (shift & 15);
		t->walk_weight = weight < WALK_WEIGHT_MAX ? weight : WALK_WEIGHT_MAX;
		return true;
	}
	place_put_off(t->tid, at);
	return false;
}

/* Whether the budget lets this wait be looked at. */
static __always_inline bool wait_is_taken(struct budget *budget, struct pp_thread *t, __u64 now_ns)
{
	__u32 shift;
	bool taken;

	budget_tick_of_switches(budget, now_ns);
	taken = budget_takes(budget, &shift);
	t->weight_shift = shift;
	if (taken && shift)
		count_loss(PP_LOSS_WAITS_WEIGHTED);
	return taken;
}

/* The walks of a look.  False: no slot was free for one without which nothing is known of the wait. */
static __always_inline bool wait_walk(void *ctx, const struct switch_state *state,
				      const struct pp_thread *t, __u32 task_state, enum look look,
				      __u64 now_ns, const struct pp_config *cfg)
{
	struct scratch taken = {.slot = ~0U};
	int err;

	scratch_enter(&taken);
	if (taken.walk) {
		walk_reset(taken.walk, 0, state->look_ns, PP_SWITCH_WALK_NS);
		/* Here, as no other function may have the context on 5.10. */
		if (look != LOOK_HOLDER && !(cfg->flags & PP_CONFIG_NO_KERNEL)) {
			take_kernel_stack(taken.walk, taken.slot, ctx);
			walk_clock_hurry(taken.walk); /* the kernel's own walk may have taken all */
		}
	}
	err = thread_look(t->tid, taken.slot, task_state, look);
	if (taken.walk) {
		if (look != LOOK_HOLDER)
			place_plan(t->tid, t->at, now_ns);
		scratch_leave(&taken);
	}
	return !err;
}

/* A wait of which a walk is due: of the thread's own stack, of the GIL's holder, or both.  False: it is
 * left to others that stand for it. */
static __always_inline bool wait_look(void *ctx, struct switch_state *state, struct pp_thread *t,
				      __u32 task_state, enum look look, __u64 now_ns,
				      const struct pp_config *cfg)
{
	if (look != LOOK_AGAIN) {
		if (!wait_is_taken(&state->budget, t, now_ns))
			return false;
		if (look == LOOK_NEW || t->weight_shift)
			t->walk_weight = 1U << (t->weight_shift & 15);
	}
	/* The queue's clock is that of the switch's begin: the scheduler may have balanced queues since. */
	state->look_ns = bpf_ktime_get_ns();
	if (!wait_walk(ctx, state, t, task_state, look, now_ns, cfg))
		return false;
	thread_looked(t->tid, now_ns);
	return true;
}

/* Which of the thread's places it is at; PP_THREAD_PLACES: none of them. */
static __always_inline __u32 place_of_wait(struct switch_state *state, struct pp_thread *t,
					   struct task_struct *prev, __u32 task_state,
					   const struct pp_config *cfg)
{
	struct user_registers *regs = (void *)state->registers;

	_Static_assert(sizeof(*regs) <= sizeof(state->registers), "room");
	if (!task_state) {
		t->last_key = preempted_key(cfg);
		return preempted_place(t, cfg);
	}
	read_call_site(prev, &state->registers_at, regs, &state->site);
	state->site.is_disk = waits_for_disk(prev, task_state);
	t->last_key = place_key(t, &state->site, task_state, cfg);
	return place_find(t, t->last_key);
}

static __always_inline enum look look_of(bool is_known, bool is_due)
{
	if (is_due)
		return LOOK_AGAIN;
	return is_known ? LOOK_HOLDER : LOOK_NEW;
}

static __always_inline void wait_is_event(struct pp_thread *t, const struct pp_config *cfg)
{
	if (unlikely(t->walk_weight))
		t->flags |= PP_THREAD_COUNTS;
	if (unlikely(cfg->wait_min_ns))
		t->flags |= PP_THREAD_EVENT;
	else
		thread_add_event(t, cfg);
}

static __always_inline void wait_begins(void *ctx, struct switch_state *state, struct pp_thread *t,
					struct task_struct *prev, __u32 task_state, __u64 ran_ns,
					__u64 now_ns, const struct pp_config *cfg)
{
	__u64 last_gil_key = t->wait == PP_WAIT_GIL ? t->last_key : 0;
	bool is_known, is_due, goes_on;
	__u32 found;

	state->found = place_of_wait(state, t, prev, task_state, cfg);
	FORGET();
	found = state->found;
	is_known = found < PP_THREAD_PLACES;
	t->weight_shift = 0;
	t->walk_weight = 0;
	is_due = is_known && place_is_due(t, found, &state->budget, now_ns);
	if (likely(is_known))
		t->at = found;
	if (likely(is_known && !is_due))
		t->wait = place_wait(place_at(t, found));
	else
		thread_set_wait(t->tid, task_state);
	/* A timed wait for the GIL ends every switch interval (5 ms) and begins again from the same
	 * instruction: one wait for the user, and one event, also when its first part was left out. */
	goes_on = t->wait == PP_WAIT_GIL && t->last_key == last_gil_key && ran_ns < GIL_RETRY_NS;
	if (unlikely(!is_known || is_due ||
		     (t->wait == PP_WAIT_GIL && cfg->flags & PP_CONFIG_BLAME))) {
		if (!wait_look(ctx, state, t, task_state, look_of(is_known, is_due), now_ns, cfg)) {
			t->flags |= PP_THREAD_SKIPPED;
			return;
		}
	}
	if (likely(!goes_on))
		wait_is_event(t, cfg);
}

static __always_inline void thread_stops(void *ctx, struct switch_state *state, struct pp_thread *t,
					 struct task_struct *prev, __u32 task_state, __u64 now_ns,
					 const struct pp_config *cfg)
{
	__u64 ran_ns = now_ns - t->since_ns;

	t->total_ns[PP_LEDGER_CPU] += ran_ns;
	t->since_ns = now_ns;
	if (wakers_are_on)
		wake_forget(t); /* who ends this wait may come during the walk */
	t->flags |= PP_THREAD_WAITING;
	t->run_delay_ns = prev->sched_info.run_delay;
	wait_begins(ctx, state, t, prev, task_state, ran_ns, now_ns, cfg);
	if (timeline_is_on)
		timeline_leave(t, ran_ns);
}

/* When the scheduler gave it the CPU. */
static __always_inline __u64 arrived_at(struct task_struct *prev, __u64 clock, __u64 now_ns)
{
	__u64 arrival = prev->sched_info.last_arrival;

	return clock > arrival && clock - arrival < now_ns ? now_ns - (clock - arrival) : now_ns;
}

static __always_inline void thread_leaves(void *ctx, struct switch_state *state,
					  struct task_struct *prev, __u32 task_state, __u64 clock,
					  __u64 now_ns, const struct pp_config *cfg)
{
	struct pp_thread *t = thread_find(prev->pid, cfg);

	if (unlikely(!t) && !thread_new(prev->pid, prev->tgid, now_ns))
		t = thread_find(prev->pid, cfg);
	if (unlikely(!t))
		return;
	if (unlikely(t->flags & PP_THREAD_WAITING))
		came_unseen(prev->pid, prev->sched_info.run_delay - t->run_delay_ns,
			    arrived_at(prev, clock, now_ns));
	thread_begin(t);
	now_ns = thread_clock(t, now_ns);
	if (unlikely(now_ns - t->identified_ns >= IDENTIFY_NS))
		thread_identify(prev->pid, prev->tgid, now_ns);
	if (unlikely(task_state & STATE_DEAD)) {
		if (timeline_is_on && t->flags & PP_THREAD_WANTED)
			timeline_exit(t, t->since_ns, now_ns);
		if (t->flags & PP_THREAD_WANTED)
			thread_settle(t->tid, now_ns, COUNTING_SWITCH);
		t->was_tid = t->tid;
		t->tid = 0;
	} else if (t->flags & PP_THREAD_WANTED) {
		thread_stops(ctx, state, t, prev, task_state, now_ns, cfg);
	}
	thread_end(t);
}

/* The state in which the thread leaves.  A waker on another CPU may change it before the program runs; what
 * the scheduler acted on is the tracepoint's last argument, from 5.18 on.  A signal that was pending keeps
 * the thread on the queue: that is only in the thread's own state. */
static __always_inline __u32 left_state(const void *ctx, struct task_struct *prev)
{
	__u32 state = task_state_of(prev);

	if (state && switch_tells_state)
		return ((const volatile __u64 *)ctx)[SWITCH_STATE_ARGUMENT];
	return state == STATE_WAKING ? STATE_INTERRUPTIBLE : state;
}

/* 5.10 allows 512 bytes of stack for a chain of calls, each rounded up to 32: 160 are left for this frame above
 * thread_look() and a walk. */
SEC("tp_btf/sched_switch")
int BPF_PROG(on_switch, bool preempt, struct task_struct *prev, struct task_struct *next)
{
	struct pp_config *cfg = config_get();
	__u32 zero = 0;
	struct switch_state *state = bpf_map_lookup_elem(&switches, &zero);
	__u64 clock, now_ns;

	if (unlikely(!cfg || !state || cfg->flags & PP_CONFIG_PAUSED))
		return 0;
	clock = queue_clock(prev);
	now_ns = switch_clock(state, clock);
	if (next->pid && !(next->flags & PF_KTHREAD))
		thread_comes(next, clock, now_ns, cfg);
	if (prev->pid && !(prev->flags & PF_KTHREAD))
		thread_leaves(ctx, state, prev, preempt ? 0 : left_state(ctx, prev), clock, now_ns,
			      cfg);
	return 0;
}
