/* SPDX-License-Identifier: BSD-2-Clause */
#include "unwind/page_ranges.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"

#define PAGE_RANGES_REST_TICKS 2U

void page_ranges_init(struct page_ranges *ranges, uint32_t page_count)
{
	*ranges = (struct page_ranges){.page_count = page_count, .quota.total = page_count - 1};
}

void page_ranges_release(struct page_ranges *ranges)
{
	free(ranges->range);
	user_quota_release(&ranges->quota);
	*ranges = (struct page_ranges){0};
}

/* Finds room for `count` entries: *ret_first is the first of them, *ret_at its place in the
 * list. */
static int find_gap(const struct page_ranges *ranges, uint32_t count, uint32_t *ret_first,
		    size_t *ret_at)
{
	uint32_t first = 1;
	size_t i;

	for (i = 0; i < ranges->count && ranges->range[i].first - first < count; i++)
		first = ranges->range[i].first + ranges->range[i].count;
	if (!count || first >= ranges->page_count || count > ranges->page_count - first)
		return -ENOSPC;
	*ret_first = first;
	*ret_at = i;
	return 0;
}

int page_ranges_take(struct page_ranges *ranges, uint32_t uid, uint32_t count, uint32_t *ret_first)
{
	uint32_t first;
	size_t i;
	int err = user_quota_take(&ranges->quota, uid, count);

	if (err)
		return err;
	err = find_gap(ranges, count, &first, &i);
	if (!err && ARRAY_RESERVE(ranges->range, ranges->count, ranges->capacity))
		err = -ENOMEM;
	if (err) {
		user_quota_give(&ranges->quota, uid, count);
		return err;
	}
	memmove(&ranges->range[i + 1], &ranges->range[i],
		(ranges->count - i) * sizeof(*ranges->range));
	ranges->range[i] = (struct page_range){.first = first, .count = count, .uid = uid};
	ranges->count++;
	*ret_first = first;
	return 0;
}

const struct page_range *page_ranges_find(const struct page_ranges *ranges, uint32_t page)
{
	size_t low = 0, high = ranges->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		const struct page_range *range = &ranges->range[middle];

		if (page < range->first)
			high = middle;
		else if (page - range->first >= range->count)
			low = middle + 1;
		else
			return range->rest_ticks ? NULL : range;
	}
	return NULL;
}

void page_ranges_give(struct page_ranges *ranges, uint32_t first)
{
	const struct page_range *range = page_ranges_find(ranges, first);

	if (range && range->first == first)
		ranges->range[range - ranges->range].rest_ticks = PAGE_RANGES_REST_TICKS;
}

void page_ranges_tick(struct page_ranges *ranges)
{
	size_t kept = 0;

	for (size_t i = 0; i < ranges->count; i++) {
		struct page_range range = ranges->range[i];

		if (range.rest_ticks && !--range.rest_ticks) {
			user_quota_give(&ranges->quota, range.uid, range.count);
			continue;
		}
		ranges->range[kept++] = range;
	}
	ranges->count = kept;
}
