/* SPDX-License-Identifier: BSD-2-Clause */
/* Measures the cost of hits of exact calls and exact lines at private functions that have such
 * sites. They do nothing, so all the time between two hits is the cost of the hits. */
#ifndef PROBES_HIT_COSTS_H
#define PROBES_HIT_COSTS_H

#include <stdint.h>

#include <pyprofd/calls.h>

struct calls_side;

/* Takes some milliseconds.  Uses site 0, which is unused again after it, and leaves no row.
 * Returns 0; -errno: the kernel refused the link. */
int line_costs_measure(struct calls_side *side, struct pp_line_costs *ret_costs);

struct call_costs {
	struct pp_call_costs taken_off; /* ns from one event to the next */
	uint64_t hit_ns;		/* of one hit, half of a call */
};
/* Takes some tens of milliseconds.  Uses site 0, which is unused again after it, and leaves no
 * node. Returns 0; -errno: the kernel refused the links. */
int call_costs_measure(struct calls_side *side, struct call_costs *ret_cost);

#endif
