/* SPDX-License-Identifier: BSD-2-Clause */
/* Measures what hits of the probes of exact calls cost, with a private function of our own that has
 * such sites: it does nothing, so all time from one of its hits to the next is theirs. */
#ifndef AGENT_CALLS_COST_H
#define AGENT_CALLS_COST_H

#include <stdint.h>

#include <pyprofd/calls.h>

struct calls_side;

struct calls_cost {
	struct pp_call_costs taken_off; /* ns from one event to the next */
	uint64_t hit_ns;		/* of one hit, half of a call */
};
/* Takes some tens of milliseconds.  Uses site 0, which is unused again after it, and leaves no
 * node. Returns 0; -errno: the kernel refused the links. */
int calls_cost_measure(struct calls_side *side, struct calls_cost *ret_cost);

#endif
