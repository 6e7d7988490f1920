/* SPDX-License-Identifier: BSD-2-Clause */
/* Measures what hits of the probes of exact calls cost, with a private function of our own that has
 * such sites: it does nothing, so all time from one of its hits to the next is theirs. */
#ifndef PROBES_CALL_COSTS_H
#define PROBES_CALL_COSTS_H

#include <stdint.h>

#include <pyprofd/calls.h>

struct calls_side;

struct call_costs {
	struct pp_call_costs taken_off; /* ns from one event to the next */
	uint64_t hit_ns;		/* of one hit, half of a call */
};
/* Takes some tens of milliseconds.  Uses site 0, which is unused again after it, and leaves no
 * node. Returns 0; -errno: the kernel refused the links. */
int call_costs_measure(struct calls_side *side, struct call_costs *ret_cost);

#endif
