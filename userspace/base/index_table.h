/* SPDX-License-Identifier: BSD-2-Clause */
/* A hash table that maps an item's hash to the item's index in an array of the caller. A slot takes
 * 8 bytes and at most half of the slots are used; uthash takes 56 bytes an item, and a window has
 * up to a hundred thousand items. */
#ifndef BASE_INDEX_TABLE_H
#define BASE_INDEX_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/array.h"
#include "base/random.h"

struct index_slot {
	uint32_t hash;
	uint32_t index_plus_1; /* 0: free */
};

/* A zeroed table is empty. */
struct index_table {
	struct index_slot *slot;
	uint32_t mask, count;
};

/* Returns how many bytes of memory the slots take. */
static inline size_t index_table_bytes(const struct index_table *table)
{
	return table->slot ? ((size_t)table->mask + 1) * sizeof(*table->slot) : 0;
}

/* Whether the array's item at `index` is the one that `key` describes. */
typedef bool index_equal(const void *context, uint32_t index, const void *key);

/* Builds with the address sanitizer put items together, and ask `equal` about those of other
 * hashes, too: there it decides alone, so that tests see its mistakes. */
#ifdef __SANITIZE_ADDRESS__
#define INDEX_START(hash, mask) ((hash) & (mask) & ~15U)
#define INDEX_ASKS(slot_hash, hash) true
#else
#define INDEX_START(hash, mask) ((hash) & (mask))
#define INDEX_ASKS(slot_hash, hash) ((slot_hash) == (hash))
#endif

void index_table_release(struct index_table *table);
/* Takes all indexes out; the memory stays. */
void index_table_clear(struct index_table *table);
/* Here, so that `equal` costs no call. */
static inline bool index_table_find(const struct index_table *table, uint32_t hash,
				    index_equal *equal, const void *context, const void *key,
				    uint32_t *ret_index)
{
	if (!table->slot)
		return false;
	for (uint32_t at = INDEX_START(hash, table->mask); table->slot[at].index_plus_1;
	     at = (at + 1) & table->mask) {
		const struct index_slot *slot = &table->slot[at];

		if (INDEX_ASKS(slot->hash, hash) && equal(context, slot->index_plus_1 - 1, key)) {
			*ret_index = slot->index_plus_1 - 1;
			return true;
		}
	}
	return false;
}
/* Adds an index that is not in the table yet. Returns 0 or -ENOMEM. */
int index_table_add(struct index_table *table, uint32_t hash, uint32_t index);
/* Makes room for one more item of the array, as ARRAY_RESERVE(), and adds its index.  Returns 0 or
 * -ENOMEM. */
#define INDEX_RESERVE(table, hash, array, count, capacity)                                         \
	(ARRAY_RESERVE(array, count, capacity) ?: index_table_add(table, hash, count))

/* Remembers for each id the index of the item that was found for it, so that each id is searched
 * for only once.  Ids count from 0.  A zeroed map is empty. */
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

/* Items of an array, by the group that each is in. */
struct grouped {
	uint32_t *item;	 /* owned; those of group g are item[first[g]] to item[first[g + 1]] */
	uint32_t *first; /* owned */
};
void grouped_release(struct grouped *grouped);
/* Lists the items of an array in their order, by the uint32_t that is at `offset` in each.  Returns
 * 0 or -ENOMEM; release in any case. */
int grouped_init(struct grouped *grouped, const void *array, size_t item_bytes, size_t offset,
		 uint32_t count, uint32_t groups);
#define GROUPED_INIT(grouped, array, field, count, groups)                                         \
	grouped_init(grouped, array, sizeof(*(array)), offsetof(typeof(*(array)), field), count,   \
		     groups)

/* ---- where a key begins in a hash table with open addressing.  Whoever can choose keys (a program
 * its frames and names) could choose those that lie beside each other, and make each look-up as
 * long as the table: the place depends on a secret of each table. ---- */

/* Returns a secret and odd number; without random bytes a known one. */
static inline uint64_t hash_factor(void)
{
	return (random_number() ^ 0x9e3779b97f4a7c15ULL) | 1;
}
/* Returns a slot; mask: slots - 1, of which there are 2^n.  The highest bits of a product depend on
 * all bits of the key; two rounds, as equal steps between keys would stay equal steps after one. */
static inline size_t hash_place(uint64_t key, uint64_t factor, size_t mask)
{
	key *= factor;
	key = (key ^ key >> 32) * factor;
	return (size_t)(key >> __builtin_clzll(mask | 1)) & mask;
}

#endif
