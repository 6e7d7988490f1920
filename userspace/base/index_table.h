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
	for (uint32_t at = hash & table->mask; table->slot[at].index_plus_1;
	     at = (at + 1) & table->mask) {
		const struct index_slot *slot = &table->slot[at];

		if (slot->hash == hash && equal(context, slot->index_plus_1 - 1, key)) {
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

#endif
