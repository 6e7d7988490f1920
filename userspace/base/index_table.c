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
	uint32_t at = INDEX_START(item.hash, mask);

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

/* ---- groups ---- */

void grouped_release(struct grouped *grouped)
{
	free(grouped->item);
	free(grouped->first);
}

int grouped_init(struct grouped *grouped, const void *array, size_t item_bytes, size_t offset,
		 uint32_t count, uint32_t groups)
{
	const char *group = array;
	uint32_t *first = calloc((size_t)groups + 2, sizeof(*first));
	uint32_t *item = calloc((size_t)count + 1, sizeof(*item));

	*grouped = (struct grouped){.item = item, .first = first};
	if (!first || !item)
		return -ENOMEM;
	/* first[g + 2] counts those of g; later first[g + 1] is where those of g go. */
	for (uint32_t i = 0; i < count; i++)
		first[(size_t)*(const uint32_t *)(group + i * item_bytes + offset) + 2]++;
	for (size_t g = 2; g <= groups; g++)
		first[g] += first[g - 1];
	for (uint32_t i = 0; i < count; i++) {
		const uint32_t at = *(const uint32_t *)(group + i * item_bytes + offset);

		item[first[(size_t)at + 1]++] = i;
	}
	return 0;
}
