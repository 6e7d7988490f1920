/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads a kernel hash in batches, with whatever else is to be done between them, while the kernel
 * side writes to it.  An entry that is added or removed meanwhile may be missing or not. */
#ifndef DRAIN_MAP_BATCHES_H
#define DRAIN_MAP_BATCHES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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
