/* SPDX-License-Identifier: BSD-2-Clause */
/* The loaded BPF object of user probes and tracepoints: its programs, and what a hit of each site
 * does.  It shares the maps of the first object (kernel_side.h).  Opening it takes the kernel a
 * second: a thread beside the loop does so.  One thread at a time. */
#ifndef ATTACH_PROBE_SIDE_H
#define ATTACH_PROBE_SIDE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <pyprofd/probe.h>

#include "base/cleanup.h"

struct kernel_side;
struct probe_side;

/* Loads the programs.  only_site: the site of a tracepoint where the kernel has no cookies for them
 * (see probe_side_needs_own()), else 0.  Returns 0 or -errno with one line in `why`. */
int probe_side_open(const struct kernel_side *kernel, uint32_t only_site, char *why,
		    size_t why_size, struct probe_side **ret_side);
void probe_side_free(struct probe_side *side); /* NULL is allowed */
DEFINE_OWNED(struct probe_side, probe_side)

/* Return descriptors that the object owns. */
int probe_side_probe_program(const struct probe_side *side);
int probe_side_tracepoint_program(const struct probe_side *side);
/* Maps: struct probe_links_options. */
int probe_side_site_now(const struct probe_side *side);
int probe_side_programs(const struct probe_side *side);

/* Says what a hit of a site does; a hit before that does nothing.  number: 1 .. PP_SITES_MAX - 1.
 * Returns 0 or -errno. */
int probe_side_set_site(struct probe_side *side, uint32_t number, const struct pp_site *site);

/* Reads the costs of all probes, summed over all CPUs. */
int probe_side_get_hits(const struct probe_side *side, struct pp_hits ret_hits[PP_PROBES_MAX]);

#endif
