/* SPDX-License-Identifier: BSD-2-Clause */
/* Turns the counters of a window into samples of its profiles: stacks are looked up and named,
 * labels added (labels.c). */
#ifndef AGENT_SAMPLES_H
#define AGENT_SAMPLES_H

#include <stdbool.h>
#include <stddef.h>

#include "base/slice.h"
#include "probes/probe_plan.h"

struct counts;
struct intern;
struct modules;
struct naming;
struct pp_count;
struct pp_count_key;
struct profile_sample;
struct profile_shares;
struct profiles;
struct services;
struct symbolizer;
struct tables;
struct thread_names;
struct who;

/* What samples are made from and where they go; all is borrowed. */
struct samples {
	const struct services *services;
	struct thread_names *thread_names;
	struct naming *naming;
	struct modules *modules;
	struct tables *tables;	/* fill while counters are named */
	struct intern *strings; /* of the open profiles */
	struct profiles *profiles;
	struct profile_shares *shares; /* of the profiles, by user */
	struct probe_plan probes;
};
/* Labels a sample with the process it belongs to, which is who's, and with what its thread was
 * doing.  Returns 0 or -ENOMEM. */
int labels_add(const struct samples *samples, struct profile_sample *sample,
	       const struct pp_count_key *key, const struct who *who);

/* How far the counters of one window have come.  All zeros: not begun. */
struct samples_adding {
	struct symbolizer *symbolizer; /* owned */
	size_t noted, added;	       /* counters */
	bool is_resolved;	       /* all that was noted has names */
};
void samples_adding_release(struct samples_adding *adding);
/* Adds counters to the profiles of their kinds, the ledger, the summary, and to who watches, until
 * the slice is over (NULL: all).  Call it with the same counters until it returns something else
 * than 1: there are more.  Returns 0: all were added; -ENOMEM; -errno. */
int samples_add(const struct samples *samples, const struct counts *counts,
		struct samples_adding *adding, const struct slice *slice);

/* Adds one counter, with frames and labels, to the profiles of its kind: without its stack where
 * its user has too many.  who: its process.  Returns 0 or -ENOMEM. */
int samples_put(const struct samples *samples, const struct pp_count_key *key,
		const struct who *who, const struct pp_count *count, struct profile_sample *sample);

#endif
