/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads the kernel's table of sampled allocations that were not freed, in batches, while the kernel
 * side writes to it.  A block that is freed or added meanwhile may be missing or not. */
#ifndef DRAIN_HELD_BLOCKS_H
#define DRAIN_HELD_BLOCKS_H

#include <stdbool.h>
#include <stdint.h>

#include <pyprofd/alloc.h>

struct held_blocks {
	int map_fd;	 /* borrowed */
	uint32_t cursor; /* where the next batch begins */
	bool is_begun, is_over;
};

/* Looks at a block.  Returns whether it stays in the table. */
typedef bool held_blocks_on_block(void *context, const struct pp_block *block);

/* Reads the next batch.  Begins with {.map_fd = ...}.  Returns 1: there may be more; 0: it was the
 * last one; -ENOMEM; -errno. */
int held_blocks_read(struct held_blocks *blocks, held_blocks_on_block *on_block, void *context);

#endif
