/* SPDX-License-Identifier: BSD-2-Clause */
/* Finds the index of an item of an array by its hash.  8 bytes a slot, at most half full: uthash
 * costs 56 bytes an item, and a window has up to a hundred thousand of them. */
#ifndef BASE_INDEX_TABLE_H
#define BASE_INDEX_TABLE_H

#include <stdbool.h>
#include <stdint.h>

struct index_slot {
	uint32_t hash;
	uint32_t index_plus_1; /* 0: free */
};

/* All zero is an empty table. */
struct index_table {
	struct index_slot *slot;
	uint32_t mask, count;
};

/* Is the array's item the one looked for? */
typedef bool index_equal(const void *context, uint32_t index, const void *key);

void index_table_release(struct index_table *table);
bool index_table_find(const struct index_table *table, uint32_t hash, index_equal *equal,
		      const void *context, const void *key, uint32_t *ret_index);
/* The index must not be there already.  0 or -ENOMEM. */
int index_table_add(struct index_table *table, uint32_t hash, uint32_t index);

#endif
