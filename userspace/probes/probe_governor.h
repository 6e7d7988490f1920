/* SPDX-License-Identifier: BSD-2-Clause */
/* Decides for how much of the time each probe is on, so that together they slow the probed programs
 * down by no more than --max-slowdown: by the hits of a period, what a hit costs, and the CPU time
 * that the programs took.  Reads no clock. */
#ifndef PROBES_PROBE_GOVERNOR_H
#define PROBES_PROBE_GOVERNOR_H

#include <stdbool.h>
#include <stdint.h>

#include <pyprofd/probe.h>

#define PROBE_SHARE_FULL 1000000U /* ppm */
#define PROBE_SHARE_MIN 10000U	  /* an on and an off take as long as what they bring */

struct probe_governed {
	bool is_used;	 /* there are hits to govern */
	bool stays_on;	 /* leaks=yes: its cost is told, and not bounded */
	uint32_t leader; /* the probe whose share it has; itself: it has one of its own */
	uint32_t hit_ns; /* of a hit, without what our program takes */
	/* What the last look has found. */
	uint32_t share_ppm; /* of the time, in which it is to be on */
	uint32_t cost_ppm;  /* of a CPU, all in all */
	/* Of a CPU, if it stayed on: the largest of the last periods. */
	double need;
	uint64_t on_ns, hits, ns; /* as of the last look, since the start */
};

struct probe_governor {
	uint32_t bound_ppm; /* of the CPU time of the programs */
	struct probe_governed probe[PP_PROBES_MAX];
	uint32_t count;
	uint32_t cost_ppm; /* of the programs' CPU time, when looked last */
};

/* What has happened since the start. */
struct probe_costs {
	struct pp_hits hits[PP_PROBES_MAX];
	uint64_t on_ns[PP_PROBES_MAX]; /* time in which the probe was on */
};

/* What was there to be slowed down in a period. */
struct probe_programs {
	uint64_t elapsed_ns;
	uint64_t cpu_ns; /* of the programs, probes included */
	/* The least that counts as their time: a program that sleeps is not much later for what
	 * is a large part of next to nothing. */
	uint64_t least_ns;
};

/* Looks at the end of a period.  Returns whether a share has changed. */
bool probe_governor_look(struct probe_governor *governor, const struct probe_costs *costs,
			 const struct probe_programs *of);

#endif
