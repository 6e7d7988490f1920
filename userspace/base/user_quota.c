/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/user_quota.h"

#include <errno.h>
#include <stdlib.h>

#include "base/hash.h"

struct user_holding {
	uint64_t holder;
	bool is_refused; /* something, at least once */
	bool is_told;
	uint64_t amount;
	UT_hash_handle hh;
};

static struct user_holding *holding_find(const struct user_quota *quota, uint64_t holder)
{
	struct user_holding *holding;

	HASH_FIND(hh, quota->holding, &holder, sizeof(holder), holding);
	return holding;
}

static struct user_holding *holding_get(struct user_quota *quota, uint64_t holder)
{
	return HASH_GET(quota->holding, holder, holder);
}

void user_quota_release(struct user_quota *quota)
{
	HASH_DROP_ALL(quota->holding);
	*quota = (struct user_quota){0};
}

uint64_t user_quota_held(const struct user_quota *quota, uint64_t holder)
{
	const struct user_holding *holding = holding_find(quota, holder);

	return holding ? holding->amount : 0;
}

int user_quota_note(struct user_quota *quota, uint64_t holder, uint64_t amount)
{
	struct user_holding *holding = holding_get(quota, holder);

	if (!holding)
		return -ENOMEM;
	if (amount && !holding->amount)
		quota->users++;
	holding->amount += amount;
	quota->used += amount;
	return 0;
}

void user_quota_refuse(struct user_quota *quota, uint64_t holder)
{
	struct user_holding *holding = holding_get(quota, holder);

	quota->refused++;
	if (holding)
		holding->is_refused = true;
}

int user_quota_take(struct user_quota *quota, uint64_t holder, uint64_t amount)
{
	const uint64_t left = quota->used < quota->total ? quota->total - quota->used : 0;
	const uint64_t held = user_quota_held(quota, holder);

	if (amount <= left && (!holder || held + amount <= left - amount))
		return user_quota_note(quota, holder, amount);
	user_quota_refuse(quota, holder);
	return holder ? -EDQUOT : -ENOSPC;
}

void user_quota_give(struct user_quota *quota, uint64_t holder, uint64_t amount)
{
	struct user_holding *holding = holding_find(quota, holder);

	if (!holding || !amount)
		return;
	holding->amount -= amount;
	quota->used -= amount;
	if (holding->amount)
		return;
	quota->users--;
	/* Who was refused stays, so that this is told once. */
	if (!holding->is_refused)
		HASH_DROP(quota->holding, holding);
}

void user_quota_give_each(struct user_quota *quota, uint64_t amount)
{
	struct user_holding *holding, *next;

	HASH_ITER (hh, quota->holding, holding, next)
		user_quota_give(quota, holding->holder,
				holding->amount < amount ? holding->amount : amount);
}

uint64_t user_quota_most(const struct user_quota *quota)
{
	const struct user_holding *most = NULL;

	for (const struct user_holding *holding = quota->holding; holding;
	     holding = holding->hh.next)
		if (holding->holder && holding->amount && (!most || holding->amount > most->amount))
			most = holding;
	return most ? most->holder : 0;
}

static bool is_greedy(const struct user_quota *quota, const struct user_holding *holding)
{
	return holding->amount > quota->total / (quota->users + 1);
}

bool user_quota_is_greedy(const struct user_quota *quota, uint64_t holder)
{
	const struct user_holding *holding = holding_find(quota, holder);

	return holding && is_greedy(quota, holding);
}

bool user_quota_has_greedy(const struct user_quota *quota)
{
	for (const struct user_holding *holding = quota->holding; holding;
	     holding = holding->hh.next)
		if (is_greedy(quota, holding))
			return true;
	return false;
}

bool user_quota_tell(struct user_quota *quota, uint32_t *ret_uid)
{
	for (struct user_holding *holding = quota->holding; holding; holding = holding->hh.next) {
		if (!holding->is_refused || holding->is_told)
			continue;
		holding->is_told = true;
		*ret_uid = (uint32_t)holding->holder;
		return true;
	}
	return false;
}
