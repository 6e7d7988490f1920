/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/user_shares.h"

#include <bpf/bpf.h>
#include <stdbool.h>

#include <pyprofd/limits.h>

static struct pp_user_share *row_at(const struct user_shares *shares, uint32_t user, uint32_t way,
				    uint32_t *ret_index)
{
	*ret_index = pp_user_share_at(user, way, shares->secret);
	return &shares->row[*ret_index];
}

static uint32_t who_has(const struct pp_user_share *row)
{
	return __atomic_load_n(&row->who, __ATOMIC_RELAXED);
}

struct pp_user_share *user_shares_find(const struct user_shares *shares, uint32_t user)
{
	uint32_t index;

	for (uint32_t way = 0; user && way < PP_USER_SHARE_WAYS; way++) {
		struct pp_user_share *row = row_at(shares, user, way, &index);

		if (who_has(row) == user)
			return row;
	}
	return &shares->row[PP_USER_SHARE_COMMON];
}

struct pp_user_share *user_shares_claim(const struct user_shares *shares, uint32_t user)
{
	struct pp_user_share *found = user_shares_find(shares, user);
	uint32_t index, owner;

	if (!user || found != &shares->row[PP_USER_SHARE_COMMON])
		return found;
	for (uint32_t way = 0; way < PP_USER_SHARE_WAYS; way++) {
		struct pp_user_share *row = row_at(shares, user, way, &index);

		if (who_has(row))
			continue;
		(void)bpf_map_update_elem(shares->claims, &index, &user, BPF_NOEXIST);
		if (bpf_map_lookup_elem(shares->claims, &index, &owner) || owner != user)
			continue; /* the kernel side was first */
		__atomic_store_n(&row->who, user, __ATOMIC_RELAXED);
		return row;
	}
	return found;
}

void user_shares_give(const struct user_shares *shares, uint32_t user, size_t at)
{
	uint32_t *held;

	if (!user)
		return;
	held = (uint32_t *)((char *)user_shares_find(shares, user) + at);
	/* The kernel side may have counted down itself. */
	if (__atomic_load_n(held, __ATOMIC_RELAXED))
		__atomic_fetch_sub(held, 1, __ATOMIC_RELAXED);
}

/* Returns whether somebody has something in a row that would not begin anew by itself. */
static bool is_held(const struct pp_user_share *row)
{
	return row->processes || row->slots || row->calls >= PP_PROBE_CALLS_FADE ||
	       row->gpu_processes || row->gpu_waits || row->gpu_blocks || row->cuda_rows ||
	       row->rest.threads;
}

void user_shares_expire(const struct user_shares *shares)
{
	for (uint32_t i = 0; i < PP_USER_SHARES; i++) {
		struct pp_user_share *row = &shares->row[i];

		if (!who_has(row) || is_held(row)) {
			row->idle = 0;
		} else if (++row->idle > USER_SHARES_IDLE_MAX) {
			row->idle = 0;
			row->calls = 0; /* of those that never ended */
			__atomic_store_n(&row->who, 0, __ATOMIC_RELAXED);
			(void)bpf_map_delete_elem(shares->claims, &i);
		}
	}
}
