/* SPDX-License-Identifier: BSD-2-Clause */
/* How much slower programs go while a probe is on.  A program that computes all the time does less
 * in that time than in as much time without the probe, so what was counted stands for more.  The
 * measure is the programs' own CPU time, without that of the probes.  Reads no clock. */
#ifndef PROBES_PROBE_PACE_H
#define PROBES_PROBE_PACE_H

#include <stdint.h>

/* At one moment, since any earlier one. */
struct probe_pace_point {
	uint64_t time_ns;
	uint64_t own_ns; /* the programs' CPU time without that of the probes */
};

/* All zeros: nothing is known. */
struct probe_pace {
	double on_ns, on_own_ns;	/* of recent times in which the probe was on */
	double all_ns, all_own_ns;	/* from the beginning of each to that of the next */
	struct probe_pace_point opened; /* time_ns 0: not yet */
};

/* The probe goes on: hits count from here on. */
void probe_pace_open(struct probe_pace *pace, const struct probe_pace_point *point);
/* Hits do not count any more. */
void probe_pace_close(struct probe_pace *pace, const struct probe_pace_point *point);
/* The programs are others now. */
void probe_pace_restart(struct probe_pace *pace);
/* Returns by how much more a hit stands for than the times say: 1 when it is not known. */
double probe_pace_correction(const struct probe_pace *pace);

#endif
