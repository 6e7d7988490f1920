/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The deadline of an event, in elapsed time, which all of its walks share. */
#ifndef BPF_LIB_WALK_CLOCK_H
#define BPF_LIB_WALK_CLOCK_H

#include "lib/maps.bpf.h"

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

/* Makes the next step read the clock, because this one cost as much as many or little time may be
 * left. */
static __always_inline void walk_clock_hurry(struct pp_walk *w)
{
	w->steps |= PP_CLOCK_STEPS - 1;
}

/* After the kernel's own walk, which may have taken all: the user stack's has some time in any
 * case.  Without it a slow CPU reads no Python frame, and by the time that the agent does the
 * thread may have run on. */
static __always_inline void walk_clock_extend(struct pp_walk *w)
{
	__u64 least_ns = bpf_ktime_get_ns() + PP_SWITCH_USER_NS;

	if (w->deadline_ns < least_ns)
		w->deadline_ns = least_ns;
	w->steps = PP_CLOCK_STEPS / 2;
}

/* Puts the first reading of the clock off by some steps, whatever they cost: the thread keeps
 * running, so the agent could not finish its stack. */
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

#endif
