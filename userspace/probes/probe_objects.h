/* SPDX-License-Identifier: BSD-2-Clause */
/* The BPF objects that a run's probes need, loaded when a first site wants them, and what hits of
 * their sites cost.  For probe_worker.h: its thread loads, others read with the mutex. */
#ifndef PROBES_PROBE_OBJECTS_H
#define PROBES_PROBE_OBJECTS_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "probes/probe_worker.h"

struct probe_side;

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
/* Returns the link of mapping_locks_holder(). */
int probe_objects_locks(const struct probe_objects *objects);
/* Loads what the sites of a job need.  wants_prices: what a hit costs is needed, to keep a bound;
 * where it cannot be measured, bounds are kept by typical prices.  Returns 0, or -errno and why in
 * *ret_why, which the objects own.  Without the mutex. */
int probe_objects_load(struct probe_objects *objects, const struct probe_job *job,
		       bool wants_prices, const char **ret_why);

#endif
