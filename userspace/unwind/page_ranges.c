/* SPDX-License-Identifier: BSD-2-Clause */
#include "unwind/page_ranges.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"

#define PAGE_RANGES_REST_TICKS 2U

void page_ranges_init(struct page_ranges *ranges, uint32_t page_count)
{
	*ranges = (struct page_ranges){.page_count = page_count};
}

void page_ranges_release(struct page_ranges *ranges)
{
	free(ranges->range);
	*ranges = (struct page_ranges){0};
}

int page_ranges_take(struct page_ranges *ranges, uint32_t count, uint32_t *ret_first)
{
	uint32_t first = 1;
	size_t i;

	for (i = 0; i < ranges->count && ranges->range[i].first - first < count; i++)
		first = ranges->range[i].first + ranges->range[i].count;
	if (!count || first >= ranges->page_count || count > ranges->page_count - first)
		return -ENOSPC;
	if (ARRAY_RESERVE(ranges->range, ranges->count, ranges->capacity))
		return -ENOMEM;
	memmove(&ranges->range[i + 1], &ranges->range[i],
		(ranges->count - i) * sizeof(*ranges->range));
	ranges->range[i] = (struct page_range){.first = first, .count = count};
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

		if (range.rest_ticks && !--range.rest_ticks)
			continue;
		ranges->range[kept++] = range;
	}
	ranges->count = kept;
}
