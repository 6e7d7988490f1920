/* SPDX-License-Identifier: BSD-2-Clause */
#include "attach/cpu_places.h"

#include <errno.h>
#include <stdbool.h>

#include "base/cleanup.h"

/* Returns 1 + a free place, 0: none.  owner: 1 + CPU, by place. */
static uint64_t find_free(volatile uint64_t *place, uint32_t place_count, const bool *is_online,
			  const uint64_t *owner)
{
	uint64_t left = 0;

	for (uint32_t i = 0; i < place_count; i++) {
		if (!owner[i])
			return i + 1;
		if (!left && !is_online[owner[i] - 1])
			left = i + 1;
	}
	if (left)
		place[owner[left - 1] - 1] = 0;
	return left;
}

int cpu_places_assign(volatile uint64_t *place, uint32_t cpu_count, uint32_t place_count,
		      const uint32_t *online, size_t online_count)
{
	OWNED_MEM bool *is_online = calloc(cpu_count, sizeof(*is_online));
	OWNED_MEM uint64_t *owner = calloc(place_count, sizeof(*owner));

	if (!is_online || !owner)
		return -ENOMEM;
	for (size_t i = 0; i < online_count; i++)
		if (online[i] < cpu_count)
			is_online[online[i]] = true;
	for (uint32_t cpu = 0; cpu < cpu_count; cpu++)
		if (place[cpu])
			owner[place[cpu] - 1] = cpu + 1;
	for (uint32_t cpu = 0; cpu < cpu_count; cpu++) {
		uint64_t found;

		if (!is_online[cpu] || place[cpu])
			continue;
		found = find_free(place, place_count, is_online, owner);
		if (!found)
			return -ENOSPC;
		owner[found - 1] = cpu + 1;
		place[cpu] = found;
	}
	return 0;
}
