/* SPDX-License-Identifier: BSD-2-Clause */
/* Rows of pages for which unwind/row_store.h had no room: a deep stack would ask the child about
 * each of its frames.  Private to file_rows.c. */
#ifndef ATTACH_RULE_CACHE_H
#define ATTACH_RULE_CACHE_H

#include <stdint.h>

#include "unwind/row_store.h"

#define RULE_CACHE_PAGES 16U
/* Of a page; one with more is asked for again each time.  libLLVM's have 2,000 to 4,000. */
#define RULE_CACHE_MAX_ROWS 16384U

struct rule_page {
	uint32_t file; /* id; 0: none */
	uint64_t low;
	struct cfi_rows rows; /* none: the file has none there */
	uint64_t used_at;
};
struct rule_cache {
	struct rule_page page[RULE_CACHE_PAGES];
	uint64_t lookups;
};
void rule_cache_release(struct rule_cache *cache);

/* Finds the rule at an address of a file.  Returns 0, also when the source says that there is none
 * (PP_RULE_NO_INFO); -ENOMEM, -ENOSPC, -ETIMEDOUT, -EAGAIN: a later try may find one. */
int rule_cache_find(struct rule_cache *cache, uint32_t file, const struct row_source *source,
		    uint64_t vaddr, struct pp_rule *ret_rule);
/* Returns whether rows may come with a later try. */
bool rows_may_come(int err);

#endif
