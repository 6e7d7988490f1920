/* SPDX-License-Identifier: BSD-2-Clause */
#include "drain/counts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/array.h"
#include "drain/table.h"

#define COARSE_MAX (COUNTS_MAX + COUNTS_MAX / 2)

void counts_release(struct counts *counts)
{
	free(counts->entry);
	index_table_release(&counts->index);
	*counts = (struct counts){};
}

static bool is_key(const void *context, uint32_t index, const void *key)
{
	const struct counts *counts = context;

	return !memcmp(&counts->entry[index].key, key, sizeof(struct pp_count_key));
}

static int add(struct counts *counts, const struct pp_count_key *key, const struct pp_count *count,
	       bool *ret_is_refused)
{
	const size_t max = key->user_stack == PP_STACK_OTHERS ? COARSE_MAX : COUNTS_MAX;
	const uint32_t hash = (uint32_t)XXH3_64bits(key, sizeof(*key));
	uint32_t at;

	*ret_is_refused = false;
	if (index_table_find(&counts->index, hash, is_key, counts, key, &at)) {
		counts->entry[at].count.samples += count->samples;
		counts->entry[at].count.weight += count->weight;
		counts->entry[at].count.squares += count->squares;
		return 0;
	}
	/* Rows without a process are few: their keys are those of rest[]. */
	if (counts->count >= max && key->id.tgid) {
		*ret_is_refused = true;
		return 0;
	}
	if (INDEX_RESERVE(&counts->index, hash, counts->entry, counts->count, counts->capacity))
		return -ENOMEM;
	counts->entry[counts->count++] = (struct counted){.key = *key, .count = *count};
	return 0;
}

int counts_add(struct counts *counts, const struct pp_count_key *key, const struct pp_count *count)
{
	struct pp_count_key coarse = *key;
	bool is_refused;
	int err = add(counts, key, count, &is_refused);

	if (err || !is_refused)
		return err;
	counts->bounded += count->samples ? count->samples : 1;
	pp_count_key_coarsen(&coarse);
	err = add(counts, &coarse, count, &is_refused);
	if (err || !is_refused)
		return err;
	coarse.id = (struct pp_process_id){};
	return add(counts, &coarse, count, &is_refused);
}

static int on_row(void *context, const void *key, const void *count)
{
	return counts_add(context, key, count);
}

int counts_drain(int map_fd, struct counts *counts)
{
	return table_drain(map_fd, sizeof(struct pp_count_key), on_row, counts);
}

int counts_drain_rest(struct pp_count *rest, uint32_t number, struct counts *counts)
{
	struct pp_count *half = rest + (size_t)(number & 1) * PP_REST_ROWS;
	int err = 0;

	for (uint32_t i = 0; i < PP_REST_ROWS && !err; i++) {
		struct pp_count_key key = pp_rest_key(i);

		if (!half[i].samples && !half[i].weight)
			continue;
		err = counts_add(counts, &key, &half[i]);
		half[i] = (struct pp_count){};
	}
	return err;
}

/* ---- waits by waker ---- */

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

static bool is_waking(const void *context, uint32_t index, const void *key)
{
	const struct wakes *wakes = context;

	return !memcmp(&wakes->entry[index].key, key, sizeof(struct pp_wake_key));
}

static int on_waking(void *context, const void *row_key, const void *row_count)
{
	const struct target *target = context;
	struct wakes *wakes = target->wakes;
	const struct pp_wake_key *key = row_key;
	const struct pp_count *count = row_count;
	struct pp_count_key coarse = {.id = key->id, .flags = key->flags, .kind = PP_KIND_WAKE};
	const uint32_t hash = (uint32_t)XXH3_64bits(key, sizeof(*key));
	uint32_t at;

	if (index_table_find(&wakes->index, hash, is_waking, wakes, key, &at)) {
		wakes->entry[at].count.samples += count->samples;
		wakes->entry[at].count.weight += count->weight;
		return 0;
	}
	if (wakes->count == WAKES_MAX) {
		target->counts->bounded += count->samples;
		pp_count_key_coarsen(&coarse);
		return counts_add(target->counts, &coarse, count);
	}
	if (INDEX_RESERVE(&wakes->index, hash, wakes->entry, wakes->count, wakes->capacity))
		return -ENOMEM;
	wakes->entry[wakes->count++] = (struct woken){.key = *key, .count = *count};
	return 0;
}

int wakes_drain(int map_fd, struct wakes *wakes, struct counts *counts)
{
	struct target target = {wakes, counts};

	return table_drain(map_fd, sizeof(struct pp_wake_key), on_waking, &target);
}
