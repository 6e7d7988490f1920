/* SPDX-License-Identifier: BSD-2-Clause */
/* Where a key begins in a hash table with open addressing.  Whoever can choose keys (a program its
 * frames and names) could choose those that lie beside each other, and make each look-up as long as
 * the table: the place depends on a secret of each table.  No state. */
#ifndef BASE_HASH_PLACE_H
#define BASE_HASH_PLACE_H

#include <stddef.h>
#include <stdint.h>
#include <sys/random.h>

/* Returns a secret and odd number; without random bytes, which the kernel has from its start on, a
 * known one. */
static inline uint64_t hash_factor(void)
{
	uint64_t factor = 0x9e3779b97f4a7c15ULL;

	(void)!getrandom(&factor, sizeof(factor), 0);
	return factor | 1;
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
