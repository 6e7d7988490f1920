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
struct pyprofd_probe;

struct probe_side_options {
	const struct kernel_side *kernel; /* borrowed */
	/* The site of a tracepoint where the kernel has no cookies for them, else 0. */
	uint32_t only_site;
	uint32_t blocks_max; /* sampled allocations that are held; 0: none are captured */
};
struct probe_side {
	struct pyprofd_probe *skeleton; /* owned */
	struct probe_side_options options;
	/* Descriptors that the object owns; maps: struct probe_links_options. */
	int program, programs;
	int tracepoint_program;
	int alloc_program, alloc_programs; /* of allocators */
	int site_now;
	int blocks;	   /* sampled blocks that are held */
	int debts;	   /* debts[] (pyprofd/probe.h) */
	int payers;	   /* payers[] */
	bool has_sessions; /* the program of allocators is a session's */
};

/* Loads the programs.  Returns 0 or -errno with one line in `why`. */
int probe_side_open(const struct probe_side_options *options, char *why, size_t why_size,
		    struct probe_side **ret_side);
void probe_side_free(struct probe_side *side); /* NULL is allowed */
DEFINE_OWNED(struct probe_side, probe_side)

/* Says what a hit of a site does; a hit before that does nothing.  number: 1 .. PP_SITES_MAX - 1.
 * Returns 0 or -errno. */
int probe_side_set_site(struct probe_side *side, uint32_t number, const struct pp_site *site);

/* Says which hits of a probe are counted.  Returns 0 or -errno. */
int probe_side_set_gate(struct probe_side *side, uint32_t probe, const struct pp_gate *gate);
/* Says which part of a process's hits of a probe is taken.  gate: struct pp_payer.  Returns 0;
 * -ENOENT: it has none any more; -errno. */
int probe_side_set_payer_gate(const struct probe_side *side, const struct pp_payer_key *key,
			      uint32_t gate);
/* Says that a file has an allocator: what it maps for itself is not counted.  file: its number in
 * frames.  Returns 0 or -errno. */
int probe_side_add_allocator(struct probe_side *side, uint32_t file);
/* Reads the costs of all probes, summed over all CPUs. */
int probe_side_get_hits(const struct probe_side *side, struct pp_hits ret_hits[PP_PROBES_MAX]);

#endif
