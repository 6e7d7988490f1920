/* SPDX-License-Identifier: BSD-2-Clause */
/* A short-lived cache of another process's pages, for many small reads near each other: one call
 * for a block of four, as a call costs as much as forty pages (docs/design/files.md), or for a
 * single page where others of its block are not mapped.  A page that was read once is not read
 * again. */
#ifndef BASE_PAGE_CACHE_H
#define BASE_PAGE_CACHE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define PAGE_CACHE_BLOCKS 8U
#define PAGE_CACHE_BLOCK_PAGES 4U
#define PAGE_CACHE_PAGE_BYTES 4096U
#define PAGE_CACHE_BLOCK_BYTES (PAGE_CACHE_BLOCK_PAGES * PAGE_CACHE_PAGE_BYTES)

/* A word by which a reader knows that the memory it read is still of the same moment: that holds
 * while (*address ^ word) & mask is 0. */
struct page_witness {
	uint64_t address, word, mask;
};
#define PAGE_WITNESSES 8U

/* Call page_cache_init() first; it clears only the fields that need it. */
struct page_cache {
	pid_t pid;
	bool is_stale; /* a witness has changed: no further page is read */
	uint32_t witness_count;
	struct page_witness witness[PAGE_WITNESSES];
	uint64_t block[PAGE_CACHE_BLOCKS]; /* addresses; 0: empty */
	uint8_t pages[PAGE_CACHE_BLOCKS];  /* which of the block's are there: a bit each */
	uint8_t bytes[PAGE_CACHE_BLOCKS][PAGE_CACHE_BLOCK_BYTES];
};

void page_cache_init(struct page_cache *cache, pid_t pid);
/* Checks these words, at most PAGE_WITNESSES, right after each page is read. Checks before and
 * after all of the reads would not do: the thread may have moved on and come back in between. */
void page_cache_watch(struct page_cache *cache, const struct page_witness *witness, uint32_t count);
/* Returns whether all witnesses still hold. One system call. */
bool page_cache_holds(struct page_cache *cache);
/* Reads as process_read() does. -ESTALE: a witness has changed. */
int page_cache_read(struct page_cache *cache, uint64_t address, void *buffer, size_t size);

#endif
