/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/user_shares.h"

#include <bpf/bpf.h>
#include <stdbool.h>

#include <pyprofd/limits.h>

static uint32_t who_has(const struct pp_user_share *row)
{
	return __atomic_load_n(&row->who, __ATOMIC_RELAXED);
}

int user_shares_begin(const struct user_shares *shares)
{
	int err = 0;

	for (uint32_t i = 0; i < PP_USER_SHARES && !err; i++)
		err = bpf_map_update_elem(shares->free, NULL, &i, BPF_ANY);
	return err;
}

struct pp_user_share *user_shares_find(const struct user_shares *shares, uint32_t user)
{
	uint16_t *known = &shares->known[user % PP_USER_SHARES];
	uint32_t index = __atomic_load_n(known, __ATOMIC_RELAXED);

	if (!user || who_has(&shares->row[index]) == user)
		return &shares->row[user ? index : PP_USER_SHARE_COMMON];
	if (bpf_map_lookup_elem(shares->rows, &user, &index))
		return &shares->row[PP_USER_SHARE_COMMON];
	__atomic_store_n(known, (uint16_t)index, __ATOMIC_RELAXED);
	return &shares->row[index];
}

struct pp_user_share *user_shares_claim(const struct user_shares *shares, uint32_t user)
{
	struct pp_user_share *found = user_shares_find(shares, user);
	uint32_t index;

	if (!user || found != &shares->row[PP_USER_SHARE_COMMON] ||
	    bpf_map_lookup_and_delete_elem(shares->free, NULL, &index))
		return found;
	if (bpf_map_update_elem(shares->rows, &user, &index, BPF_NOEXIST)) {
		/* The kernel side was first. */
		(void)bpf_map_update_elem(shares->free, NULL, &index, BPF_ANY);
		return user_shares_find(shares, user);
	}
	__atomic_store_n(&shares->row[index].who, user, __ATOMIC_RELAXED);
	return &shares->row[index];
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
			(void)bpf_map_delete_elem(shares->rows, &row->who);
			*row = (struct pp_user_share){0}; /* calls that never ended, too */
			(void)bpf_map_update_elem(shares->free, NULL, &i, BPF_ANY);
		}
	}
}

void user_shares_fade_calls(const struct user_shares *shares)
{
	for (uint32_t i = 0; i < PP_USER_SHARE_ROWS; i++) {
		int32_t *const open = &shares->row[i].calls;
		const int32_t calls = __atomic_load_n(open, __ATOMIC_RELAXED);

		if (calls >= PP_PROBE_CALLS_FADE)
			__atomic_fetch_sub(open, calls / PP_PROBE_CALLS_FADE, __ATOMIC_RELAXED);
	}
}
