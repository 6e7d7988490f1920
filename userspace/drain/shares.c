/* SPDX-License-Identifier: BSD-2-Clause */
#include "drain/shares.h"

#include <errno.h>
#include <stdlib.h>

#ifndef HASH_NONFATAL_OOM
#define HASH_NONFATAL_OOM 1
#endif
#include <uthash.h>

/* Of a process, or of a user: then `id` has that number alone. */
struct share {
	struct pp_process_id id;
	size_t bytes;
	UT_hash_handle hh;
};

static struct pp_process_id user_id(uint32_t user)
{
	return (struct pp_process_id){.tgid = user};
}

static struct share *share_find(struct share *const *list, struct pp_process_id id)
{
	struct share *share;

	HASH_FIND(hh, *list, &id, sizeof(id), share);
	return share;
}

static struct share *share_get(struct share **list, struct pp_process_id id)
{
	struct share *share = share_find(list, id);

	if (share)
		return share;
	share = calloc(1, sizeof(*share));
	if (!share)
		return NULL;
	share->id = id;
	HASH_ADD(hh, *list, id, sizeof(share->id), share);
	if (!share->hh.tbl) { /* no memory for the table */
		free(share);
		return NULL;
	}
	return share;
}

static size_t held_bytes(struct share *const *list, struct pp_process_id id)
{
	const struct share *share = share_find(list, id);

	return share ? share->bytes : 0;
}

static void list_free(struct share **list)
{
	struct share *share, *next;

	HASH_ITER (hh, *list, share, next) {
		HASH_DEL(*list, share);
		free(share);
	}
}

void shares_reset(struct shares *shares)
{
	list_free(&shares->process);
	list_free(&shares->user);
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

int shares_take(struct shares *shares, const struct share_holder *holder, size_t bytes)
{
	const size_t left = free_bytes(shares);
	struct share *process, *user = NULL;

	if (held_bytes(&shares->process, holder->id) + bytes > left)
		return -ENOSPC;
	if (holder->user && held_bytes(&shares->user, user_id(holder->user)) + bytes > left)
		return -EDQUOT;
	process = share_get(&shares->process, holder->id);
	if (holder->user)
		user = share_get(&shares->user, user_id(holder->user));
	if (!process || (holder->user && !user))
		return -ENOMEM;
	process->bytes += bytes;
	if (user)
		user->bytes += bytes;
	shares->used_bytes += bytes;
	return 0;
}

void shares_recount(struct shares *shares, const struct share_holder *holder, size_t bytes)
{
	struct share *process = share_get(&shares->process, holder->id);
	struct share *user = holder->user ? share_get(&shares->user, user_id(holder->user)) : NULL;

	if (process)
		process->bytes += bytes;
	if (user)
		user->bytes += bytes;
	shares->used_bytes += bytes;
}

bool shares_is_greedy(const struct shares *shares, struct pp_process_id id)
{
	return held_bytes(&shares->process, id) > shares->max_bytes / 4;
}
