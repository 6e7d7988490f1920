/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The look at a wait: the stack of the thread that leaves, why it waits, and who has the GIL.  All runs in the
 * switch, as that thread. */
#include "lib/look.bpf.h"
#include "lib/budget.bpf.h"
#include "lib/gil.bpf.h"
#include "lib/identify.bpf.h"
#include "lib/times.bpf.h"
#include "lib/wait_reason.bpf.h"
#include "lib/walk.bpf.h"

static __always_inline bool waits_for_gil(const struct pp_thread *t, __u64 word)
{
	__u32 index = t->python - 1;
	struct pp_python *py = t->python ? bpf_map_lookup_elem(&pythons, &index) : NULL;

	return py && gil_owns(t, py, word);
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
				   &state->site);
	if (wait == PP_WAIT_LOCK && waits_for_gil(t, state->site.argument))
		wait = PP_WAIT_GIL;
	t->wait = wait;
	return 0;
}

/* ---- the stack of the thread that leaves ---- */

/* Keeps what later waits of the thread use of a walk's results. */
static __always_inline void remember_python(struct pp_thread *t, struct pp_walk *w)
{
	__u32 index = w->image.python - 1;
	struct pp_python *py = NULL;

	t->python = t->thread_state = t->gil = 0;
	if (w->image.python && w->count_flags & PP_COUNT_PYTHON)
		py = bpf_map_lookup_elem(&pythons, &index);
	if (!py)
		return;
	t->python = w->image.python;
	t->python_bias = w->image.python_bias;
	t->thread_state = w->thread_state;
	t->gil = gil_find(w, py);
}

/* The whole stack of the thread that leaves, into its place. */
static __always_inline void walk_place(struct pp_walk *w, __u32 slot, struct pp_thread *t,
				       struct pp_place *place, const struct user_registers *regs)
{
	if (!use_registers(w, regs)) {
		w->thread_pointer =
			task_thread_pointer((struct task_struct *)bpf_get_current_task());
		walk_user(slot);
	}
	remember_python(t, w);
	walk_emit_stacks(slot);
	place->user_stack = w->hash;
	place->kernel_stack = w->kernel_hash;
	place->flags = w->count_flags | w->stop << PP_COUNT_STOP_SHIFT |
		       w->py_stop << PP_COUNT_PY_STOP_SHIFT;
	FORGET();
}

static __always_inline void walk_thread(struct switch_state *state, struct pp_walk *w, __u32 slot,
					struct pp_thread *t, struct pp_place *place,
					__u32 task_state)
{
	struct user_registers *regs = (void *)state->registers;

	copy_saved(regs, (struct task_struct *)bpf_get_current_task());
	if (!t->id.generation) /* told of only now */
		t->id.generation = w->id.generation;
	walk_place(w, slot, t, place, regs);
	/* Only now are Python and the GIL known of a thread that was not walked before. */
	thread_set_wait(t->tid, task_state);
	place->flags |= t->wait << PP_COUNT_WAIT_SHIFT;
}

/* The entry for a place that is new: the next one in turn gives way. */
static __always_inline struct pp_place *place_renew(struct pp_thread *t, __u32 task_state,
						    const struct pp_config *cfg)
{
	struct pp_place *place;
	__u32 at = PP_PLACE_PREEMPTED;

	if (task_state) {
		at = t->turn + 1;
		if (at >= PP_PLACE_PREEMPTED)
			at = 0;
		t->turn = at;
	}
	place_count(t->tid, at, COUNTING_SWITCH);
	place = place_at(t, at);
	place_clear(place, cfg);
	t->at = at;
	return place;
}

/* The walk of a place that is new, or of a known one that is due. */
static __always_inline void look_at_thread(struct switch_state *state, struct pp_walk *w,
					   __u32 slot, struct pp_thread *t, __u32 task_state,
					   __u32 look, const struct pp_config *cfg)
{
	struct pp_place *place =
		look == LOOK_NEW ? place_renew(t, task_state, cfg) : place_at(t, t->at);

	state->old.user_stack = place->user_stack;
	state->old.kernel_stack = place->kernel_stack;
	state->old.flags = place->flags;
	walk_thread(state, w, slot, t, place, task_state);
	cfg = config_get(); /* found again, as 5.10 has no stack for it below the walk */
	if (look == LOOK_NEW) {
		if (task_state && cfg)
			t->last_key = place_key(t, &state->site, task_state, cfg);
		place->key = t->last_key;
	} else if (state->old.user_stack != place->user_stack ||
		   state->old.kernel_stack != place->kernel_stack ||
		   state->old.flags != place->flags) {
		place_differs(t->tid, t->at);
	} else if (place->differs) {
		place->differs--;
	}
}

/* ---- the GIL's holder ---- */

/* Where the GIL's holder is: its Python frames, read while it runs. */
static __always_inline void walk_holder(struct pp_walk *w, __u32 slot, const struct pp_thread *t,
					struct pp_place *place, __u64 look_ns)
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
	place->blame_tid = state_thread_id(w, py);
	walk_emit_stacks(slot);
	place->blame_stack = w->hash;
}

/* Each wait for the GIL has a holder of its own; sums are kept apart by it. */
static __always_inline void blame(const struct switch_state *state, struct pp_walk *w, __u32 slot,
				  struct pp_thread *t)
{
	struct pp_place *place = place_at(t, t->at);

	place_count(t->tid, t->at, COUNTING_SWITCH);
	place->blame_stack = place->blame_tid = 0;
	if (w)
		walk_holder(w, slot, t, place, state->look_ns);
}

/* A walk is due, and there is no slot for it.  Nonzero: nothing is known of the wait's place. */
static __always_inline int look_fails(struct pp_thread *t, __u32 look)
{
	if (look == LOOK_AGAIN) {
		t->walk_weight = 0;
		t->wait = place_wait(place_at(t, t->at));
		place_put_off(t->tid, t->at);
	}
	return look == LOOK_NEW;
}

/* Whose the current thread is.  Apart, as what it tells the agent of lies on the stack, which the walks need on 5.10. */
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
	/* The look makes the wait longer; its weight must not multiply that time.  In the ledger it is
	 * a part of the wait: the scheduler takes it for time of the thread that comes. */
	spent_ns = thread_clock(t, ended_ns) - now_ns;
	ledger_add(t, t->wait, spent_ns);
	t->since_ns += spent_ns;
	return 0;
}
