/* SPDX-License-Identifier: BSD-2-Clause */
/* Bounds what probes cost the programs that hit them, and says what they do: --max-slowdown.  Those
 * of a process are held against its time, or against a CPU where that is not known, as launches of
 * CUDA are (base/budget.h).  Python's own probes of gc and import are hit seldom and stay on.  The
 * loop's thread. */
#ifndef PROBES_PROBE_BOUNDS_H
#define PROBES_PROBE_BOUNDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <pyprofd/cuda.h>
#include <pyprofd/probe.h>

#include "base/budget.h"
#include "base/user_quota.h"
#include "elf/probe_sites.h"

#define PROBE_BOUNDS_PROCESSES 256U /* whose CPU time is known; more count as these */

struct options;
struct probe_plan;
struct process_table;
struct probe_worker;
struct profiles;

/* Whose programs may hit probes at any time; all is borrowed. */
struct probe_bounds_users {
	struct process_table *processes;
	/* Returns the probes of a mapped file, a bit each by their rows.  NULL: who has hit them is
	 * all that counts, as only some processes are profiled. */
	uint64_t (*rows_of)(const void *context, uint32_t file);
	const void *context;
};

struct probe_bounds {
	const struct probe_plan *plan; /* borrowed */
	struct probe_worker *worker;   /* borrowed */
	struct probe_bounds_users users;
	struct budget *programs, *launches; /* owned; launches NULL: the plan has none */
	struct {
		bool is_seen, has_return, stays_on;
		uint32_t leader;
		enum probe_cost cost; /* of its dearest site */
		/* As of the last description. */
		uint64_t told_hits, told_ns, told_on_ns;
	} probe[PP_PROBES_MAX];
	struct {
		pid_t pid;
		uint64_t cpu_ns, delay_ns;
	} process[PROBE_BOUNDS_PROCESSES];
	size_t process_count;
	uint64_t looked_ns, told_ns; /* at probes of programs; 0: not yet */
	uint64_t launches_looked_ns, launches_told_ns;
	struct {
		uint64_t hits, ns; /* what CUDA's program took for some */
	} timed;
	uint32_t warned_tgid;
	struct user_quota thinned; /* users of whom was told that their programs take too much */
	bool has_bounded;	   /* not all stay on */
};

/* Begins: says to the worker which probes are bounded.  All is borrowed.  Returns 0 or -ENOMEM. */
int probe_bounds_init(struct probe_bounds *bounds, const struct options *options,
		      const struct probe_plan *plan, struct probe_worker *worker,
		      const struct probe_bounds_users *users);
void probe_bounds_release(struct probe_bounds *bounds);
/* Returns the probe with which this one goes on and off. */
uint32_t probe_bounds_leader(const struct probe_bounds *bounds, uint32_t probe);
/* A probe has a site of this cost. */
void probe_bounds_see_site(struct probe_bounds *bounds, uint32_t probe, enum probe_cost cost);
/* A process is probed, or no longer. */
void probe_bounds_add_process(struct probe_bounds *bounds, pid_t pid);
void probe_bounds_drop_process(struct probe_bounds *bounds, pid_t pid);
/* Looks about once a second what probes have cost, and sets how long they are on. */
void probe_bounds_look(struct probe_bounds *bounds, uint64_t now_ns);
/* Adds a comment for each probe: what it did since the last description.  Returns 0 or -ENOMEM. */
int probe_bounds_describe(struct probe_bounds *bounds, struct profiles *profiles, uint64_t now_ns);

#endif
