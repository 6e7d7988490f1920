/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The deadline of an event, in time that really passes: all of its walks have it together. */
#ifndef BPF_LIB_WALK_CLOCK_H
#define BPF_LIB_WALK_CLOCK_H

#include "lib/maps.bpf.h"

static __always_inline void walk_clock_start(struct pp_walk *w, __u64 now_ns, __u64 limit_ns)
{
	w->steps = 0;
	w->deadline_ns = now_ns + limit_ns;
}

/* Whether the next step is one that reads the clock. */
static __always_inline bool walk_clock_is_due(const struct pp_walk *w)
{
	return !((w->steps + 1) % PP_CLOCK_STEPS);
}

/* Counts a step.  Whether the time is over. */
static __always_inline bool walk_clock_step(struct pp_walk *w)
{
	return unlikely(!(++w->steps % PP_CLOCK_STEPS)) && bpf_ktime_get_ns() >= w->deadline_ns;
}

/* This step cost as much as many: the next one looks at the clock. */
static __always_inline void walk_clock_hurry(struct pp_walk *w)
{
	w->steps |= PP_CLOCK_STEPS - 1;
}

#endif
