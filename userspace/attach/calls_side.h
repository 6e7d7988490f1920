/* SPDX-License-Identifier: BSD-2-Clause */
/* The loaded BPF object of exact calls or lines: its programs and tables.  It shares the maps of
 * the first object (kernel_side.h).  Opening it takes the kernel a second.  One thread at a
 * time. */
#ifndef ATTACH_CALLS_SIDE_H
#define ATTACH_CALLS_SIDE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <pyprofd/calls.h>

#include "base/cleanup.h"

struct kernel_side;
struct pyprofd_calls;

/* What the object counts.  One run counts one of them: each slows programs down by itself. */
enum exact_what { EXACT_CALLS, EXACT_LINES };

struct calls_side {
	struct pyprofd_calls *skeleton;	  /* owned */
	const struct kernel_side *kernel; /* borrowed */
	enum exact_what what;
	/* Descriptors that the object owns: a program for links of the site's number, the tables of
	 * calls (nodes, threads), and those of lines (rows, runs). */
	int program[PP_CALL_EVENTS];
	int nodes, threads, rows, runs;
	int locks;	  /* kernel_side_parts() */
	bool has_cookies; /* a hit tells the number of its link's site (Linux 5.15) */
};

/* Loads the programs, and has the tables, of one of them.  Returns 0 or -errno with one line in
 * `why`. */
int calls_side_open(const struct kernel_side *kernel, enum exact_what what, char *why,
		    size_t why_size, struct calls_side **ret_side);
void calls_side_free(struct calls_side *side); /* NULL is allowed */
DEFINE_OWNED(struct calls_side, calls_side)

/* Says where the arguments of a site lie; a hit before that does nothing.  number: the link's
 * cookie, below PP_CALL_SITES_MAX; where the kernel has no cookies (before 5.15) all are number 0.
 * Returns 0 or -errno. */
int calls_side_set_site(struct calls_side *side, uint32_t number, enum pp_call_event event,
			const struct pp_call_site *site);
/* Says what is taken off from the time between two hits: struct pp_call_costs, or of lines struct
 * pp_line_costs.  Returns 0 or -errno. */
int calls_side_set_costs(struct calls_side *side, const void *costs);
/* Says whose lines count.  Returns 0 or -errno. */
int calls_side_set_target(struct calls_side *side, const struct pp_line_target *target);
/* Reads the sums of all CPUs: struct pp_call_sums, or of lines struct pp_line_sums.  Returns 0;
 * -ENOMEM; -errno. */
int calls_side_get_sums(const struct calls_side *side, void *ret_sums);
/* Sets them to zero.  Returns 0; -ENOMEM; -errno. */
int calls_side_clear_sums(struct calls_side *side);

#endif
