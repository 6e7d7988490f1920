/* SPDX-License-Identifier: BSD-2-Clause */
/* Remembers for each id the index of the item that was found for it, so that each id is searched
 * for only once.  Ids count from 0. */
#ifndef BASE_ID_MAP_H
#define BASE_ID_MAP_H

#include <stdbool.h>
#include <stdint.h>

#include "base/array.h"

/* A zeroed map is empty. */
struct id_map {
	uint32_t *index_plus_1; /* owned; 0: not asked for yet */
	uint32_t count;
};

static inline void id_map_release(struct id_map *map)
{
	free(map->index_plus_1);
	*map = (struct id_map){};
}

static inline bool id_map_find(const struct id_map *map, uint32_t id, uint32_t *ret_index)
{
	if (id >= map->count || !map->index_plus_1[id])
		return false;
	*ret_index = map->index_plus_1[id] - 1;
	return true;
}

/* Makes room for ids below `count`; the map grows in the same steps as the array of the ids.
 * Returns 0 or -ENOMEM. */
static inline int id_map_reserve(struct id_map *map, uint32_t count)
{
	return ARRAY_EXTEND(map->index_plus_1, count, map->count);
}

/* Stores an index; there must be room for the id. */
static inline void id_map_set(struct id_map *map, uint32_t id, uint32_t index)
{
	map->index_plus_1[id] = index + 1;
}

#endif
