/* SPDX-License-Identifier: BSD-2-Clause */
/* Pages of another process's memory, for many small reads side by side: a system call a page.
 * Short-lived: what it has read once it does not read again. */
#ifndef BASE_PAGE_CACHE_H
#define BASE_PAGE_CACHE_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define PAGE_CACHE_PAGES 8U
#define PAGE_CACHE_PAGE_BYTES 4096U

/* page_cache_init() first: most of it need not be cleared. */
struct page_cache {
	pid_t pid;
	uint64_t page[PAGE_CACHE_PAGES]; /* addresses; 0: empty */
	uint8_t bytes[PAGE_CACHE_PAGES][PAGE_CACHE_PAGE_BYTES];
};

void page_cache_init(struct page_cache *cache, pid_t pid);
/* As process_read(). */
int page_cache_read(struct page_cache *cache, uint64_t address, void *buffer, size_t size);

#endif
