/* SPDX-License-Identifier: BSD-2-Clause */
/* Functions of our own with sites as an interpreter has them, to measure what hits cost.  They do
 * nothing, so all time from one of their hits to the next is the hits'. */
#ifndef PROBES_OWN_SITES_H
#define PROBES_OWN_SITES_H

#include <stdbool.h>
#include <stdint.h>

#include <pyprofd/calls.h>

struct calls_side;
struct exact_links;

typedef void own_site(const char *file, const char *name, uint64_t line);
own_site own_site_entry, own_site_return, own_site_line;

/* Attaches the programs of the first `events` of enum pp_call_event to them, in this process.
 * Returns 0 or -errno. */
int own_sites_attach(const struct calls_side *side, unsigned int events,
		     struct exact_links *ret_links);
/* From here on, or no longer, their hits do something: they are of site 0.  Returns 0 or -errno. */
int own_sites_use(struct calls_side *side, unsigned int events, bool is_used);

#endif
