/* SPDX-License-Identifier: BSD-2-Clause */
/* Decides by what pyprofd took of a core whether it samples less, or as much as before: --max-cpu.
 * Reads no clock. */
#ifndef AGENT_GOVERNOR_H
#define AGENT_GOVERNOR_H

#include <stdbool.h>
#include <stdint.h>

/* The rate is halved so often at most. */
#define GOVERNOR_STEPS_MAX 6U
/* So many windows in a row must leave room before a step is taken back. */
#define GOVERNOR_CALM_WINDOWS 3U

struct governor {
	uint32_t cap_ppm;   /* of one core; 0: none */
	unsigned int steps; /* how often the rate is halved now */
	unsigned int calm;  /* windows in a row that left room for twice the rate */
	uint64_t spent_ns, looked_ns; /* as of the last look; looked_ns 0: there was none */
};

/* Looks at the end of a window: spent_ns is all CPU time since the start, now_ns the time.  The
 * first look only begins: what the start takes is not the rate's doing.  Returns whether `steps`
 * has changed, and in *ret_ppm what was taken of a core since the last look. */
bool governor_look(struct governor *governor, uint64_t spent_ns, uint64_t now_ns,
		   uint32_t *ret_ppm);

#endif
