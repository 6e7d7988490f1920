/* SPDX-License-Identifier: BSD-2-Clause */
/* A hash set with open addressing: entries begin with their 64-bit hash, and each costs one
 * pointer.  One thread. */
#ifndef DRAIN_HASH_SET_H
#define DRAIN_HASH_SET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct hash_set {
	void **slot; /* owned, as are the entries; mask + 1 of them, NULL: free */
	size_t mask, count;
	uint64_t factor; /* base/hash_place.h: a program chooses bits of its stacks' hashes */
};
/* Returns 0 or -ENOMEM. */
int hash_set_init(struct hash_set *set);
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

/* Keeps the entries that `keep` accepts and frees the others; without memory all stay. */
typedef bool (*hash_set_keep)(const void *context, const void *entry);
void hash_set_filter(struct hash_set *set, hash_set_keep keep, const void *context);
/* The same with memory for the slots, which the set takes over: all NULL, as many as it has. */
void hash_set_filter_into(struct hash_set *set, void **fresh, hash_set_keep keep,
			  const void *context);

#endif
