/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Who answers for a thread, which row of user_shares[] is whose, and how the ring `stacks`, the
 * tokens for incomplete stacks and the room for processes are divided.  docs/design/shares.md. */
#ifndef BPF_LIB_USER_SHARE_H
#define BPF_LIB_USER_SHARE_H

#include "lib/user.bpf.h"

#define USER_NAMESPACES_MAX 33U /* user_namespaces(7): they nest 32 deep */
#define USER_RANGES_STEPS 14U	/* a search in PP_USER_RANGES rows */

/* Returns who answers for a user id: userspace/base/who_answers.h. */
static __always_inline __u32 who_answers(__u32 user)
{
	const struct pp_config *cfg = config_get();
	const __u32 ranges = cfg ? cfg->user_ranges : 0;
	__u32 low = 0, high = ranges >> 1;

	for (__u32 i = 0; i < USER_RANGES_STEPS && low < high; i++) {
		const __u32 middle = (low + high) / 2;
		const __u32 at = middle + (ranges & 1 ? PP_USER_RANGES : 0);
		const struct pp_user_range *range = bpf_map_lookup_elem(&user_ranges, &at);

		if (!range)
			break;
		if (user >= range->first && user <= range->last)
			return range->owner;
		if (user < range->first)
			high = middle;
		else
			low = middle + 1;
	}
	return user;
}

int user_of_cred(__u64 address)
{
	const struct cred *cred = (const void *)address;
	const struct user_namespace *inner = BPF_CORE_READ(cred, user_ns);
	__u32 user = BPF_CORE_READ(cred, euid.val);

	if (!user) /* anybody may start a set-user-ID program */
		user = BPF_CORE_READ(cred, uid.val);

	for (__u32 i = 0; i < USER_NAMESPACES_MAX; i++) {
		__u32 owner;

		if (BPF_CORE_READ(inner, level) <= 0)
			break;
		owner = BPF_CORE_READ(inner, owner.val);
		if (owner)
			user = owner;
		inner = BPF_CORE_READ(inner, parent);
	}
	return (int)who_answers(user);
}

/* Linux 5.10 has no compare-and-swap; an insert with BPF_NOEXIST does the same. */
__noinline int share_claim(__u32 user)
{
	const struct pp_config *cfg = config_get();
	const struct pp_user_share *found = share_of(user);

	if (!cfg || !found || found->who == user)
		return 0;
	for (__u32 way = 0; way < PP_USER_SHARE_WAYS; way++) {
		const __u32 index = pp_user_share_at(user, way, cfg->name_secret);
		struct pp_user_share *share = bpf_map_lookup_elem(&user_shares, &index);
		const __u32 *owner;

		if (!share || share->who)
			continue;
		bpf_map_update_elem(&share_claims, &index, &user, BPF_NOEXIST);
		owner = bpf_map_lookup_elem(&share_claims, &index);
		if (!owner || *owner != user) /* another CPU was first */
			continue;
		share->who = user;
		return 0;
	}
	count_loss(PP_LOSS_SHARES_FULL);
	return 1;
}

int ring_share_take(__u32 user, __u32 bytes)
{
	struct pp_config *cfg = config_get();
	struct pp_user_share *share = share_of(user);
	__u64 size = bpf_ringbuf_query(&stacks, BPF_RB_RING_SIZE);
	__u64 used = bpf_ringbuf_query(&stacks, BPF_RB_AVAIL_DATA);

	if (!cfg || !share)
		return 0;
	if (share->turn != cfg->ring_turn) {
		share->turn = cfg->ring_turn;
		share->bytes = 0;
	}
	if (used + share->bytes + 2ULL * bytes > size)
		return 1;
	__sync_fetch_and_add(&share->bytes, bytes);
	return 0;
}

/* Takes a token for a user.  Returns 0; 1: none is left, or none for him. */
__noinline int token_take(__u32 user)
{
	struct pp_config *cfg = config_get();
	struct pp_user_share *share = share_of(user);

	if (!cfg || cfg->incomplete_tokens <= 0)
		return 1;
	if (share) {
		if (share->round != cfg->token_round) {
			share->round = cfg->token_round;
			share->tokens = 0;
		}
		if (share->tokens >= cfg->incomplete_tokens)
			return 1;
		__sync_fetch_and_add(&share->tokens, 1);
	}
	__sync_fetch_and_add(&cfg->incomplete_tokens, -1);
	return 0;
}

/* Takes a token for an event besides samples and waits: page faults and probes may come in any
 * number, so what is kept for the others stays, and those do not count against the user's share of
 * the others.  Returns 0; 1: none is left for that. */
__noinline int token_take_modestly(__u32 user)
{
	struct pp_config *cfg = config_get();
	struct pp_user_share *share = share_of(user);
	__s64 left = cfg ? cfg->incomplete_tokens - cfg->tokens_kept : 0;
	__u64 size = bpf_ringbuf_query(&stacks, BPF_RB_RING_SIZE);
	__u64 used = bpf_ringbuf_query(&stacks, BPF_RB_AVAIL_DATA);

	/* Each may bring a copy of its stack: a quarter of the ring, and of a user's share. */
	if (!cfg || left <= 0 || used > size / 4)
		return 1;
	if (share) {
		if (share->turn == cfg->ring_turn && share->bytes > size / 4)
			return 1;
		if (share->modest_round != cfg->token_round) {
			share->modest_round = cfg->token_round;
			share->modest_tokens = 0;
		}
		if (share->modest_tokens >= left)
			return 1;
		__sync_fetch_and_add(&share->modest_tokens, 1);
	}
	__sync_fetch_and_add(&cfg->incomplete_tokens, -1);
	return 0;
}

__noinline int process_share_take(__u32 user)
{
	struct pp_config *cfg = config_get();
	struct pp_user_share *share;
	__s64 left = cfg ? cfg->processes_left : 0;

	(void)share_claim(user);
	share = share_of(user);
	if (!cfg || !share)
		return 0;
	if (left < 0 || share->processes >= (__u64)left)
		return 1;
	__sync_fetch_and_add(&share->processes, 1);
	__sync_fetch_and_add(&cfg->processes_left, -1);
	return 0;
}

#endif
