/* SPDX-License-Identifier: BSD-2-Clause */
/* Bounds what the probes of CUDA's launches cost the programs that launch, and says what they do:
 * --max-slowdown.  The loop's thread. */
#ifndef PROBES_CUDA_BOUNDS_H
#define PROBES_CUDA_BOUNDS_H

#include <stdint.h>

#include "base/cleanup.h"

struct cuda_bounds;
struct options;
struct probe_plan;
struct probe_worker;
struct profiles;

/* All is borrowed.  *ret_bounds is NULL when the plan has no functions of CUDA's; all functions
 * take that.  Returns 0 or -ENOMEM. */
int cuda_bounds_new(const struct options *options, const struct probe_plan *plan,
		    struct probe_worker *worker, struct cuda_bounds **ret_bounds);
void cuda_bounds_free(struct cuda_bounds *bounds);
DEFINE_OWNED(struct cuda_bounds, cuda_bounds)

/* Looks about once a second what probes have cost, and sets how long launches are probed. */
void cuda_bounds_look(struct cuda_bounds *bounds, uint64_t now_ns);
/* Adds a comment for each kind of launches that had hits since the last description.  Returns 0 or
 * -ENOMEM. */
int cuda_bounds_describe(struct cuda_bounds *bounds, struct profiles *profiles, uint64_t now_ns);

#endif
