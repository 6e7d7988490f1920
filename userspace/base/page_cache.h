/* SPDX-License-Identifier: BSD-2-Clause */
/* Pages of another process's memory, for many small reads side by side: a system call a page.
 * Short-lived: what it has read once it does not read again. */
#ifndef BASE_PAGE_CACHE_H
#define BASE_PAGE_CACHE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define PAGE_CACHE_PAGES 8U
#define PAGE_CACHE_PAGE_BYTES 4096U

/* A word that says whether what is read is still of the same moment: it is so while (*address ^ word) & mask
 * is 0. */
struct page_witness {
	uint64_t address, word, mask;
};
#define PAGE_WITNESSES 8U

/* page_cache_init() first: most of it need not be cleared. */
struct page_cache {
	pid_t pid;
	bool is_stale; /* a witness has changed: nothing more is read */
	uint32_t witness_count;
	struct page_witness witness[PAGE_WITNESSES];
	uint64_t page[PAGE_CACHE_PAGES]; /* addresses; 0: empty */
	uint8_t bytes[PAGE_CACHE_PAGES][PAGE_CACHE_PAGE_BYTES];
};

void page_cache_init(struct page_cache *cache, pid_t pid);
/* Looks at these words, PAGE_WITNESSES at most, each time that a page is read, and right after it: a thread may
 * come back to where it was, so that looking before and after all of them is not enough. */
void page_cache_watch(struct page_cache *cache, const struct page_witness *witness, uint32_t count);
/* Whether all of them are there still.  One call. */
bool page_cache_holds(struct page_cache *cache);
/* As process_read(); -ESTALE: a witness has changed. */
int page_cache_read(struct page_cache *cache, uint64_t address, void *buffer, size_t size);

#endif
