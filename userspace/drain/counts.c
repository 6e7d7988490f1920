/* SPDX-License-Identifier: BSD-2-Clause */
#include "drain/counts.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <stdlib.h>

#include "base/cleanup.h"

#define BATCH_ENTRIES 1024U

void counts_release(struct counts *counts)
{
	free(counts->entry);
	*counts = (struct counts){};
}

int counts_add(struct counts *counts, const struct pp_count_key *key, const struct pp_count *count)
{
	if (counts->count == counts->capacity) {
		size_t capacity = counts->capacity ? counts->capacity * 2 : BATCH_ENTRIES;
		struct counted *grown = realloc(counts->entry, capacity * sizeof(*grown));

		if (!grown)
			return -ENOMEM;
		counts->entry = grown;
		counts->capacity = capacity;
	}
	counts->entry[counts->count++] = (struct counted){.key = *key, .count = *count};
	return 0;
}

static int drain_singly(int map_fd, struct counts *counts)
{
	struct pp_count_key key;
	struct pp_count count;

	int err;

	while (!(err = bpf_map_get_next_key(map_fd, NULL, &key))) {
		err = bpf_map_lookup_elem(map_fd, &key, &count);
		if (!err)
			err = bpf_map_delete_elem(map_fd, &key);
		if (!err)
			err = counts_add(counts, &key, &count);
		if (err)
			return err;
	}
	return err == -ENOENT ? 0 : err;
}

int counts_drain(int map_fd, struct counts *counts)
{
	OWNED_MEM struct pp_count_key *key = calloc(BATCH_ENTRIES, sizeof(*key));
	OWNED_MEM struct pp_count *count = calloc(BATCH_ENTRIES, sizeof(*count));
	uint32_t in = 0, out = 0;
	uint32_t *from = NULL;
	int err = 0;

	if (!key || !count)
		return -ENOMEM;
	while (!err) {
		uint32_t got = BATCH_ENTRIES;

		err = bpf_map_lookup_and_delete_batch(map_fd, from, &out, key, count, &got, NULL);
		/* -ENOENT: the end, with what is in this batch.  -ENOSPC: a bucket is larger than
		 * the batch; nothing was taken. */
		if (err && err != -ENOENT)
			return drain_singly(map_fd, counts);
		for (uint32_t i = 0; i < got; i++)
			if (counts_add(counts, &key[i], &count[i]))
				return -ENOMEM;
		in = out;
		from = &in;
	}
	return 0;
}
