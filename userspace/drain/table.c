/* SPDX-License-Identifier: BSD-2-Clause */
#include "drain/table.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

#define BATCH_ENTRIES 1024U

/* A table that is gone through. */
struct table {
	int map_fd;
	size_t key_bytes, value_bytes;
	table_on_entry *on_entry;
	void *context;
};

static int drain_singly(const struct table *table, uint8_t *key, void *value)
{
	int err;

	while (!(err = bpf_map_get_next_key(table->map_fd, NULL, key))) {
		err = bpf_map_lookup_elem(table->map_fd, key, value);
		if (!err)
			err = bpf_map_delete_elem(table->map_fd, key);
		if (!err)
			err = table->on_entry(table->context, key, value);
		if (err)
			return err;
	}
	return err == -ENOENT ? 0 : err;
}

static int read_singly(const struct table *table, uint8_t *key, void *value)
{
	uint8_t *next = key + table->key_bytes;
	const void *from = NULL;
	int err;

	while (!(err = bpf_map_get_next_key(table->map_fd, from, next))) {
		/* An entry that has gone meanwhile is none. */
		if (!bpf_map_lookup_elem(table->map_fd, next, value))
			err = table->on_entry(table->context, next, value);
		if (err)
			return err;
		memcpy(key, next, table->key_bytes);
		from = key;
	}
	return err == -ENOENT ? 0 : err;
}

/* Calls `read_batch` until the end, or `singly` where the kernel refuses that. */
static int go_through(const struct table *table, __typeof__(bpf_map_lookup_batch) *read_batch,
		      int (*singly)(const struct table *table, uint8_t *key, void *value))
{
	OWNED_MEM uint8_t *key = calloc(BATCH_ENTRIES, table->key_bytes);
	OWNED_MEM uint8_t *value = calloc(BATCH_ENTRIES, table->value_bytes);
	uint32_t in = 0, out = 0;
	uint32_t *from = NULL;
	int err = 0;

	if (!key || !value)
		return -ENOMEM;
	while (!err) {
		uint32_t got = BATCH_ENTRIES;

		err = read_batch(table->map_fd, from, &out, key, value, &got, NULL);
		/* -ENOENT: the end, with the rows of this batch.  -ENOSPC: a bucket is larger than
		 * the batch, and nothing was taken; entries that then come twice are the same. */
		if (err && err != -ENOENT)
			return singly(table, key, value);
		for (uint32_t i = 0; i < got; i++) {
			int failed = table->on_entry(table->context, key + i * table->key_bytes,
						     value + i * table->value_bytes);

			if (failed)
				return failed;
		}
		in = out;
		from = &in;
	}
	return 0;
}

int table_drain(int map_fd, size_t key_bytes, table_on_entry *on_row, void *context)
{
	const struct table table = {map_fd, key_bytes, sizeof(struct pp_count), on_row, context};

	return go_through(&table, bpf_map_lookup_and_delete_batch, drain_singly);
}

int table_read(int map_fd, size_t key_bytes, size_t value_bytes, table_on_entry *on_entry,
	       void *context)
{
	const struct table table = {map_fd, key_bytes, value_bytes, on_entry, context};

	return go_through(&table, bpf_map_lookup_batch, read_singly);
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
