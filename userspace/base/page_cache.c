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
	memset(cache->block, 0, sizeof(cache->block));
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
		piece[count++] =
			(struct process_piece){cache->witness[i].address, &now[i], sizeof(now[i])};
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

/* Reads the pages from `first` to `last` of a slot's block, unless they are there. */
static int fill(struct page_cache *cache, size_t slot, size_t first, size_t last)
{
	for (size_t page = first; page <= last; page++) {
		const size_t at = page * PAGE_CACHE_PAGE_BYTES;
		int err;

		if (cache->pages[slot] >> page & 1)
			continue;
		err = read_watched(cache, cache->block[slot] + at, cache->bytes[slot] + at,
				   PAGE_CACHE_PAGE_BYTES);
		if (err)
			return err;
		cache->pages[slot] |= (uint8_t)(1U << page);
	}
	return 0;
}

/* Makes a block the slot's, with all of its pages if they are mapped. */
static int take_block(struct page_cache *cache, size_t slot, uint64_t block)
{
	int err = read_watched(cache, block, cache->bytes[slot], PAGE_CACHE_BLOCK_BYTES);

	cache->block[slot] = block;
	cache->pages[slot] = err ? 0 : (1U << PAGE_CACHE_BLOCK_PAGES) - 1;
	return err == -EFAULT ? 0 : err;
}

int page_cache_read(struct page_cache *cache, uint64_t address, void *buffer, size_t size)
{
	uint64_t at = address % PAGE_CACHE_BLOCK_BYTES, block = address - at;
	size_t slot = block / PAGE_CACHE_BLOCK_BYTES % PAGE_CACHE_BLOCKS;
	int err = 0;

	if (cache->is_stale)
		return -ESTALE;
	if (!block || !size || size > PAGE_CACHE_BLOCK_BYTES - at)
		return read_watched(cache, address, buffer, size);
	if (cache->block[slot] != block)
		err = take_block(cache, slot, block);
	if (!err)
		err = fill(cache, slot, at / PAGE_CACHE_PAGE_BYTES,
			   (at + size - 1) / PAGE_CACHE_PAGE_BYTES);
	if (err)
		return err;
	memcpy(buffer, cache->bytes[slot] + at, size);
	return 0;
}
