/* SPDX-License-Identifier: BSD-2-Clause */
#include "query/window_set.h"

#include <stdlib.h>

#include "base/array.h"

static uint32_t hash(const struct window_times *times)
{
	const uint64_t mixed = (times->start_ms ^ times->duration_ms << 40) * 0x9e3779b97f4a7c15ULL;

	return (uint32_t)(mixed >> 32);
}

static bool is_equal(const void *context, uint32_t index, const void *key)
{
	const struct window_times *item = &((const struct window_set *)context)->item[index];
	const struct window_times *times = key;

	return item->start_ms == times->start_ms && item->duration_ms == times->duration_ms;
}

void window_set_release(struct window_set *set)
{
	free(set->item);
	index_table_release(&set->index);
	*set = (struct window_set){0};
}

bool window_set_has(const struct window_set *set, uint64_t start_ms, uint64_t duration_ms)
{
	const struct window_times times = {.start_ms = start_ms, .duration_ms = duration_ms};
	uint32_t index;

	return index_table_find(&set->index, hash(&times), is_equal, set, &times, &index);
}

int window_set_add(struct window_set *set, uint64_t start_ms, uint64_t duration_ms)
{
	const struct window_times times = {.start_ms = start_ms, .duration_ms = duration_ms};
	int err;

	if (window_set_has(set, start_ms, duration_ms))
		return 0;
	err = ARRAY_RESERVE(set->item, set->count, set->capacity);
	if (err)
		return err;
	set->item[set->count] = times;
	err = index_table_add(&set->index, hash(&times), set->count);
	if (!err)
		set->count++;
	return err;
}
