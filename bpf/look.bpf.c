/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Looks at a wait: the stack of the thread that is switched out, why it waits, and who holds the
 * GIL.  All of this runs within the switch, as that thread. */
#include "lib/look.bpf.h"
#include "lib/budget.bpf.h"
#include "lib/identify.bpf.h"
#include "lib/wait_reason.bpf.h"
#include "lib/walk.bpf.h"

static __always_inline bool waits_for_gil(const struct pp_thread *t, __u64 word)
{
	__u32 index = t->python - 1;
	struct pp_python *py = t->python ? bpf_map_lookup_elem(&pythons, &index) : NULL;

	return py && gil_owns(t, py, word);
}

/* Returns whether a thread had to stop, whatever it was doing. */
static __always_inline bool wait_is_forced(enum pp_wait wait)
{
	return wait == PP_WAIT_STOPPED || wait == PP_WAIT_FAULT;
}

__noinline int thread_set_wait(__u32 tid, __u32 task_state)
{
	struct pp_config *cfg = config_get();
	struct pp_thread *t = cfg ? thread_find(tid, cfg) : NULL;
	enum pp_wait wait = PP_WAIT_RUN_QUEUE;
	__u32 zero = 0;
	struct switch_state *state = bpf_map_lookup_elem(&switches, &zero);

	if (!t || !state)
		return 1;
	if (task_state)
		wait = wait_reason((struct task_struct *)bpf_get_current_task(), task_state,
				   &state->call_site);
	if (wait == PP_WAIT_LOCK && waits_for_gil(t, state->call_site.argument))
		wait = PP_WAIT_GIL;
	else if (task_state && state->call_site.gpu == PP_GPU_WAIT && !wait_is_forced(wait))
		wait = PP_WAIT_GPU;
	t->wait = wait;
	return 0;
}

/* ---- the stack of the thread that is switched out ---- */

/* Keeps those results of a walk that later waits of the thread use. */
static __always_inline void remember_python(struct pp_thread *t, struct pp_walk *w)
{
	__u32 index = w->context.python - 1;
	struct pp_python *py = NULL;

	t->python = t->thread_state = t->gil = 0;
	if (w->context.python && w->count_flags & PP_COUNT_PYTHON)
		py = bpf_map_lookup_elem(&pythons, &index);
	if (!py)
		return;
	t->python = w->context.python;
	t->python_bias = w->context.python_bias;
	t->thread_state = w->thread_state;
	t->gil = gil_find(w, py);
}

/* Unwinds the whole stack of the thread that is switched out into its wait site. */
static __always_inline void walk_wait_site(struct pp_walk *w, __u32 slot, struct pp_thread *t,
					   struct pp_wait_site *site,
					   const struct user_registers *regs)
{
	if (!use_registers(w, regs)) {
		w->thread_pointer =
			task_thread_pointer((struct task_struct *)bpf_get_current_task());
		walk_user(slot);
	}
	remember_python(t, w);
	walk_emit_stacks(slot);
	site->user_stack = w->hash;
	site->kernel_stack = w->kernel_hash;
	take_comm(site->comm);
	site->flags = w->count_flags | w->stop << PP_COUNT_STOP_SHIFT |
		      w->py_stop << PP_COUNT_PY_STOP_SHIFT;
	FORGET();
}

static __always_inline void walk_thread(struct switch_state *state, struct pp_walk *w, __u32 slot,
					struct pp_thread *t, struct pp_wait_site *site,
					__u32 task_state)
{
	struct user_registers *regs = (void *)state->registers;

	copy_saved(regs, (struct task_struct *)bpf_get_current_task());
	if (!t->id.generation) /* the process was not known until now */
		t->id.generation = w->id.generation;
	walk_wait_site(w, slot, t, site, regs);
	/* For a thread that was not unwound before, Python and the GIL are known only now. */
	thread_set_wait(t->tid, task_state);
	site->flags |= t->wait << PP_COUNT_WAIT_SHIFT | (__u32)state->call_site.gpu
								<< PP_COUNT_GPU_SHIFT;
}

/* Returns the entry for a new wait site: the next one in turn is evicted. */
static __always_inline struct pp_wait_site *wait_site_renew(struct pp_thread *t, __u32 task_state,
							    const struct pp_config *cfg)
{
	struct pp_wait_site *site;
	__u32 at = PP_WAIT_SITE_PREEMPTED;

	if (task_state) {
		at = t->turn + 1;
		if (at >= PP_WAIT_SITE_PREEMPTED)
			at = 0;
		t->turn = at;
	}
	wait_site_count(t->tid, at, COUNTING_SWITCH);
	site = wait_site_at(t, at);
	wait_site_clear(site, cfg);
	t->at = at;
	return site;
}

/* Unwinds at a wait site that is new, or at a known one that is due. */
static __always_inline void look_at_thread(struct switch_state *state, struct pp_walk *w,
					   __u32 slot, struct pp_thread *t, __u32 task_state,
					   __u32 look, const struct pp_config *cfg)
{
	struct pp_wait_site *site =
		look == LOOK_NEW ? wait_site_renew(t, task_state, cfg) : wait_site_at(t, t->at);

	state->old.user_stack = site->user_stack;
	state->old.kernel_stack = site->kernel_stack;
	state->old.flags = site->flags;
	walk_thread(state, w, slot, t, site, task_state);
	cfg = config_get(); /* found again, as 5.10 has no stack for it below the walk */
	if (look == LOOK_NEW) {
		if (task_state && cfg)
			t->last_key = wait_site_key(t, &state->call_site, task_state, cfg);
		site->key = t->last_key;
	} else if (state->old.user_stack != site->user_stack ||
		   state->old.kernel_stack != site->kernel_stack ||
		   state->old.flags != site->flags) {
		wait_site_differs(t->tid, t->at);
	} else if (site->differs) {
		site->differs--;
	}
}

/* ---- the GIL's holder ---- */

/* Walks the Python frames of the GIL's holder, while it runs. */
static __always_inline void walk_holder(struct pp_walk *w, __u32 slot, const struct pp_thread *t,
					struct pp_wait_site *site, __u64 look_ns)
{
	__u32 index = t->python - 1;
	struct pp_python *py = t->python ? bpf_map_lookup_elem(&pythons, &index) : NULL;
	__u64 holder = py ? gil_holder(t, py) : 0;
	bool is_second;

	if (!holder || holder == t->thread_state)
		return; /* released since: nobody is to blame */
	is_second = w->has_user;
	walk_reset(w, 0, look_ns, PP_SWITCH_WALK_NS);
	if (is_second)
		walk_clock_hurry(w);
	w->thread_state = holder;
	walk_python_only(slot);
	site->blame_tid = state_thread_id(w, py);
	walk_emit_stacks(slot);
	site->blame_stack = w->hash;
}

/* Starts the sums of a wait for the GIL afresh: each such wait has a holder of its own, and sums
 * are kept apart by holder. */
static __always_inline void blame(const struct switch_state *state, struct pp_walk *w, __u32 slot,
				  struct pp_thread *t)
{
	struct pp_wait_site *site = wait_site_at(t, t->at);

	wait_site_count(t->tid, t->at, COUNTING_SWITCH);
	site->blame_stack = site->blame_tid = 0;
	if (w)
		walk_holder(w, slot, t, site, state->look_ns);
}

/* Handles an unwind that is due when no scratch slot is free.  Returns nonzero when nothing is
 * known of the wait's site. */
static __always_inline int look_fails(struct pp_thread *t, __u32 look)
{
	if (look == LOOK_AGAIN) {
		t->walk_weight = 0;
		t->wait = wait_site_reason(wait_site_at(t, t->at));
		wait_site_put_off(t->tid, t->at);
	}
	return look == LOOK_NEW;
}

/* Identifies the current thread.  This is a function of its own because the event that it may send
 * to the agent lies on the stack, which the walks need on 5.10. */
__noinline int look_identify(__u32 slot)
{
	struct task_struct *task = (struct task_struct *)bpf_get_current_task();
	struct pp_config *cfg = config_get();
	struct pp_walk *w = walk_get(slot);

	if (!w || !cfg)
		return 1;
	identify(w, task, bpf_get_current_pid_tgid(), BPF_CORE_READ(task, flags), true, cfg);
	return 0;
}

int thread_look(__u32 tid, __u32 slot, __u32 task_state, __u32 look)
{
	struct pp_config *cfg = config_get();
	struct pp_thread *t = cfg ? thread_find(tid, cfg) : NULL;
	struct pp_walk *w = walk_get(slot);
	__u32 zero = 0;
	struct switch_state *state = bpf_map_lookup_elem(&switches, &zero);

	if (!t || !state)
		return 1;
	if (!w || look_identify(slot)) {
		if (look_fails(t, look))
			return 1;
	} else if (look != LOOK_HOLDER) {
		look_at_thread(state, w, slot, t, task_state, look, cfg);
	}
	cfg = config_get();
	if (t->wait == PP_WAIT_GIL && cfg && cfg->flags & PP_CONFIG_BLAME)
		blame(state, w, slot, t);
	return 0;
}

int thread_looked(__u32 tid, __u64 now_ns)
{
	struct pp_config *cfg = config_get();
	struct pp_thread *t = cfg ? thread_find(tid, cfg) : NULL;
	__u32 zero = 0;
	struct switch_state *state = bpf_map_lookup_elem(&switches, &zero);
	__u64 ended_ns = bpf_ktime_get_ns(), spent_ns;

	if (!t || !state)
		return 1;
	budget_spend(&state->budget, ended_ns - state->look_ns);
	times_add(PP_PROGRAM_SWITCH, ended_ns - state->look_ns);
	/* The look makes the wait longer, and the weight must not multiply that time.  The ledger
	 * counts it as a part of the wait, whereas the scheduler takes it for time of the thread
	 * that is switched in. */
	spent_ns = thread_clock(t, ended_ns) - now_ns;
	ledger_add(t, t->wait, spent_ns);
	t->since_ns += spent_ns;
	return 0;
}
