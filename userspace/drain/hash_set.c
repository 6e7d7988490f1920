/* SPDX-License-Identifier: BSD-2-Clause */
#include "drain/hash_set.h"

#include <stdlib.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/index_table.h"

static uint64_t entry_hash(const void *entry)
{
	return *(const uint64_t *)entry;
}

void hash_set_init(struct hash_set *set)
{
	*set = (struct hash_set){.factor = hash_factor()};
}

void hash_set_release(struct hash_set *set)
{
	for (size_t i = 0; i < set->count; i++)
		free(set->entry[i]);
	free(set->entry);
	index_table_release(&set->table);
}

static uint32_t place_of(const struct hash_set *set, uint64_t hash)
{
	return (uint32_t)hash_place(hash, set->factor, UINT32_MAX);
}

static bool has_hash(const void *context, uint32_t index, const void *key)
{
	const struct hash_set *set = context;

	return entry_hash(set->entry[index]) == *(const uint64_t *)key;
}

void *hash_set_find(const struct hash_set *set, uint64_t hash)
{
	uint32_t index;

	return index_table_find(&set->table, place_of(set, hash), has_hash, set, &hash, &index)
		       ? set->entry[index]
		       : NULL;
}

int hash_set_add(struct hash_set *set, void *entry)
{
	int err = ARRAY_RESERVE(set->entry, set->count, set->capacity);

	if (!err)
		err = index_table_add(&set->table, place_of(set, entry_hash(entry)), set->count);
	if (!err)
		set->entry[set->count++] = entry;
	return err;
}

void *hash_set_get(struct hash_set *set, uint64_t hash, size_t bytes)
{
	OWNED_MEM uint64_t *made = NULL;
	void *known = hash_set_find(set, hash);

	if (known)
		return known;
	made = calloc(1, bytes);
	if (!made)
		return NULL;
	*made = hash;
	return hash_set_add(set, made) ? NULL : TAKE(made);
}

void hash_set_filter(struct hash_set *set, hash_set_keep keep, const void *context)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < set->count; i++) {
		if (keep(context, set->entry[i]))
			set->entry[kept++] = set->entry[i];
		else
			free(set->entry[i]);
	}
	set->count = kept;
	index_table_clear(&set->table);
	/* There is room for them: the table has had more. */
	for (uint32_t i = 0; i < kept; i++)
		(void)index_table_add(&set->table, place_of(set, entry_hash(set->entry[i])), i);
}
