/* SPDX-License-Identifier: BSD-2-Clause */
/* When the links of a probe are on that is too dear to stay on: once a period, at a random time in
 * it, for a share of it.  What is counted meanwhile stands for the whole period.
 * Reads no clock and draws no random numbers. */
#ifndef PROBES_PROBE_DUTY_H
#define PROBES_PROBE_DUTY_H

#include <stdbool.h>
#include <stdint.h>

#include <pyprofd/probe.h>

#define PROBE_DUTY_FULL 1000000U /* parts per million */

struct probe_duty {
	uint64_t period_ns;
	uint32_t share_ppm; /* PROBE_DUTY_FULL: it stays on */
	bool is_on;
	uint64_t began_ns;   /* the period; 0: it has stayed on so far */
	uint64_t changes_ns; /* when it goes on, or off; 0: it stays as it is */
	uint64_t stands_for; /* periods; more than 1 when some have passed unseen */
};

/* Begins with a probe that is on and stays on. */
void probe_duty_begin(struct probe_duty *duty, uint64_t period_ns);
/* Sets the share of time, at least 1 ppm, in which it is on. */
void probe_duty_set(struct probe_duty *duty, uint32_t share_ppm, uint64_t now_ns);
/* Looks whether it is time for a change.  chance: random.  Returns whether the links are to be on
 * now; once they are, probe_duty_open() says until when. */
bool probe_duty_wants_on(struct probe_duty *duty, uint64_t now_ns, uint32_t chance);
/* The links are on since now_ns.  Fills in what of the hits is counted, and how often: as the times
 * say, and `correction` times as often (probe_pace.h). */
void probe_duty_open(struct probe_duty *duty, uint64_t now_ns, double correction,
		     struct pp_gate *ret_gate);

#endif
