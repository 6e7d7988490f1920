/* SPDX-License-Identifier: BSD-2-Clause */
#include "unwind/row_space.h"

#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/user_quota.h"

void index_ranges_init(struct index_ranges *ranges, uint32_t entries, uint32_t rest_ticks)
{
	*ranges = (struct index_ranges){
		.entries = entries, .rest_ticks = rest_ticks, .quota.total = entries - 1};
}

void index_ranges_release(struct index_ranges *ranges)
{
	free(ranges->range);
	user_quota_release(&ranges->quota);
	*ranges = (struct index_ranges){0};
}

/* Finds room for `count` entries: *ret_first is the first of them, *ret_at its place in the
 * list. */
static int find_gap(const struct index_ranges *ranges, uint32_t count, uint32_t *ret_first,
		    size_t *ret_at)
{
	uint32_t first = 1;
	size_t i;

	for (i = 0; i < ranges->count && ranges->range[i].first - first < count; i++)
		first = ranges->range[i].first + ranges->range[i].count;
	if (!count || first >= ranges->entries || count > ranges->entries - first)
		return -ENOSPC;
	*ret_first = first;
	*ret_at = i;
	return 0;
}

int index_ranges_take(struct index_ranges *ranges, uint32_t uid, uint32_t count,
		      uint32_t *ret_first)
{
	uint32_t first;
	size_t i;
	int err = user_quota_take(&ranges->quota, uid, count);

	if (err)
		return err;
	err = find_gap(ranges, count, &first, &i);
	if (err)
		user_quota_refuse(&ranges->quota, uid);
	if (!err && ARRAY_RESERVE(ranges->range, ranges->count, ranges->capacity))
		err = -ENOMEM;
	if (err) {
		user_quota_give(&ranges->quota, uid, count);
		return err;
	}
	memmove(&ranges->range[i + 1], &ranges->range[i],
		(ranges->count - i) * sizeof(*ranges->range));
	ranges->range[i] = (struct index_range){.first = first, .count = count, .uid = uid};
	ranges->count++;
	*ret_first = first;
	return 0;
}

const struct index_range *index_ranges_find(const struct index_ranges *ranges, uint32_t entry)
{
	const size_t begun = ARRAY_LEADING(ranges->count, at, ranges->range[at].first <= entry);
	const struct index_range *range;

	if (!begun)
		return NULL;
	range = &ranges->range[begun - 1];
	return entry - range->first < range->count && !range->rest_ticks ? range : NULL;
}

void index_ranges_give(struct index_ranges *ranges, uint32_t first)
{
	const struct index_range *range = index_ranges_find(ranges, first);

	if (range && range->first == first)
		ranges->range[range - ranges->range].rest_ticks = ranges->rest_ticks;
}

void index_ranges_undo(struct index_ranges *ranges, uint32_t first)
{
	const struct index_range *range = index_ranges_find(ranges, first);
	const size_t at = (size_t)(range - ranges->range);

	user_quota_give(&ranges->quota, range->uid, range->count);
	ranges->count--;
	memmove(&ranges->range[at], &ranges->range[at + 1],
		(ranges->count - at) * sizeof(*ranges->range));
}

void index_ranges_tick(struct index_ranges *ranges)
{
	size_t kept = 0;

	for (size_t i = 0; i < ranges->count; i++) {
		struct index_range range = ranges->range[i];

		if (range.rest_ticks && !--range.rest_ticks) {
			user_quota_give(&ranges->quota, range.uid, range.count);
			continue;
		}
		ranges->range[kept++] = range;
	}
	ranges->count = kept;
}

static bool is_set(const uint64_t *bits, uint32_t i)
{
	return bits[i / 64] >> (i % 64) & 1;
}

static void set_range(uint64_t *bits, uint32_t first, uint32_t count)
{
	for (uint32_t i = first; i < first + count; i++)
		bits[i / 64] |= 1ULL << (i % 64);
}

int row_space_new(uint32_t shard_count, struct row_space **ret_space)
{
	OWNED(row_space) struct row_space *space = NULL;
	const size_t words = (size_t)shard_count * ROW_SHARD_WORDS;

	if (!shard_count || shard_count > PP_MAX_ROW_SHARDS)
		return -EINVAL;
	space = calloc(1, sizeof(*space));
	if (!space)
		return -ENOMEM;
	space->shard_count = shard_count;
	space->taken = calloc(words, sizeof(uint64_t));
	space->resting[0] = calloc(words, sizeof(uint64_t));
	space->resting[1] = calloc(words, sizeof(uint64_t));
	space->shard_free = calloc(shard_count, sizeof(uint32_t));
	if (!space->taken || !space->resting[0] || !space->resting[1] || !space->shard_free)
		return -ENOMEM;
	for (uint32_t i = 0; i < shard_count; i++)
		space->shard_free[i] = ROW_SHARD_GRANULES;
	space->free_count = shard_count * ROW_SHARD_GRANULES;
	*ret_space = TAKE(space);
	return 0;
}

void row_space_free(struct row_space *space)
{
	if (!space)
		return;
	free(space->taken);
	free(space->resting[0]);
	free(space->resting[1]);
	free(space->shard_free);
	free(space);
}

/* Finds `count` consecutive free granules in [first, end) of one shard.  Returns false when there
 * are none. */
static bool find_run(const struct row_space *space, uint32_t first, uint32_t end, uint32_t count,
		     uint32_t *ret_granule)
{
	uint32_t run = 0;

	for (uint32_t i = first; i < end; i++) {
		if (run == 0 && i % 64 == 0 && space->taken[i / 64] == UINT64_MAX) {
			i += 63;
			continue;
		}
		run = is_set(space->taken, i) ? 0 : run + 1;
		if (run == count) {
			*ret_granule = i + 1 - count;
			return true;
		}
	}
	return false;
}

int row_space_take(struct row_space *space, uint32_t rows, uint32_t *ret_row_start)
{
	const uint32_t count = row_space_granules(rows),
		       start_shard = space->cursor / ROW_SHARD_GRANULES;
	uint32_t granule;

	if (!rows || rows > PP_ROW_SHARD_ROWS)
		return -ENOSPC;
	/* Search from the cursor to the end, then from the beginning, and the cursor's shard once
	 * more from its start. */
	for (uint32_t i = 0; i <= space->shard_count; i++) {
		uint32_t shard = (start_shard + i) % space->shard_count;
		uint32_t first = i ? shard * ROW_SHARD_GRANULES : space->cursor;

		if (space->shard_free[shard] < count ||
		    !find_run(space, first, (shard + 1) * ROW_SHARD_GRANULES, count, &granule))
			continue;
		set_range(space->taken, granule, count);
		space->shard_free[shard] -= count;
		space->free_count -= count;
		space->cursor = (granule + count) % (space->shard_count * ROW_SHARD_GRANULES);
		*ret_row_start = granule * ROW_GRANULE_ROWS;
		return 0;
	}
	return -ENOSPC;
}

void row_space_give(struct row_space *space, uint32_t row_start, uint32_t rows)
{
	const uint32_t count = row_space_granules(rows);

	set_range(space->resting[0], row_start / ROW_GRANULE_ROWS, count);
	space->resting_count += count;
}

void row_space_tick(struct row_space *space)
{
	uint64_t *rested = space->resting[1];

	for (uint32_t i = 0; i < space->shard_count * ROW_SHARD_WORDS; i++) {
		uint32_t count = (uint32_t)__builtin_popcountll(rested[i]);

		space->taken[i] &= ~rested[i];
		rested[i] = 0;
		space->shard_free[i / ROW_SHARD_WORDS] += count;
		space->free_count += count;
		space->resting_count -= count;
	}
	space->resting[1] = space->resting[0];
	space->resting[0] = rested;
}
