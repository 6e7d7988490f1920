/* SPDX-License-Identifier: BSD-2-Clause */
/* Measures the cost of hits of exact calls and exact lines at private functions that have such
 * sites. They do nothing, so all the time between two hits is the cost of the hits. */
#ifndef PROBES_HIT_COSTS_H
#define PROBES_HIT_COSTS_H

#include <stdbool.h>
#include <stdint.h>

#include <pyprofd/calls.h>

struct calls_side;

/* Takes some milliseconds.  Uses site 0, which is unused again after it, and leaves no row.
 * Returns 0; -errno: the kernel refused the link. */
int line_costs_measure(struct calls_side *side, struct pp_line_costs *ret_costs);

struct exact_links;

typedef void own_site(const char *file, const char *name, uint64_t line);
own_site own_site_entry, own_site_return, own_site_line;

/* Attaches the programs of the first `events` of enum pp_call_event to them, in this process.
 * Returns 0 or -errno. */
int own_sites_attach(const struct calls_side *side, unsigned int events,
		     struct exact_links *ret_links);
/* From here on, or no longer, their hits do something: they are of site 0.  Returns 0 or -errno. */
int own_sites_use(struct calls_side *side, unsigned int events, bool is_used);

struct call_costs {
	struct pp_call_costs taken_off; /* ns from one event to the next */
	uint64_t hit_ns;		/* of one hit, half of a call */
};
/* Takes some tens of milliseconds.  Uses site 0, which is unused again after it, and leaves no
 * node. Returns 0; -errno: the kernel refused the links. */
int call_costs_measure(struct calls_side *side, struct call_costs *ret_cost);

#endif
