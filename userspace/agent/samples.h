/* SPDX-License-Identifier: BSD-2-Clause */
/* Turns the counters of a window into samples of its profiles: stacks are looked up and named,
 * labels added. */
#ifndef AGENT_SAMPLES_H
#define AGENT_SAMPLES_H

struct counts;
struct dictionary;
struct intern;
struct modules;
struct naming;
struct process_table;
struct profiles;
struct summary;
struct tables;
struct thread_names;
struct top;
struct waits;

/* What samples are made from and where they go; all is borrowed. */
struct samples {
	struct dictionary *dictionary;
	struct process_table *processes;
	struct thread_names *thread_names;
	struct naming *naming;
	struct modules *modules;
	struct tables *tables;	/* fill while counters are named */
	struct intern *strings; /* of the open profiles */
	struct profiles *profiles;
	struct top *top;     /* NULL: there is no live socket */
	struct waits *waits; /* NULL: waits are not captured */
	struct summary *summary;
};
/* Adds all counters to the profiles of their kinds, the ledger, the summary, and to who watches.
 * Returns 0; -ENOMEM; -errno. */
int samples_add(const struct samples *samples, const struct counts *counts);

#endif
