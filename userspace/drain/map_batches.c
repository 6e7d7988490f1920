/* SPDX-License-Identifier: BSD-2-Clause */
#include "drain/map_batches.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <stdlib.h>

#include "base/cleanup.h"

#define BATCH_ENTRIES 1024U

int map_batches_read(struct map_batches *batches, map_batches_on_entry *on_entry, void *context)
{
	OWNED_MEM char *key = calloc(BATCH_ENTRIES, batches->key_bytes);
	OWNED_MEM char *value = calloc(BATCH_ENTRIES, batches->value_bytes);
	uint32_t in = batches->cursor, got = BATCH_ENTRIES;
	int err;

	if (!key || !value)
		return -ENOMEM;
	if (batches->is_over)
		return 0;
	err = bpf_map_lookup_batch(batches->map_fd, batches->is_begun ? &in : NULL,
				   &batches->cursor, key, value, &got, NULL);
	/* -ENOENT: the end, with the entries of this batch. */
	if (err && err != -ENOENT)
		return err;
	batches->is_begun = true;
	batches->is_over = err;
	for (uint32_t i = 0; i < got; i++)
		on_entry(context, key + i * batches->key_bytes, value + i * batches->value_bytes);
	return !batches->is_over;
}
