/* SPDX-License-Identifier: BSD-2-Clause */
/* Empties a kernel hash whose values are struct pp_count, or reads any: at once, or in batches. */
#ifndef DRAIN_TABLE_H
#define DRAIN_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <pyprofd/sample.h>

typedef int table_on_entry(void *context, const void *key, const void *value);
/* Empties the table by batch calls, or one by one where the kernel refuses them.  Nobody may write
 * to the table meanwhile.  Returns 0; the result of on_row when that is not 0; -ENOMEM; -errno. */
int table_drain(int map_fd, size_t key_bytes, table_on_entry *on_row, void *context);
/* Reads all entries; those that are added meanwhile may be missing.  Returns as table_drain(). */
int table_read(int map_fd, size_t key_bytes, size_t value_bytes, table_on_entry *on_entry,
	       void *context);
/* Read, write or remove one entry.  Return 0 or -errno. */
int table_get(int map_fd, const void *key, void *ret_value);
int table_set(int map_fd, const void *key, const void *value);
int table_remove(int map_fd, const void *key);

/* Reads a kernel hash in batches, with whatever else is to be done between them, while the kernel
 * side writes to it.  An entry that is added or removed meanwhile may be missing or not. */

struct map_batches {
	int map_fd; /* borrowed */
	size_t key_bytes, value_bytes;
	uint32_t cursor; /* where the next batch begins */
	bool is_begun, is_over;
};

/* Looks at an entry.  It may be removed. */
typedef void map_batches_on_entry(void *context, const void *key, const void *value);

/* Reads the next batch.  Begins with the descriptor and the sizes.  Returns 1: there may be more;
 * 0: it was the last one; -ENOMEM; -errno. */
int map_batches_read(struct map_batches *batches, map_batches_on_entry *on_entry, void *context);

#endif
