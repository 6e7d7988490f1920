/* SPDX-License-Identifier: BSD-2-Clause */
#include "drain/hash_set.h"

#include <errno.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/hash_place.h"

#define FIRST_SLOTS 1024U

static uint64_t entry_hash(const void *entry)
{
	return *(const uint64_t *)entry;
}

int hash_set_init(struct hash_set *set)
{
	set->slot = calloc(FIRST_SLOTS, sizeof(*set->slot));
	set->mask = FIRST_SLOTS - 1;
	set->count = 0;
	set->factor = hash_factor();
	return set->slot ? 0 : -ENOMEM;
}

void hash_set_release(struct hash_set *set)
{
	for (size_t i = 0; set->slot && i <= set->mask; i++)
		free(set->slot[i]);
	free(set->slot);
}

void *hash_set_find(const struct hash_set *set, uint64_t hash)
{
	for (size_t at = hash_place(hash, set->factor, set->mask); set->slot[at];
	     at = (at + 1) & set->mask)
		if (entry_hash(set->slot[at]) == hash)
			return set->slot[at];
	return NULL;
}

static void place(struct hash_set *set, void *entry)
{
	size_t at = hash_place(entry_hash(entry), set->factor, set->mask);

	while (set->slot[at])
		at = (at + 1) & set->mask;
	set->slot[at] = entry;
}

static int grow(struct hash_set *set)
{
	struct hash_set grown = {
		.mask = set->mask * 2 + 1, .count = set->count, .factor = set->factor};

	grown.slot = calloc(grown.mask + 1, sizeof(*grown.slot));
	if (!grown.slot)
		return -ENOMEM;
	for (size_t i = 0; i <= set->mask; i++)
		if (set->slot[i])
			place(&grown, set->slot[i]);
	free(set->slot);
	*set = grown;
	return 0;
}

int hash_set_add(struct hash_set *set, void *entry)
{
	if ((set->count + 1) * 2 > set->mask && grow(set))
		return -ENOMEM;
	place(set, entry);
	set->count++;
	return 0;
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

void hash_set_filter_into(struct hash_set *set, void **fresh, hash_set_keep keep,
			  const void *context)
{
	void **old = set->slot;

	set->slot = fresh;
	set->count = 0;
	for (size_t i = 0; i <= set->mask; i++) {
		if (!old[i])
			continue;
		if (keep(context, old[i])) {
			place(set, old[i]);
			set->count++;
		} else {
			free(old[i]);
		}
	}
	free(old);
}

void hash_set_filter(struct hash_set *set, hash_set_keep keep, const void *context)
{
	void **fresh = calloc(set->mask + 1, sizeof(*fresh));

	if (fresh) /* else the set stays too large for an epoch */
		hash_set_filter_into(set, fresh, keep, context);
}
