/* SPDX-License-Identifier: BSD-2-Clause */
#include "attach/rule_cache.h"

#include <errno.h>
#include <stdlib.h>

#include "base/array.h"

#define PAGE_BYTES (1ULL << PP_PAGE_SHIFT)

void rule_cache_release(struct rule_cache *cache)
{
	for (size_t i = 0; i < RULE_CACHE_PAGES; i++)
		free(cache->page[i].rows.row);
}

bool rows_may_come(int err)
{
	return err == -ENOSPC || err == -ENOMEM || err == -ETIMEDOUT || err == -EAGAIN;
}

/* Returns the page, or the one that was not used for longest. */
static struct rule_page *find_page(struct rule_cache *cache, uint32_t file, uint64_t low)
{
	struct rule_page *oldest = &cache->page[0];

	for (size_t i = 0; i < RULE_CACHE_PAGES; i++) {
		struct rule_page *page = &cache->page[i];

		if (page->file == file && page->low == low)
			return page;
		if (page->used_at < oldest->used_at)
			oldest = page;
	}
	return oldest;
}

static int read_page(struct rule_page *page, uint32_t file, const struct row_source *source,
		     uint64_t low)
{
	int err;

	page->file = 0;
	page->rows.count = 0;
	err = source->rows(source->context, low, low + PAGE_BYTES, &page->rows);
	if (rows_may_come(err) || err == -ETIME)
		return err;
	if (err)
		page->rows.count = 0;
	page->low = low;
	page->file = file;
	return 0;
}

/* Rows ascend, and the first one begins with the page. */
static void find_rule(const struct cfi_rows *rows, uint64_t vaddr, struct pp_rule *ret_rule)
{
	const size_t begun = ARRAY_LEADING(rows->count, at, rows->row[at].vaddr <= vaddr);

	*ret_rule = begun ? rows->row[begun - 1].rule
			  : (struct pp_rule){.kind = PP_RULE_NO_INFO};
}

/* Rows that are too many to keep are dropped as soon as one of them was found. */
static void drop_large(struct rule_page *page)
{
	if (page->rows.capacity <= RULE_CACHE_MAX_ROWS)
		return;
	free(page->rows.row);
	*page = (struct rule_page){0};
}

int rule_cache_find(struct rule_cache *cache, uint32_t file, const struct row_source *source,
		    uint64_t vaddr, struct pp_rule *ret_rule)
{
	const uint64_t low = vaddr & ~(PAGE_BYTES - 1);
	struct rule_page *page = find_page(cache, file, low);
	int err = 0;

	if (page->file != file || page->low != low)
		err = read_page(page, file, source, low);
	if (err)
		return err;
	page->used_at = ++cache->lookups;
	find_rule(&page->rows, vaddr, ret_rule);
	drop_large(page);
	return 0;
}
