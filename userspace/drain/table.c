/* SPDX-License-Identifier: BSD-2-Clause */
#include "drain/table.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

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

static int read_singly(int map_fd, uint8_t *key, void *value, size_t key_bytes,
		       table_on_entry *on_entry, void *context)
{
	uint8_t *next = key + key_bytes;
	const void *from = NULL;
	int err;

	while (!(err = bpf_map_get_next_key(map_fd, from, next))) {
		/* An entry that has gone meanwhile is none. */
		if (!bpf_map_lookup_elem(map_fd, next, value))
			err = on_entry(context, next, value);
		if (err)
			return err;
		memcpy(key, next, key_bytes);
		from = key;
	}
	return err == -ENOENT ? 0 : err;
}

int table_read(int map_fd, size_t key_bytes, size_t value_bytes, table_on_entry *on_entry,
	       void *context)
{
	OWNED_MEM uint8_t *key = calloc(BATCH_ENTRIES, key_bytes);
	OWNED_MEM uint8_t *value = calloc(BATCH_ENTRIES, value_bytes);
	uint32_t in = 0, out = 0;
	uint32_t *from = NULL;
	int err = 0;

	if (!key || !value)
		return -ENOMEM;
	while (!err) {
		uint32_t got = BATCH_ENTRIES;

		err = bpf_map_lookup_batch(map_fd, from, &out, key, value, &got, NULL);
		/* As in table_drain(); entries that come twice are the same ones. */
		if (err && err != -ENOENT)
			return read_singly(map_fd, key, value, key_bytes, on_entry, context);
		for (uint32_t i = 0; i < got; i++) {
			int failed =
				on_entry(context, key + i * key_bytes, value + i * value_bytes);

			if (failed)
				return failed;
		}
		in = out;
		from = &in;
	}
	return 0;
}

int table_get(int map_fd, const void *key, void *ret_value)
{
	return bpf_map_lookup_elem(map_fd, key, ret_value);
}

int table_set(int map_fd, const void *key, const void *value)
{
	return bpf_map_update_elem(map_fd, key, value, BPF_ANY);
}

int table_remove(int map_fd, const void *key)
{
	return bpf_map_delete_elem(map_fd, key);
}

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
