/* SPDX-License-Identifier: BSD-2-Clause */
#include "drain/held_blocks.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <stdlib.h>

#include "base/cleanup.h"

#define BATCH_BLOCKS 1024U

int held_blocks_read(struct held_blocks *blocks, held_blocks_on_block *on_block, void *context)
{
	OWNED_MEM struct pp_block_key *key = calloc(BATCH_BLOCKS, sizeof(*key));
	OWNED_MEM struct pp_block *block = calloc(BATCH_BLOCKS, sizeof(*block));
	uint32_t in = blocks->cursor, got = BATCH_BLOCKS;
	int err;

	if (!key || !block)
		return -ENOMEM;
	if (blocks->is_over)
		return 0;
	err = bpf_map_lookup_batch(blocks->map_fd, blocks->is_begun ? &in : NULL, &blocks->cursor,
				   key, block, &got, NULL);
	/* -ENOENT: the end, with the blocks of this batch. */
	if (err && err != -ENOENT)
		return err;
	blocks->is_begun = true;
	blocks->is_over = err;
	for (uint32_t i = 0; i < got; i++)
		if (!on_block(context, &block[i]))
			(void)bpf_map_delete_elem(blocks->map_fd, &key[i]);
	return !blocks->is_over;
}
