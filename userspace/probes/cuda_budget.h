/* SPDX-License-Identifier: BSD-2-Clause */
/* Decides for how much of the time launches of CUDA are probed, so that probes take no process more
 * of a CPU than --max-slowdown.  Launches whose probes are dear are given up first;
 * synchronisations, copies and allocations stay on.  Reads no clock. */
#ifndef PROBES_CUDA_BUDGET_H
#define PROBES_CUDA_BUDGET_H

#include <stdbool.h>
#include <stdint.h>

#include <pyprofd/cuda.h>

#include "base/cleanup.h"

struct cuda_budget;

/* Returns 0 or -ENOMEM. */
int cuda_budget_new(uint32_t budget_ppm, struct cuda_budget **ret_budget);
void cuda_budget_free(struct cuda_budget *budget);
DEFINE_OWNED(struct cuda_budget, cuda_budget)

/* Notes the hits of a thread since its first one.  Returns 0 or -ENOMEM. */
int cuda_budget_note(struct cuda_budget *budget, uint32_t tgid, const struct pp_cuda_hits *hits);

/* What was there in a period. */
struct cuda_budget_period {
	uint64_t elapsed_ns;
	uint64_t on_ns[PP_CUDA_LAUNCHES]; /* time in which launches of a kind were counted */
	uint32_t hit_ns[PP_CUDA_HITS];	  /* what a hit costs */
};
/* Looks at the end of a period, once the hits of all threads were noted: threads that were not have
 * ended.  Returns whether a share has changed. */
bool cuda_budget_look(struct cuda_budget *budget, const struct cuda_budget_period *period);

/* As of the last look. */
struct cuda_budget_now {
	uint32_t share_ppm[PP_CUDA_LAUNCHES]; /* of the time, in which launches are to be on */
	uint64_t hits[PP_CUDA_LAUNCHES];      /* of all processes, since the start */
	/* The process for which not all stays on, and what all would take of a CPU; 0: none. */
	uint32_t tgid, need_ppm;
};
void cuda_budget_get_now(const struct cuda_budget *budget, struct cuda_budget_now *ret_now);

#endif
