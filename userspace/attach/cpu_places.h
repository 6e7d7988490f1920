/* SPDX-License-Identifier: BSD-2-Clause */
/* Assigns per-CPU memory ("places") to online CPUs when there is less of it than possible CPUs. */
#ifndef ATTACH_CPU_PLACES_H
#define ATTACH_CPU_PLACES_H

#include <stddef.h>
#include <stdint.h>

/* place[CPU] is 1 + the CPU's place; 0: none.  CPUs keep their places; a CPU that came online gets
 * a free one, or that of a CPU that is offline.  Returns 0; -ENOSPC: not enough for all, earlier
 * CPUs keep theirs; -ENOMEM. */
int cpu_places_assign(volatile uint64_t *place, uint32_t cpu_count, uint32_t place_count,
		      const uint32_t *online, size_t online_count);

#endif
