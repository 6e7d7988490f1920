/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/page_cache.h"

#include <string.h>

#include "base/io.h"

void page_cache_init(struct page_cache *cache, pid_t pid)
{
	cache->pid = pid;
	memset(cache->page, 0, sizeof(cache->page));
}

int page_cache_read(struct page_cache *cache, uint64_t address, void *buffer, size_t size)
{
	uint64_t at = address % PAGE_CACHE_PAGE_BYTES, page = address - at;
	size_t slot = page / PAGE_CACHE_PAGE_BYTES % PAGE_CACHE_PAGES;

	if (!page || size > PAGE_CACHE_PAGE_BYTES - at)
		return process_read(cache->pid, address, buffer, size);
	if (cache->page[slot] != page) {
		int err = process_read(cache->pid, page, cache->bytes[slot], PAGE_CACHE_PAGE_BYTES);

		cache->page[slot] = err ? 0 : page;
		if (err)
			return err;
	}
	memcpy(buffer, cache->bytes[slot] + at, size);
	return 0;
}
