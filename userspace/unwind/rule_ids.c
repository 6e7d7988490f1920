/* SPDX-License-Identifier: BSD-2-Clause */
#include "unwind/rule_ids.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static uint32_t rule_hash(const struct pp_rule *rule)
{
	uint64_t word[2];

	memcpy(word, rule, sizeof(word));
	word[0] = (word[0] ^ word[1] * 0x9e3779b97f4a7c15) * 0xd6e8feb86659fd93;
	return (uint32_t)(word[0] >> 32 ^ word[0] >> 11);
}

int rule_ids_init(struct rule_ids *ids, struct pp_rule *rules, uint32_t count)
{
	const struct pp_rule stop = {.kind = PP_RULE_STOP};
	uint32_t slots = 4;

	/* At most half full. */
	while (slots < count * 2)
		slots *= 2;
	*ids = (struct rule_ids){.rules = rules, .count = count, .slot_count = slots};
	ids->slot = calloc(slots, sizeof(*ids->slot));
	ids->free = calloc(count, sizeof(*ids->free));
	ids->user = calloc(count, sizeof(*ids->user));
	ids->rest = calloc(count, sizeof(*ids->rest));
	if (!ids->slot || !ids->free || !ids->user || !ids->rest)
		return -ENOMEM;
	memset(&rules[RULE_ID_NO_INFO], 0, sizeof(*rules));
	ids->used = ids->next = 1;
	ids->quota.total = count - 1;
	return rule_ids_get(ids, 0, &stop) == RULE_ID_STOP ? 0 : -EINVAL;
}

void rule_ids_release(struct rule_ids *ids)
{
	user_quota_release(&ids->quota);
	free(ids->slot);
	free(ids->free);
	free(ids->user);
	free(ids->rest);
}

/* Returns the slot of a rule, or the empty one where it belongs. */
static uint16_t *find_slot(const struct rule_ids *ids, const struct pp_rule *rule)
{
	const uint32_t mask = ids->slot_count - 1;
	uint32_t at = rule_hash(rule) & mask;

	while (ids->slot[at] && memcmp(&ids->rules[ids->slot[at]], rule, sizeof(*rule)) != 0)
		at = (at + 1) & mask;
	return &ids->slot[at];
}

uint16_t rule_ids_get(struct rule_ids *ids, uint32_t uid, const struct pp_rule *rule)
{
	static const struct pp_rule no_info = {.kind = PP_RULE_NO_INFO};
	uint16_t *slot, id;

	if (!memcmp(rule, &no_info, sizeof(*rule)))
		return RULE_ID_NO_INFO;
	slot = find_slot(ids, rule);
	if (*slot)
		return *slot;
	if (ids->used == ids->count || user_quota_take(&ids->quota, uid, 1)) {
		ids->refused++;
		return RULE_ID_NO_INFO;
	}
	id = ids->free_count ? ids->free[--ids->free_count] : (uint16_t)ids->next++;
	ids->used++;
	ids->rules[id] = *rule;
	ids->user[id] = uid;
	*slot = id;
	return id;
}

bool rule_ids_want_sweep(const struct rule_ids *ids)
{
	return ids->refused && ids->ticks >= RULE_SWEEP_TICKS;
}

void rule_ids_sweep(struct rule_ids *ids, const uint64_t *named)
{
	memset(ids->slot, 0, ids->slot_count * sizeof(*ids->slot));
	for (uint32_t id = RULE_ID_STOP; id < ids->next; id++) {
		const bool is_named = named[id / 64] >> id % 64 & 1;

		if (ids->rest[id] || ids->rules[id].kind == PP_RULE_NO_INFO)
			continue;
		if (is_named || id == RULE_ID_STOP)
			*find_slot(ids, &ids->rules[id]) = (uint16_t)id;
		else
			ids->rest[id] = RULE_REST_TICKS;
	}
	ids->refused = ids->ticks = 0;
}

/* A walk that began two ticks ago is over: nobody reads the rule any more. */
static void give_back(struct rule_ids *ids, uint32_t id)
{
	ids->rules[id] = (struct pp_rule){.kind = PP_RULE_NO_INFO};
	ids->free[ids->free_count++] = (uint16_t)id;
	ids->used--;
	user_quota_give(&ids->quota, ids->user[id], 1);
}

void rule_ids_tick(struct rule_ids *ids)
{
	ids->ticks++;
	for (uint32_t id = RULE_ID_STOP; id < ids->next; id++)
		if (ids->rest[id] && !--ids->rest[id])
			give_back(ids, id);
}
