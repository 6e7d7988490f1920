/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Who answers for a thread, which row of user_shares[] is whose, and how the ring `stacks`, the
 * tokens for incomplete stacks and the room for processes are divided.  docs/design/shares.md. */
#ifndef BPF_LIB_USER_SHARE_H
#define BPF_LIB_USER_SHARE_H

#include "lib/user.bpf.h"

#define USER_NAMESPACES_MAX 33U /* user_namespaces(7): they nest 32 deep */

/* Steps of the loops below.  The verifier goes through each once; inlined, it would go both ways at
 * each turn. */

/* Returns where the search goes on, which the verifier does not know. */
__noinline int user_range_step(__u32 at, __u32 step, __u32 user)
{
	const __u32 next = at + step;
	const struct pp_user_range *range = bpf_map_lookup_elem(&user_ranges, &next);

	return (int)(range && range->first <= user ? next : at);
}

/* Returns who answers in a user namespace, of which all around it are looked at later. */
__noinline int namespace_user(__u64 address, __u32 user)
{
	const struct user_namespace *inner = (const void *)address;
	const __u32 owner = BPF_CORE_READ(inner, owner.val);

	return (int)(owner ? owner : user);
}

__noinline __u64 namespace_parent(__u64 address)
{
	const struct user_namespace *inner = (const void *)address;

	return (__u64)BPF_CORE_READ(inner, parent);
}

/* Returns who answers for a user id: userspace/base/who_answers.h.  The last row that begins at the
 * id or before it tells; those behind the ranges begin at no id. */
static __always_inline __u32 who_answers(__u32 user)
{
	const struct pp_config *cfg = config_get();
	const struct pp_user_range *range;
	__u32 at = cfg ? cfg->user_ranges : 0;

	for (__u32 step = PP_USER_RANGES / 2; step; step /= 2)
		at = (__u32)user_range_step(at, step, user);
	range = bpf_map_lookup_elem(&user_ranges, &at);
	return range && user >= range->first && user <= range->last ? range->owner : user;
}

int user_of_cred(__u64 address)
{
	const struct cred *cred = (const void *)address;
	__u64 inner = (__u64)BPF_CORE_READ(cred, user_ns);
	__u32 user = BPF_CORE_READ(cred, euid.val);

	if (!user) /* anybody may start a set-user-ID program */
		user = BPF_CORE_READ(cred, uid.val);
	/* The outermost is root's. */
	for (__u32 i = 0; i < USER_NAMESPACES_MAX && inner; i++) {
		user = (__u32)namespace_user(inner, user);
		inner = namespace_parent(inner);
	}
	return (int)who_answers(user);
}

__noinline int share_claim(__u32 user)
{
	struct pp_user_share *share;
	__u32 index = 0;

	if (!user || bpf_map_lookup_elem(&share_rows, &user))
		return 0;
	if (bpf_map_pop_elem(&share_free, &index)) {
		count_loss(PP_LOSS_SHARES_FULL);
		return 1;
	}
	if (bpf_map_update_elem(&share_rows, &user, &index, BPF_NOEXIST)) {
		bpf_map_push_elem(&share_free, &index, BPF_ANY); /* another CPU was first */
		return 0;
	}
	share = bpf_map_lookup_elem(&user_shares, &index);
	if (share)
		share->who = user;
	return 0;
}

int user_claims(__u64 address, __u32 may_claim)
{
	const __u32 user = (__u32)user_of_cred(address);

	if (may_claim)
		(void)share_claim(user);
	return (int)user;
}

int euid_of_current(void)
{
	struct task_struct *task = (struct task_struct *)bpf_get_current_task();

	return (int)BPF_CORE_READ(task, cred, euid.val) + 1;
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

int move_share_take(__u32 user)
{
	struct pp_config *cfg = config_get();
	struct pp_user_share *share = share_of(user);

	if (!cfg || !share)
		return 0;
	if (share->moves_round != cfg->token_round) {
		share->moves_round = cfg->token_round;
		share->moves = 0;
	}
	if (share->moves >= PP_MOVES_MAX)
		return 1;
	__sync_fetch_and_add(&share->moves, 1);
	return 0;
}

#endif
