/* SPDX-License-Identifier: BSD-2-Clause */
/* Has the functions of CUDA's events probed for as long as streams are captured: by events a
 * capture takes in other streams (bpf/lib/cuda_graphs.bpf.h).  Programs call them often, and most
 * capture nothing.  The loop's thread. */
#ifndef PROBES_CUDA_EVENTS_H
#define PROBES_CUDA_EVENTS_H

#include <stdbool.h>
#include <stdint.h>

#define CUDA_EVENTS_KEPT_NS (300ULL * 1000000000) /* after the last capture has begun */

struct probe_plan;
struct probe_worker;

struct cuda_events {
	uint32_t row;	     /* of the plan; PP_PROBES_MAX: there is none */
	uint32_t captures;   /* that had begun at the last look */
	uint64_t changed_ns; /* when there was a new one; 0: there was none */
	bool are_wanted, are_followed;
};

/* Begins, before the first job: these functions are not probed. */
void cuda_events_begin(struct cuda_events *events, const struct probe_plan *plan,
		       struct probe_worker *worker);
/* Call it a few times a second. */
void cuda_events_look(struct cuda_events *events, struct probe_worker *worker, uint64_t now_ns);

#endif
