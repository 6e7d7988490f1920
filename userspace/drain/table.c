/* SPDX-License-Identifier: BSD-2-Clause */
#include "drain/table.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/cleanup.h"

#define BATCH_ENTRIES 1024U

static int drain_singly(int map_fd, void *key, table_on_row *on_row, void *context)
{
	struct pp_count count;
	int err;

	while (!(err = bpf_map_get_next_key(map_fd, NULL, key))) {
		err = bpf_map_lookup_elem(map_fd, key, &count);
		if (!err)
			err = bpf_map_delete_elem(map_fd, key);
		if (!err)
			err = on_row(context, key, &count);
		if (err)
			return err;
	}
	return err == -ENOENT ? 0 : err;
}

int table_drain(int map_fd, size_t key_bytes, table_on_row *on_row, void *context)
{
	OWNED_MEM uint8_t *key = calloc(BATCH_ENTRIES, key_bytes);
	OWNED_MEM struct pp_count *count = calloc(BATCH_ENTRIES, sizeof(*count));
	uint32_t in = 0, out = 0;
	uint32_t *from = NULL;
	int err = 0;

	if (!key || !count)
		return -ENOMEM;
	while (!err) {
		uint32_t got = BATCH_ENTRIES;

		err = bpf_map_lookup_and_delete_batch(map_fd, from, &out, key, count, &got, NULL);
		/* -ENOENT: the end, with the rows of this batch.  -ENOSPC: a bucket is larger than
		 * the batch, and nothing was taken. */
		if (err && err != -ENOENT)
			return drain_singly(map_fd, key, on_row, context);
		for (uint32_t i = 0; i < got; i++) {
			int failed = on_row(context, key + i * key_bytes, &count[i]);

			if (failed)
				return failed;
		}
		in = out;
		from = &in;
	}
	return 0;
}
