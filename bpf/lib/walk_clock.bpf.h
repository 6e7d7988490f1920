/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the walk at hand, Python or native, has cost: it has a bound. */
#ifndef BPF_LIB_WALK_CLOCK_H
#define BPF_LIB_WALK_CLOCK_H

#include "lib/maps.bpf.h"

static __always_inline void walk_clock_start(struct pp_walk *w, __u64 now_ns)
{
	w->steps = 0;
	w->clock_ns = now_ns;
	w->spent_ns = 0;
}

/* Whether the next step is one that reads the clock. */
static __always_inline bool walk_clock_is_due(const struct pp_walk *w)
{
	return !((w->steps + 1) % PP_CLOCK_STEPS);
}

/* Counts a step.  Whether the walk has cost too much. */
static __always_inline bool walk_clock_step(struct pp_walk *w)
{
	__u64 now_ns, cost_ns;

	if (++w->steps % PP_CLOCK_STEPS)
		return false;
	now_ns = bpf_ktime_get_ns();
	cost_ns = now_ns - w->clock_ns;
	w->clock_ns = now_ns;
	w->spent_ns += cost_ns < PP_MAX_CLOCK_NS ? cost_ns : PP_MAX_CLOCK_NS;
	return w->spent_ns > PP_MAX_WALK_NS;
}

#endif
