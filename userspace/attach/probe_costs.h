/* SPDX-License-Identifier: BSD-2-Clause */
/* Measures what a hit costs on this machine, at code of our own: a hypervisor makes a single step
 * dear, and each kernel emulates other instructions. */
#ifndef ATTACH_PROBE_COSTS_H
#define ATTACH_PROBE_COSTS_H

#include <stdbool.h>
#include <stdint.h>

struct probe_side;

/* In ns, with a program that does nothing. */
struct probe_hit_costs {
	uint32_t emulated, long_nop, single_step; /* enum probe_cost (elf/probe_sites.h) */
	uint32_t alloc_end; /* of each allocation, where the kernel has no sessions; else 0 */
	uint32_t with_return; /* at an emulated site, whose return is hit as well: both */
};

/* Takes a tenth of a second.  Returns 0; -errno: it cannot be measured. */
int probe_costs_measure(const struct probe_side *side, bool is_shared,
			struct probe_hit_costs *ret_costs);

#endif
