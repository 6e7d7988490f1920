/* SPDX-License-Identifier: BSD-2-Clause */
/* Estimates by how much exact counts slow a process down.  No global state; any thread. */
#ifndef PROBES_EXACT_PACE_H
#define PROBES_EXACT_PACE_H

#include <stddef.h>
#include <stdint.h>

/* What a process had in a stretch of time. */
struct exact_pace {
	uint64_t cpu_ns;   /* CPU time */
	uint64_t delay_ns; /* for how long it was ready and had no CPU */
};

/* Returns the largest share of a process's time that its probes took.  Each process is taken to
 * have hits as it has CPU time; hits of all its threads count as if one had them all, for only one
 * thread of an interpreter runs Python at a time.  cost_ns: of the hits of all of them. */
double exact_pace_share(const struct exact_pace *of, size_t count, uint64_t elapsed_ns,
			uint64_t cost_ns);

#endif
