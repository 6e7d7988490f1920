/* SPDX-License-Identifier: BSD-2-Clause */
/* A set of entries that begin with their 64-bit hash.  One thread. */
#ifndef DRAIN_HASH_SET_H
#define DRAIN_HASH_SET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/index_table.h"

/* Makes the hash of several words, one after the other. */
static inline uint64_t hash_mix(uint64_t hash, uint64_t word)
{
	hash = (hash ^ word) * 0x9e3779b97f4a7c15ULL;
	return hash ^ hash >> 29;
}

struct hash_set {
	void **entry; /* owned, as are the entries; in no order */
	uint32_t count, capacity;
	struct index_table table;
	uint64_t factor; /* base/index_table.h: a program chooses bits of its stacks' hashes */
};
void hash_set_init(struct hash_set *set);
/* Frees the entries, too. */
void hash_set_release(struct hash_set *set);
/* Returns NULL when no entry has the hash. */
void *hash_set_find(const struct hash_set *set, uint64_t hash);
/* Adds an entry, whose hash no other has, and takes it over.  Returns 0; -ENOMEM: it stays the
 * caller's. */
int hash_set_add(struct hash_set *set, void *entry);
/* Finds the entry with the hash, or adds one of so many bytes, all zeros but for the hash.  Returns
 * NULL: there is no memory. */
void *hash_set_get(struct hash_set *set, uint64_t hash, size_t bytes);

/* Keeps the entries that `keep` accepts and frees the others. */
typedef bool (*hash_set_keep)(const void *context, const void *entry);
void hash_set_filter(struct hash_set *set, hash_set_keep keep, const void *context);

#endif
