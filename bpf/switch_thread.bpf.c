/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Measures the time off the CPU: the stack at a thread's switch-out, the interval at its
 * switch-in.  The program runs as the thread that is switched out, with its run queue locked: no
 * allocation, no sleep, no page fault. */
#include "lib/budget.bpf.h"
#include "lib/identify.bpf.h"
#include "lib/look.bpf.h"
#include "lib/threads.bpf.h"
#include "lib/timeline.bpf.h"
#include "lib/wait_reason.bpf.h"
#include "lib/walk.bpf.h"

/* For --timeline: records at context switches when a thread ran, when it waited, and whether it
 * held the GIL. */

/* Returns whether this thread has the GIL: it cannot get or lose it before it runs again. */
static __always_inline __u8 timeline_gil(const struct pp_thread *t)
{
	__u32 index = t->python - 1;
	struct pp_python *py;
	__u64 word[2] = {};

	if (!t->python || !t->gil || !t->thread_state)
		return 0;
	py = bpf_map_lookup_elem(&pythons, &index);
	if (!py || bpf_probe_read_user(word, sizeof(word), (const void *)t->gil))
		return 0;
	if (word[0] != t->thread_state)
		return PP_TIMELINE_GIL;
	if (py->gil_mode == PP_GIL_CURRENT || (__u32)word[1] == 1)
		return PP_TIMELINE_GIL | PP_TIMELINE_GIL_HELD;
	return PP_TIMELINE_GIL | PP_TIMELINE_GIL_LAST;
}

/* Notes a thread's switch-out, at t->since_ns. */
static __always_inline void timeline_switch_out(struct pp_thread *t, __u64 ran_ns)
{
	t->ran_since_ns = t->since_ns - ran_ns;
	t->timeline_flags = timeline_gil(t);
}

static __always_inline struct pp_timeline_record *timeline_begin(const struct pp_thread *t)
{
	__u32 zero = 0;
	struct pp_timeline_record *record = bpf_map_lookup_elem(&timeline_records, &zero);

	if (!record)
		return NULL;
	__builtin_memset(record, 0, sizeof(*record));
	record->id = t->id;
	record->tid = t->tid;
	record->cpu = t->timeline_cpu;
	return record;
}

/* Sends the record of a thread's last run and wait at its switch-in. */
static __always_inline void timeline_switch_in(struct pp_thread *t, __u64 woken_ns, __u64 now_ns)
{
	struct pp_timeline_record *record = timeline_begin(t);
	const struct pp_wait_site *site = wait_site_at(t, t->at);

	t->timeline_cpu = bpf_get_smp_processor_id();
	if (!record)
		return;
	record->record.type = PP_TIMELINE_SWITCH;
	record->wait = t->wait;
	record->flags = t->timeline_flags;
	record->run_ns = t->ran_since_ns;
	record->leave_ns = t->since_ns;
	record->woken_ns = woken_ns;
	record->back_ns = now_ns;
	/* The wait site may be known even when this wait was left out by chance. */
	if (site->key == t->last_key) {
		record->user_stack = site->user_stack;
		record->kernel_stack = site->kernel_stack;
	}
	if (t->wait == PP_WAIT_GIL && !(t->flags & PP_THREAD_SKIPPED))
		record->holder_tid = site->blame_tid;
	timeline_put(record);
}

/* Sends the record of an exiting thread's last run. */
static __always_inline void timeline_exit(const struct pp_thread *t, __u64 run_ns, __u64 now_ns)
{
	struct pp_timeline_record *record = timeline_begin(t);

	if (!record)
		return;
	record->record.type = PP_TIMELINE_LAST;
	record->run_ns = run_ns;
	record->leave_ns = record->woken_ns = record->back_ns = now_ns;
	timeline_put(record);
}

/* For `wakers`: adds up each wait that ends under its waker, at the switch-in.  `wakers_are_on` is
 * set before the load. */

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

/* docs/design/waits.md */
#define WALK_WEIGHT_MAX (1U << 24)
#define IDENTIFY_NS 100000000ULL
#define GIL_RETRY_NS 50000ULL
#define CLOCK_NS 1000000ULL
#define SWITCH_STATE_ARGUMENT 3 /* of sched_switch, counted from 0 */

/* ---- the clock ---- */

/* Returns the run queue's clock as the switch has set it; 0: it cannot be read. */
static __always_inline __u64 queue_clock(struct task_struct *task)
{
	return bpf_core_field_exists(task->se.cfs_rq) ? task->se.cfs_rq->rq->clock : 0;
}

/* Returns CLOCK_MONOTONIC to a microsecond without reading it at each switch, which costs 100 ns on
 * a virtual machine: the run queue's `clock` plus the difference between the two, measured again
 * each millisecond. */
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

/* ---- switch-in ---- */

/* Returns how long the thread that is switched in waited after its wake-up, from the scheduler's
 * own bookkeeping, which costs no program at wake-ups.  run_delay has the time on other CPUs'
 * queues, last_queued since when it has been on this one, whose clock is `clock`. */
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
		timeline_switch_in(t, woken_ns, now_ns);
	t->flags &= ~(PP_THREAD_WAITING | PP_THREAD_SKIPPED | PP_THREAD_EVENT | PP_THREAD_COUNTS);
	t->since_ns = now_ns;
	thread_end(t);
}

/* We missed this thread's switch-in (some kernels hide helper threads from sched_switch).
 * Recovers the time from sched_info.  The arguments are numbers so that the verifier goes
 * through this once. */
int switch_in_unseen(__u32 tid, __u64 queue_ns, __u64 came_ns)
{
	struct pp_config *cfg = config_get();
	struct pp_thread *t = cfg ? thread_find(tid, cfg) : NULL;

	if (!t)
		return 0;
	count_loss(PP_LOSS_SWITCHES_UNSEEN);
	wait_ends(t, queue_ns, came_ns, cfg);
	return 0;
}

/* We missed this thread's switch-out: how much of the time it ran is not known. */
static __always_inline void switch_out_unseen(struct pp_thread *t, __u64 now_ns)
{
	count_loss(PP_LOSS_SWITCHES_UNSEEN);
	thread_begin(t);
	now_ns = thread_clock(t, now_ns);
	t->total_ns[PP_LEDGER_UNKNOWN] += now_ns - t->since_ns;
	t->since_ns = now_ns;
	thread_end(t);
}

static __always_inline void thread_switch_in(struct task_struct *next, __u64 clock, __u64 now_ns,
					     const struct pp_config *cfg)
{
	struct pp_thread *t = thread_find(next->pid, cfg);

	if (unlikely(!t))
		thread_new(next->pid, next->tgid, user_of(next), now_ns);
	else if (likely(t->flags & PP_THREAD_WAITING))
		wait_ends(t, queued_ns(next, t, clock), now_ns, cfg);
	else if (t->flags & PP_THREAD_MATCHES)
		switch_out_unseen(t, now_ns);
}

/* ---- switch-out ---- */

/* Returns the index of the wait site with this key; PP_THREAD_WAIT_SITES: it is none of the known
 * ones. */
static __always_inline __u32 wait_site_find(const struct pp_thread *t, __u64 key)
{
	if (t->site[0].key == key)
		return 0;
	if (t->site[1].key == key)
		return 1;
	return t->site[2].key == key ? 2 : PP_THREAD_WAIT_SITES;
}

/* Returns the wait site of a preempted thread.  It stopped at an arbitrary instruction, so we use
 * the stack of its last sample or, until its first one and where samples are taken, of its last
 * unwind.  PP_THREAD_WAIT_SITES: an unwind is due. */
static __always_inline __u32 preempted_site(struct pp_thread *t, __u32 gpu, __u64 key,
					    const struct pp_config *cfg)
{
	struct pp_wait_site *site = &t->site[PP_WAIT_SITE_PREEMPTED];
	const struct pp_wait_site *last = wait_site_at(t, t->at);

	if (t->seen_stack && cfg->epoch - t->seen_epoch < 2)
		wait_site_stack(t->tid, t->seen_stack, t->seen_flags, gpu, key);
	else if (cfg->flags & PP_CONFIG_SEE_RUNNING && t->at != PP_WAIT_SITE_PREEMPTED &&
		 last->key && last->user_stack)
		wait_site_stack(t->tid, last->user_stack, last->flags, gpu, key);
	return site->key == key && (site->flags & PP_COUNT_GPU_BITS) == gpu << PP_COUNT_GPU_SHIFT
		       ? PP_WAIT_SITE_PREEMPTED
		       : PP_THREAD_WAIT_SITES;
}

/* Returns whether a known wait site is unwound again now.  If the budget refuses, the cached stack
 * is used, the site asks less often, and its next unwind carries this one's weight as well. */
static __always_inline bool wait_site_is_due(struct pp_thread *t, __u32 at, struct budget *budget,
					     __u64 now_ns)
{
	struct pp_wait_site *site = wait_site_at(t, at);
	__u32 shift;

	if (likely(--site->left))
		return false;
	budget_tick_of_switches(budget, now_ns);
	if (site->owed < WALK_WEIGHT_MAX)
		site->owed += site->limit;
	if (budget_takes(budget, &shift)) {
		t->walk_weight = site->owed;
		return true;
	}
	wait_site_put_off(t->tid, at);
	return false;
}

/* Returns whether the budget allows an unwind of this wait. */
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

/* Makes the unwinds of a look.  Returns false when no scratch slot was free and nothing is known of
 * the wait without them. */
static __always_inline bool wait_walk(void *ctx, const struct switch_state *state,
				      const struct pp_thread *t, __u32 task_state, enum look look,
				      __u64 now_ns, const struct pp_config *cfg)
{
	struct scratch taken = {.slot = ~0U};
	int err;

	scratch_enter(&taken);
	if (taken.walk) {
		walk_reset(taken.walk, 0, state->look_ns, PP_SWITCH_WALK_NS);
		/* This is done here because on 5.10 no other function may have the context. */
		if (look != LOOK_HOLDER && !(cfg->flags & PP_CONFIG_NO_KERNEL)) {
			take_kernel_stack(taken.walk, taken.slot, ctx);
			walk_clock_extend(taken.walk);
		}
	}
	err = thread_look(t->tid, taken.slot, task_state, look);
	if (taken.walk) {
		if (look != LOOK_HOLDER)
			wait_site_plan(t->tid, t->at, now_ns);
		scratch_leave(&taken);
	}
	return !err;
}

/* Handles a wait with an unwind due: of the thread's own stack, of the GIL holder's, or of both. 
 * Returns false when it is left out; waits that were drawn carry its weight. */
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
	/* The run queue's clock is from the beginning of the switch: the scheduler may have
	 * balanced queues since. */
	state->look_ns = bpf_ktime_get_ns();
	if (!wait_walk(ctx, state, t, task_state, look, now_ns, cfg))
		return false;
	thread_looked(t->tid, now_ns);
	return true;
}

/* Returns the enum pp_gpu of a thread that is switched out.  sp: 0 if it is preempted. */
static __always_inline __u32 gpu_at_switch(const struct pp_thread *t, __u64 sp,
					   const struct pp_config *cfg)
{
	if (likely(!t->gpu))
		return PP_GPU_UNKNOWN;
	return gpu_of_thread(&t->id, &t->tid, sp, cfg);
}

/* Returns a hash of what a thread is called: some are renamed for each request. */
static __always_inline __u64 name_of(const struct task_struct *task)
{
	const __u64 *comm = (const void *)task->comm;

	return hash_mix(comm[0], comm[1]);
}

/* Finds the wait site of the wait that begins; PP_THREAD_WAIT_SITES: it is none of the known
 * ones. */
static __always_inline __u32 site_of_wait(struct switch_state *state, struct pp_thread *t,
					  struct task_struct *prev, __u32 task_state,
					  const struct pp_config *cfg)
{
	struct user_registers *regs = (void *)state->registers;

	_Static_assert(sizeof(*regs) <= sizeof(state->registers), "room");
	state->call_site.name = name_of(prev);
	if (!task_state) {
		t->last_key = preempted_key(&state->call_site, cfg);
		state->call_site.gpu = gpu_at_switch(t, 0, cfg);
		return preempted_site(t, state->call_site.gpu, t->last_key, cfg);
	}
	read_call_site(prev, &state->registers_at, regs, &state->call_site);
	state->call_site.gpu = gpu_at_switch(t, state->call_site.sp, cfg);
	state->call_site.is_disk = waits_for_disk(prev, task_state);
	t->last_key = wait_site_key(t, &state->call_site, task_state, cfg);
	return wait_site_find(t, t->last_key);
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

	state->found = site_of_wait(state, t, prev, task_state, cfg);
	FORGET();
	found = state->found;
	is_known = found < PP_THREAD_WAIT_SITES;
	t->weight_shift = 0;
	t->walk_weight = 0;
	is_due = is_known && wait_site_is_due(t, found, &state->budget, now_ns);
	if (likely(is_known))
		t->at = found;
	if (likely(is_known && !is_due))
		t->wait = wait_site_reason(wait_site_at(t, found));
	else
		thread_set_wait(t->tid, task_state);
	/* A timed wait for the GIL ends every switch interval (5 ms) and begins again at the same
	 * instruction.  For the user that is one wait, and one event, even when its first part was
	 * left out. */
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
		timeline_switch_out(t, ran_ns);
}

/* Returns when the scheduler gave the thread the CPU. */
static __always_inline __u64 arrived_at(struct task_struct *prev, __u64 clock, __u64 now_ns)
{
	__u64 arrival = prev->sched_info.last_arrival;

	return clock > arrival && clock - arrival < now_ns ? now_ns - (clock - arrival) : now_ns;
}

static __always_inline void thread_switch_out(void *ctx, struct switch_state *state,
					      struct task_struct *prev, __u32 task_state,
					      __u64 clock, __u64 now_ns, struct pp_config *cfg)
{
	struct pp_thread *t = thread_find(prev->pid, cfg);

	if (unlikely(!t) && !thread_new(prev->pid, prev->tgid, user_of(prev), now_ns))
		t = thread_find(prev->pid, cfg);
	if (unlikely(!t))
		return;
	if (unlikely(t->flags & PP_THREAD_WAITING))
		switch_in_unseen(prev->pid, prev->sched_info.run_delay - t->run_delay_ns,
				 arrived_at(prev, clock, now_ns));
	thread_begin(t);
	now_ns = thread_clock(t, now_ns);
	if (unlikely(now_ns - t->identified_ns >= IDENTIFY_NS)) {
		t->euid = (__u32)euid_of_current();
		thread_identify(prev->pid, prev->tgid, now_ns);
	}
	if (unlikely(task_state & STATE_DEAD)) {
		if (timeline_is_on && t->flags & PP_THREAD_MATCHES)
			timeline_exit(t, t->since_ns, now_ns);
		thread_release(t, now_ns, COUNTING_SWITCH, cfg);
	} else if (t->flags & PP_THREAD_MATCHES) {
		thread_stops(ctx, state, t, prev, task_state, now_ns, cfg);
	}
	thread_end(t);
}

/* Returns the thread's state at its switch-out.  A waker on another CPU may change it before the
 * program runs; what the scheduler acted on is the tracepoint's last argument, from 5.18 on.  A
 * pending signal keeps the thread on the queue, which only the thread's own state shows. */
static __always_inline __u32 switch_out_state(const void *ctx, struct task_struct *prev)
{
	__u32 state = task_state_of(prev);

	if (state && switch_tells_state)
		return ((const volatile __u64 *)ctx)[SWITCH_STATE_ARGUMENT];
	return state == STATE_WAKING ? STATE_INTERRUPTIBLE : state;
}

/* 5.10 allows 512 bytes of stack for a chain of calls, each rounded up to 32: 160 are left for this
 * frame above thread_look() and a walk. */
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
		thread_switch_in(next, clock, now_ns, cfg);
	if (prev->pid && !(prev->flags & PF_KTHREAD))
		thread_switch_out(ctx, state, prev, preempt ? 0 : switch_out_state(ctx, prev),
				  clock, now_ns, cfg);
	return 0;
}
