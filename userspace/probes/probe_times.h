/* SPDX-License-Identifier: BSD-2-Clause */
/* Which probes are on now, of those whose cost is bounded, for how long each has been, and what a
 * hit of them stands for.  Probes that have a leader go on and off with it.  Reads no clock and
 * draws no random numbers. */
#ifndef PROBES_PROBE_TIMES_H
#define PROBES_PROBE_TIMES_H

#include <stdbool.h>
#include <stdint.h>

#include <pyprofd/probe.h>

/* When the links of a probe are on that is too dear to stay on: once a period, at a random time in
 * it, for a share of it.  What is counted meanwhile stands for the whole period. */
struct probe_duty {
	uint64_t period_ns;
	uint32_t share_ppm; /* BUDGET_FULL: it stays on */
	bool is_on;
	uint64_t began_ns;   /* the period; 0: it has stayed on so far */
	uint64_t changes_ns; /* when it goes on, or off; 0: it stays as it is */
	uint64_t stands_for; /* periods; more than 1 when some have passed unseen */
};

/* At one moment, since any earlier one. */
struct probe_pace_point {
	uint64_t time_ns;
	uint64_t own_ns; /* the programs' CPU time without that of the probes */
};

/* How much slower programs go while a probe is on.  A program that computes all the time does less
 * in that time than in as much time without the probe, so what was counted stands for more.  The
 * measure is the programs' own CPU time, without that of the probes.  All zeros: nothing is
 * known. */
struct probe_pace {
	double on_ns, on_own_ns;	/* of recent times in which the probe was on */
	double all_ns, all_own_ns;	/* from the beginning of each to that of the next */
	struct probe_pace_point opened; /* time_ns 0: not yet */
};

struct probe_times {
	struct {
		struct probe_duty duty;
		uint32_t leader;
		bool is_used, is_on;
		bool has_no_pace; /* what its hits cost is not in the pace's points */
		struct probe_pace pace;
		uint64_t on_ns,
			since_ns; /* since_ns: on without an end from then on; 0: it has one */
	} probe[PP_PROBES_MAX];
	uint64_t period_ns;
	uint64_t off; /* probes that are to be off, one bit each */
};

void probe_times_begin(struct probe_times *times, uint64_t period_ns);
/* Takes in a probe, which is on. */
void probe_times_add(struct probe_times *times, uint32_t probe, uint32_t leader, uint64_t now_ns);
/* Hits of a probe stand for what the times say, however much they slow programs down. */
void probe_times_leave_pace(struct probe_times *times, uint32_t probe);
/* Sets a probe's own period; before its first share. */
void probe_times_set_period(struct probe_times *times, uint32_t probe, uint64_t period_ns);
/* Returns whether there is one. */
bool probe_times_are_used(const struct probe_times *times);
void probe_times_set_share(struct probe_times *times, uint32_t probe, uint32_t share_ppm,
			   uint64_t now_ns);
/* Returns which probes are to be off now.  Call probe_times_apply() for each whose bit has changed,
 * or whose share has, once it is as it is to be. */
uint64_t probe_times_look(struct probe_times *times, uint64_t now_ns, uint32_t chance);
/* Hits of probes that are to go off by the last look do not count any more, since about this
 * moment.  Call it before their links are taken off. */
void probe_times_close(struct probe_times *times, const struct probe_pace_point *now);
/* The links of a probe are as the last look wanted them.  Returns whether the probe has another
 * gate now, which is filled in. */
bool probe_times_apply(struct probe_times *times, uint32_t probe,
		       const struct probe_pace_point *now, struct pp_gate *ret_gate);
/* The programs that are probed are others now. */
void probe_times_restart_paces(struct probe_times *times);
/* Returns when to look again; UINT64_MAX: when a share is set. */
uint64_t probe_times_next_ns(const struct probe_times *times);
/* Returns for how long a probe's hits were counted. */
uint64_t probe_times_on_ns(const struct probe_times *times, uint32_t probe, uint64_t now_ns);

#endif
