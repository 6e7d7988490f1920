/* SPDX-License-Identifier: BSD-2-Clause */
#include "drain/free_debts.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/hash.h"

/* What was paid of a debt. */
struct paid {
	struct pp_debt_key key;
	uint64_t bytes;
	UT_hash_handle hh;
};

struct free_debts {
	struct paid *paid; /* hash table by key; as many as the kernel side has, and some more */
};

int free_debts_new(struct free_debts **ret_debts)
{
	struct free_debts *debts = calloc(1, sizeof(*debts));

	if (!debts)
		return -ENOMEM;
	*ret_debts = debts;
	return 0;
}

void free_debts_free(struct free_debts *debts)
{
	if (!debts)
		return;
	HASH_DROP_ALL(debts->paid);
	free(debts);
}

/* NULL: there is no memory. */
static struct paid *find(struct free_debts *debts, const struct pp_debt_key *key, uint64_t owed)
{
	struct paid *paid;

	HASH_FIND(hh, debts->paid, key, (unsigned int)sizeof(*key), paid);
	/* The kernel side has dropped its debt and begun another one. */
	if (paid && paid->bytes > owed)
		paid->bytes = owed;
	if (paid)
		return paid;
	if (HASH_COUNT(debts->paid) >= 2 * PP_DEBTS_MAX)
		HASH_DROP_ALL(debts->paid);
	return HASH_GET(debts->paid, key, *key);
}

bool free_debts_take(struct free_debts *debts, const struct pp_block *block, __u64 owed,
		     __u32 chance)
{
	const struct pp_debt_key key = {.user_stack = block->key.user_stack,
					.tgid = block->key.id.tgid};
	struct paid *paid = owed ? find(debts, &key, owed) : NULL;
	uint64_t left;

	if (!paid || !block->bytes)
		return false;
	left = owed - paid->bytes;
	if (left < block->bytes) {
		/* The rest of a debt pays for a whole block, or for none. */
		paid->bytes = owed;
		return (double)chance < (double)left / (double)block->bytes * UINT32_MAX;
	}
	paid->bytes += block->bytes;
	return true;
}
