/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/page_cache.h"

#include <errno.h>
#include <string.h>

#include "base/io.h"

void page_cache_init(struct page_cache *cache, pid_t pid)
{
	cache->pid = pid;
	cache->is_stale = false;
	cache->witness_count = 0;
	memset(cache->page, 0, sizeof(cache->page));
}

void page_cache_watch(struct page_cache *cache, const struct page_witness *witness, uint32_t count)
{
	cache->witness_count = count < PAGE_WITNESSES ? count : PAGE_WITNESSES;
	memcpy(cache->witness, witness, cache->witness_count * sizeof(*witness));
}

/* Reads a piece of memory, and the witnesses right after it. */
static int read_watched(struct page_cache *cache, uint64_t address, void *buffer, size_t size)
{
	struct process_piece piece[1 + PAGE_WITNESSES];
	uint64_t now[PAGE_WITNESSES];
	size_t count = 0;
	int err;

	if (size)
		piece[count++] = (struct process_piece){address, buffer, size};
	for (uint32_t i = 0; i < cache->witness_count; i++)
		piece[count++] = (struct process_piece){cache->witness[i].address, &now[i],
							sizeof(now[i])};
	err = count ? process_read_pieces(cache->pid, piece, count) : 0;
	if (err)
		return err;
	for (uint32_t i = 0; i < cache->witness_count; i++)
		if ((now[i] ^ cache->witness[i].word) & cache->witness[i].mask)
			cache->is_stale = true;
	return cache->is_stale ? -ESTALE : 0;
}

bool page_cache_holds(struct page_cache *cache)
{
	if (!cache->is_stale && read_watched(cache, 0, NULL, 0))
		cache->is_stale = true;
	return !cache->is_stale;
}

int page_cache_read(struct page_cache *cache, uint64_t address, void *buffer, size_t size)
{
	uint64_t at = address % PAGE_CACHE_PAGE_BYTES, page = address - at;
	size_t slot = page / PAGE_CACHE_PAGE_BYTES % PAGE_CACHE_PAGES;

	if (cache->is_stale)
		return -ESTALE;
	if (!page || size > PAGE_CACHE_PAGE_BYTES - at)
		return read_watched(cache, address, buffer, size);
	if (cache->page[slot] != page) {
		int err = read_watched(cache, page, cache->bytes[slot], PAGE_CACHE_PAGE_BYTES);

		cache->page[slot] = err ? 0 : page;
		if (err)
			return err;
	}
	memcpy(buffer, cache->bytes[slot] + at, size);
	return 0;
}
