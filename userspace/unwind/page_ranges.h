/* SPDX-License-Identifier: BSD-2-Clause */
/* Allocates entries of pages[] to files: first fit; a range that was freed is not reused for two
 * ticks. Entry 0 is never given out. Private to row_store.c. */
#ifndef UNWIND_PAGE_RANGES_H
#define UNWIND_PAGE_RANGES_H

#include <stddef.h>
#include <stdint.h>

#include "base/user_quota.h"

struct page_range {
	uint32_t first, count;
	uint32_t rest_ticks; /* 0: in use; else ticks until it is free */
	uint32_t uid;	     /* of the user whose share it is part of */
};

struct page_ranges {
	struct page_range *range; /* owned; sorted, without overlaps */
	size_t count, capacity;
	uint32_t page_count;
	struct user_quota quota; /* entries, the resting ones included */
};

void page_ranges_init(struct page_ranges *ranges, uint32_t page_count);
void page_ranges_release(struct page_ranges *ranges);
/* Allocates `count` entries for a user. Returns 0; -EDQUOT: more than his share; -ENOSPC;
 * -ENOMEM. */
int page_ranges_take(struct page_ranges *ranges, uint32_t uid, uint32_t count, uint32_t *ret_first);
void page_ranges_give(struct page_ranges *ranges, uint32_t first);
void page_ranges_tick(struct page_ranges *ranges);
/* Returns the allocated range that contains page, or NULL. */
const struct page_range *page_ranges_find(const struct page_ranges *ranges, uint32_t page);

#endif
