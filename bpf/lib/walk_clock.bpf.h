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

#endif
