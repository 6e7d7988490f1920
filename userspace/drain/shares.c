/* SPDX-License-Identifier: BSD-2-Clause */
#include "drain/shares.h"

#include <stdlib.h>

#ifndef HASH_NONFATAL_OOM
#define HASH_NONFATAL_OOM 1
#endif
#include <uthash.h>

struct share {
	struct pp_process_id id;
	size_t bytes;
	UT_hash_handle hh;
};

static struct share *share_find(const struct shares *shares, struct pp_process_id id)
{
	struct share *share;

	HASH_FIND(hh, shares->share, &id, sizeof(id), share);
	return share;
}

static struct share *share_get(struct shares *shares, struct pp_process_id id)
{
	struct share *share = share_find(shares, id);

	if (share)
		return share;
	share = calloc(1, sizeof(*share));
	if (!share)
		return NULL;
	share->id = id;
	HASH_ADD(hh, shares->share, id, sizeof(share->id), share);
	if (!share->hh.tbl) { /* no memory for the table */
		free(share);
		return NULL;
	}
	return share;
}

void shares_reset(struct shares *shares)
{
	struct share *share, *next;

	HASH_ITER (hh, shares->share, share, next) {
		HASH_DEL(shares->share, share);
		free(share);
	}
	shares->used_bytes = 0;
}

void shares_release(struct shares *shares)
{
	shares_reset(shares);
}

static size_t free_bytes(const struct shares *shares)
{
	return shares->used_bytes < shares->max_bytes ? shares->max_bytes - shares->used_bytes : 0;
}

bool shares_take_common(struct shares *shares, size_t bytes)
{
	if (bytes > free_bytes(shares))
		return false;
	shares->used_bytes += bytes;
	return true;
}

bool shares_take(struct shares *shares, struct pp_process_id id, size_t bytes)
{
	struct share *share = share_find(shares, id);

	if ((share ? share->bytes : 0) + bytes > free_bytes(shares))
		return false;
	share = share_get(shares, id);
	if (!share)
		return false;
	share->bytes += bytes;
	shares->used_bytes += bytes;
	return true;
}

void shares_recount(struct shares *shares, struct pp_process_id id, size_t bytes)
{
	struct share *share = share_get(shares, id);

	if (share)
		share->bytes += bytes;
	shares->used_bytes += bytes;
}

bool shares_is_greedy(const struct shares *shares, struct pp_process_id id)
{
	const struct share *share = share_find(shares, id);

	return share && share->bytes > shares->max_bytes / 4;
}
