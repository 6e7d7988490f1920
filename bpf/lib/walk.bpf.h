/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What BPF programs call for a walk: a scratch slot, a reset, the stacks, and sending them. 
 * Functions with external linkage are in walk.bpf.c. */
#ifndef BPF_LIB_WALK_H
#define BPF_LIB_WALK_H

#include "lib/frames.bpf.h"

/* ---- the deadline of an event, in elapsed time, which all of its walks share ---- */

static __always_inline void walk_clock_start(struct pp_walk *w, __u64 now_ns, __u64 limit_ns)
{
	w->steps = 0;
	w->deadline_ns = now_ns + limit_ns;
	w->is_urgent = limit_ns <= PP_SWITCH_WALK_NS;
}

/* Returns whether the next step reads the clock. */
static __always_inline bool walk_clock_is_due(const struct pp_walk *w)
{
	return !((w->steps + 1) % PP_CLOCK_STEPS);
}

/* Makes the next step read the clock: either this step was as expensive as many others, or little
 * time may be left. */
static __always_inline void walk_clock_hurry(struct pp_walk *w)
{
	w->steps |= PP_CLOCK_STEPS - 1;
}

/* Gives the walk of the user stack PP_SWITCH_USER_NS from now, even where the walk of the kernel
 * stack has used up the time.  Otherwise a slow CPU would read no Python frame, and by the time the
 * agent reads them, the thread may have run on. */
static __always_inline void walk_clock_extend(struct pp_walk *w)
{
	__u64 least_ns = bpf_ktime_get_ns() + PP_SWITCH_USER_NS;

	if (w->deadline_ns < least_ns)
		w->deadline_ns = least_ns;
	w->steps = PP_CLOCK_STEPS / 2;
}

/* Delays the first reading of the clock by PP_CLOCK_STEPS / 2 steps, whatever they cost.  For
 * threads that go on running: the agent could not finish such a stack. */
static __always_inline void walk_clock_grant(struct pp_walk *w)
{
	w->is_urgent = 0;
	w->steps = PP_CLOCK_STEPS / 2;
}

/* Counts a step.  Returns whether the time is over. */
static __always_inline bool walk_clock_step(struct pp_walk *w)
{
	__u64 now_ns;

	if (likely(++w->steps % PP_CLOCK_STEPS))
		return false;
	now_ns = bpf_ktime_get_ns();
	if (w->is_urgent && now_ns + PP_CLOCK_NEAR_NS >= w->deadline_ns)
		walk_clock_hurry(w);
	else if (w->is_urgent)
		w->steps |= PP_CLOCK_STEPS / 2; /* twice as often */
	return now_ns >= w->deadline_ns;
}

/* ---- walks ---- */

/* Names the kernel stack of w->kernel_bytes bytes. */
int walk_kernel_hash(__u32 slot);
/* Walks the user stack from w's registers: Python frames, then native ones. */
int walk_user(__u32 slot);
/* Finds the current thread's state and its first Python frame.  Returns nonzero when there is none;
 * w->py_stop says why. */
int walk_python_begin(__u32 slot);
/* Takes the next few Python frames.  Returns nonzero when the walk is over. */
int walk_python_steps(__u32 slot);
/* Walks only the Python frames of w->thread_state, which may be another thread's. */
int walk_python_only(__u32 slot);
/* Sends what is new and counts the sample. */
int walk_emit(__u32 slot);
/* Sends an incomplete unwind.  Returns nonzero when it could not be sent and the caller is to count
 * it. */
int walk_emit_incomplete(__u32 slot);
/* Sends what is new and counts nothing; w->hash and w->count_flags are final then. */
int walk_emit_stacks(__u32 slot);
/* threads.bpf.c */
int thread_see(__u32 slot);
int thread_sampled(__u32 slot);

/* The contexts that may each have a walk of their own on one CPU at the same time. */
enum scratch_level {
	SCRATCH_INTERRUPT, /* and all that runs with preemption off: a switch, a wake-up */
	SCRATCH_NMI,	   /* or an interrupt upon a wake-up in a softirq */
	SCRATCH_TASK,	   /* a program that can be preempted, as those of user probes */
};

struct scratch {
	struct pp_walk *walk; /* NULL: none was free, which is counted */
	__u32 *is_taken;
	__u32 slot;
};

static __always_inline struct scratch_claims *scratch_begin(struct scratch *taken)
{
	__u32 zero = 0;

	taken->walk = NULL;
	return bpf_map_lookup_elem(&scratch_claims, &zero);
}

/* The claim is made: what it is on. */
static __always_inline void scratch_use(struct scratch *taken, struct scratch_claims *claims,
					enum scratch_level level)
{
	__u32 cpu = bpf_get_smp_processor_id();
	__u64 *place = bpf_map_lookup_elem(&cpu_slots, &cpu);

	taken->is_taken = &claims->is_taken[level];
	/* A CPU that has just come online has no walks assigned yet. */
	if (place && *place && level < scratch_levels) {
		taken->slot = ((__u32)*place - 1) * scratch_levels + level;
		taken->walk = walk_get(taken->slot);
	}
	if (unlikely(!taken->walk)) {
		*taken->is_taken = 0;
		count_loss(PP_LOSS_NO_SCRATCH);
	}
}

/* Claims a walk for programs that run with preemption off.  Any program that interrupts one of them
 * on its CPU ends, and gives its slot back, before the interrupted one continues.  So a look and a
 * store make a safe claim, even when an interrupt comes between the two. */
static __always_inline void scratch_enter(struct scratch *taken)
{
	struct scratch_claims *claims = scratch_begin(taken);

	if (!claims)
		return;
	if (likely(!claims->is_taken[SCRATCH_INTERRUPT])) {
		claims->is_taken[SCRATCH_INTERRUPT] = 1;
		scratch_use(taken, claims, SCRATCH_INTERRUPT);
	} else if (!claims->is_taken[SCRATCH_NMI]) {
		claims->is_taken[SCRATCH_NMI] = 1;
		scratch_use(taken, claims, SCRATCH_NMI);
	} else {
		count_loss(PP_LOSS_NO_SCRATCH);
	}
}

/* Claims a walk for programs that can be preempted but stay on their CPU: another task's program
 * may run between any two instructions, and still run when this one continues.  This needs cmpxchg,
 * Linux 5.12. */
static __always_inline void scratch_enter_preemptible(struct scratch *taken)
{
	struct scratch_claims *claims = scratch_begin(taken);

	if (!claims)
		return;
	if (__sync_val_compare_and_swap(&claims->is_taken[SCRATCH_TASK], 0, 1))
		count_loss(PP_LOSS_NO_SCRATCH);
	else
		scratch_use(taken, claims, SCRATCH_TASK);
}

static __always_inline void scratch_leave(struct scratch *taken)
{
	*(volatile __u32 *)taken->is_taken = 0;
}

/* Resets a walk.  limit_ns is the time limit of the event that began at started_ns. */
static __always_inline void walk_reset(struct pp_walk *w, __u64 weight, __u64 started_ns,
				       __u64 limit_ns)
{
	w->started_ns = started_ns;
	w->weight = weight;
	w->count_flags = 0;
	w->hash = 0;
	w->kernel_hash = 0;
	w->kernel_bytes = 0;
	w->kind = PP_KIND_CPU;
	w->detail = 0;
	w->has_user = 0;
	w->is_resumable = 0;
	w->is_modest = 0;
	w->by_frame_pointer = 0;
	w->stack_changes = 0;
	w->is_unsure = 0;
	w->stop = PP_STOP_NONE;
	w->py_stop = PP_PY_STOP_NONE;
	w->native_stored = w->native_count = 0;
	w->since_segment = w->foldable = 0;
	w->thread_state = w->python_frame = w->cframe = 0;
	w->python_stored = w->python_count = 0;
	w->segment_frames = w->segment_count = w->segment_next = 0;
	walk_clock_start(w, started_ns, limit_ns);
	w->window_bytes = 0;
}

static __always_inline void take_kernel_stack(struct pp_walk *w, __u32 slot, void *ctx)
{
	long bytes = bpf_get_stack(ctx, w->kernel.address, PP_MAX_KERNEL_FRAMES * 8, 0);

	if (bytes <= 0)
		return;
	w->kernel_bytes = bytes;
	walk_kernel_hash(slot);
}

/* Returns whether the agent is to finish the stack. */
static __always_inline bool is_incomplete(const struct pp_walk *w)
{
	/* Generation 0: the process is exiting or not announced yet, so the agent could not finish
	 * the stack. */
	if (!w->id.generation)
		return false;
	return w->is_resumable || w->py_stop == PP_PY_STOP_MAX_TIME || w->stop == PP_STOP_NO_ROWS ||
	       w->stop == PP_STOP_NO_MAPPING || w->stop == PP_STOP_NO_IMAGE ||
	       w->stop == PP_STOP_MAX_TIME;
}

#endif
