/* SPDX-License-Identifier: BSD-2-Clause */
/* The links of one job of probe_worker.h, in groups that are taken off and put on again alone (one
 * thread at a time), and the BPF objects that their programs are in. */
#ifndef PROBES_PROBE_GROUPS_H
#define PROBES_PROBE_GROUPS_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <pyprofd/probe.h>

#include "attach/probe_links.h"
#include "probes/probe_worker.h"

struct cuda_side;
struct probe_side;

/* A group's number is 1 + its probe's; this one has the sites that stay on. */
#define PROBE_GROUP_STAYS 0U

struct probe_group {
	uint32_t number;
	struct probe_links entries, returns;
	bool is_on;
};

/* Where the sites of a job are attached; all is borrowed. */
struct probe_groups_place {
	struct probe_side *side; /* NULL: the job has only sites of CUDA's functions */
	struct cuda_side *cuda;	 /* NULL: it has none of these */
	const struct probe_job *job;
	int locks;	/* link of mapping_locks_holder() */
	bool is_shared; /* struct probe_links_options */
};

struct probe_groups {
	struct probe_groups_place place;
	struct probe_group *group; /* owned */
	size_t count;
};

/* Says what a hit of a site does.  Returns 0 or -errno. */
int probe_groups_set_site(const struct probe_groups_place *place, uint32_t number,
			  const struct pp_site *site);
/* Notes which groups a job has; none is on.  Returns 0 or -ENOMEM. */
int probe_groups_make(const struct probe_groups_place *place, struct probe_groups *ret_groups);
/* Takes all links off; a zeroed one is fine. */
void probe_groups_release(struct probe_groups *groups);
/* Puts on the groups whose bit is not set in `off`, by the probe's number, and takes off the
 * others. Returns 0 or -errno; groups behind the one that failed are as they were. */
int probe_groups_set(struct probe_groups *groups, uint64_t off);

/* ---- BPF objects ----
 * Those that a run's probes need, loaded when a first site wants them, and what hits of their sites
 * cost.  For probe_worker.h: its thread loads, others read with the mutex. */

/* What became of loading an object: it is tried once. */
struct probe_load {
	int err;
	char why[PROBE_WORKER_WHY_BYTES];
};

struct probe_objects {
	const struct kernel_side *kernel; /* borrowed */
	pthread_mutex_t *mutex;		  /* borrowed; guards what others read, to `prices` */
	struct probe_side *side;	  /* owned; NULL: not loaded yet */
	struct cuda_side *cuda;		  /* the same */
	struct probe_worker_prices prices;
	/* The thread's alone. */
	uint32_t blocks_max; /* struct probe_side_options */
	struct probe_load load, cuda_load;
};

void probe_objects_release(struct probe_objects *objects);
/* Loads what the sites of a job need.  wants_prices: what a hit costs is needed, to keep a bound;
 * where it cannot be measured, bounds are kept by typical prices.  Returns 0, or -errno and why in
 * *ret_why, which the objects own.  Without the mutex. */
int probe_objects_load(struct probe_objects *objects, const struct probe_job *job,
		       bool wants_prices, const char **ret_why);

#endif
