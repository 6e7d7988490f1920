/* SPDX-License-Identifier: BSD-2-Clause */
#include "drain/wakes.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/array.h"
#include "drain/table.h"

void wakes_release(struct wakes *wakes)
{
	free(wakes->entry);
	index_table_release(&wakes->index);
	*wakes = (struct wakes){};
}

struct target {
	struct wakes *wakes;
	struct counts *counts;
};

static bool is_key(const void *context, uint32_t index, const void *key)
{
	const struct wakes *wakes = context;

	return !memcmp(&wakes->entry[index].key, key, sizeof(struct pp_wake_key));
}

static uint32_t hash_of(const struct pp_wake_key *key)
{
	return (uint32_t)XXH3_64bits(key, sizeof(*key));
}

static int append(struct wakes *wakes, const struct pp_wake_key *key, uint32_t hash,
		  const struct pp_count *count)
{
	int err = ARRAY_RESERVE(wakes->entry, wakes->count, wakes->capacity);

	if (!err)
		err = index_table_add(&wakes->index, hash, (uint32_t)wakes->count);
	if (err)
		return err;
	wakes->entry[wakes->count++] = (struct woken){.key = *key, .count = *count};
	return 0;
}

static int on_row(void *context, const void *row_key, const struct pp_count *count)
{
	const struct target *target = context;
	struct wakes *wakes = target->wakes;
	const struct pp_wake_key *key = row_key;
	struct pp_count_key coarse = {.id = key->id, .flags = key->flags, .kind = PP_KIND_WAKE};
	uint32_t hash = hash_of(key), at;

	if (index_table_find(&wakes->index, hash, is_key, wakes, key, &at)) {
		wakes->entry[at].count.samples += count->samples;
		wakes->entry[at].count.weight += count->weight;
		return 0;
	}
	if (wakes->count < WAKES_MAX)
		return append(wakes, key, hash, count);
	target->counts->bounded += count->samples;
	pp_count_key_coarsen(&coarse);
	return counts_add(target->counts, &coarse, count);
}

int wakes_drain(int map_fd, struct wakes *wakes, struct counts *counts)
{
	struct target target = {wakes, counts};

	return table_drain(map_fd, sizeof(struct pp_wake_key), on_row, &target);
}
