/* SPDX-License-Identifier: BSD-2-Clause */
/* Lists the files of a store, or of any directory with the store's layout, in a time range. */
#ifndef STORE_STORE_QUERY_H
#define STORE_STORE_QUERY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "store/store_names.h"

struct store_range {
	uint64_t since_ms, until_ms; /* windows that overlap [since, until); 0, UINT64_MAX: all */
	const char *kind;	     /* NULL: every kind */
};

struct store_entry {
	struct store_file file;
	char *path; /* DIR/day/hour/name */
};

/* Release with store_listing_release(), even when store_list() failed.  Sorted by start, then
 * merged files before others, then by kind. */
struct store_listing {
	struct store_entry *entry;
	size_t count, capacity;
};

/* Returns whether a window with these times is in a range. */
bool store_range_has(const struct store_range *range, uint64_t start_ms, uint64_t duration_ms);
/* Lists the files in a range, of which merged files may have windows outside of it.  Also accepts a
 * directory that holds the files themselves, with names of the store but without the directories of
 * days.  Symbolic links are not followed, other names are ignored.  A file that is renamed
 * meanwhile, as merging does, is listed under its old name, its new one, or both.
 * Returns 0, also when there are no files; -ENOTDIR, -ENOENT, -EACCES, -errno. */
int store_list(const char *directory, const struct store_range *range,
	       struct store_listing *ret_listing);
void store_listing_release(struct store_listing *listing);

#endif
