/* SPDX-License-Identifier: BSD-2-Clause */
/* Which CPU has which of a number of places that is smaller than that of the CPUs there may ever be. */
#ifndef ATTACH_CPU_PLACES_H
#define ATTACH_CPU_PLACES_H

#include <stddef.h>
#include <stdint.h>

/* place[CPU] is 1 + its place, 0: it has none.  CPUs keep theirs; one that came online gets a free one, or
 * that of a CPU that is not online any more.  0; -ENOSPC: not enough for all, who was there first keeps its
 * place; -ENOMEM. */
int cpu_places_assign(volatile uint64_t *place, uint32_t cpu_count, uint32_t place_count,
		      const uint32_t *online, size_t online_count);

#endif
