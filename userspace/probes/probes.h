/* SPDX-License-Identifier: BSD-2-Clause */
/* Probes of a run: finds their places in the files that profiled processes map, and has them
 * attached (probes/probe_worker.h), in processes that start later, too.  A run without a filter has
 * one link a file for all processes; one with a filter has one a process and file, so that no other
 * program meets a breakpoint.  The loop's thread. */
#ifndef PROBES_PROBES_H
#define PROBES_PROBES_H

#include <stdint.h>

#include "probes/probe_plan.h"

struct cuda_side;
struct probe_side;
struct probes;

/* All functions accept NULL: the run has no probes. */

/* Returns the probes of the run; count 0: none. */
struct probe_plan probes_plan(const struct probes *probes);

/* Returns the object of probes, which they own, when allocations are captured; NULL: it is not
 * loaded. */
const struct probe_side *probes_allocs(struct probes *probes);

/* Returns the object of CUDA's functions, which the probes own; NULL: nothing of theirs was
 * found. */
const struct cuda_side *probes_cuda(struct probes *probes);

/* Returns how often a file or a place of code had no probe because its user's share was used up. */
uint64_t probes_refused(const struct probes *probes);

#endif
