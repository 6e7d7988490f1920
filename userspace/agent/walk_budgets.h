/* SPDX-License-Identifier: BSD-2-Clause */
/* Computes how much of each CPU walks of stacks may take. */
#ifndef AGENT_WALK_BUDGETS_H
#define AGENT_WALK_BUDGETS_H

#include <stdint.h>

#include "options/options.h"

/* In each PP_BUDGET_PERIOD_NS of a CPU. */
struct walk_budgets {
	uint32_t sample_ns, switch_ns, memory_ns;
	uint32_t memory_shift_min; /* struct pp_config */
};

/* cpus: those that are sampled, which share --max-cpu. */
struct walk_budgets walk_budgets_of(const struct options *options, uint32_t cpus);

#endif
