/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/index_table.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_SLOTS 64U
#define MAX_SLOTS (1U << 31)

void index_table_release(struct index_table *table)
{
	free(table->slot);
	*table = (struct index_table){0};
}

void index_table_clear(struct index_table *table)
{
	if (table->slot)
		memset(table->slot, 0, index_table_bytes(table));
	table->count = 0;
}

static void place(struct index_slot *slots, uint32_t mask, struct index_slot item)
{
	uint32_t at = item.hash & mask;

	while (slots[at].index_plus_1)
		at = (at + 1) & mask;
	slots[at] = item;
}

static int grow(struct index_table *table)
{
	uint32_t slots = table->slot ? table->mask + 1 : 0;
	uint32_t grown_slots = slots ? slots * 2 : FIRST_SLOTS;
	struct index_slot *grown;

	if (slots == MAX_SLOTS)
		return -ENOMEM;
	grown = calloc(grown_slots, sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	for (uint32_t i = 0; i < slots; i++)
		if (table->slot[i].index_plus_1)
			place(grown, grown_slots - 1, table->slot[i]);
	free(table->slot);
	table->slot = grown;
	table->mask = grown_slots - 1;
	return 0;
}

int index_table_add(struct index_table *table, uint32_t hash, uint32_t index)
{
	if (!table->slot || (table->count + 1) * 2 > table->mask) {
		int err = grow(table);

		if (err)
			return err;
	}
	place(table->slot, table->mask, (struct index_slot){hash, index + 1});
	table->count++;
	return 0;
}
