/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Who answers for a thread, and what this user has taken of what all users share
 * (include/pyprofd/config.h).  Two CPUs may both find the last room of a user: shares bound
 * what others are left with, they are no exact account. */
#ifndef BPF_LIB_USER_H
#define BPF_LIB_USER_H

#include "lib/maps.bpf.h"

/* These are in user_share.bpf.h, and take numbers, so that the verifier goes through each
 * once. */

/* Returns who answers for a thread with these credentials, by the rule of process_user() in
 * userspace/discover/proc_scan.h. */
int user_of_cred(__u64 address);
/* Claims a row for a user, if he has none and there is one; it may update a map.  Returns 0; 1:
 * there is none, which is counted. */
int share_claim(__u32 user);
/* Takes room in `processes` and `contexts` for a process of a user.  Returns 0; 1: he has as many
 * as are left for all others. */
int process_share_take(__u32 user);
/* Takes so many bytes of the ring for a user.  Returns 0; 1: he has no such room left. */
int ring_share_take(__u32 user, __u32 bytes);

static __always_inline __u32 user_of(const struct task_struct *task)
{
	return (__u32)user_of_cred((__u64)BPF_CORE_READ(task, cred));
}

/* Returns who answers for the current thread. */
static __always_inline __u32 user_of_current(void)
{
	return user_of((const void *)bpf_get_current_task());
}

/* Returns the row of user_shares[] that a user has; the last one for root, and for who has claimed
 * none.  It is inlined: the walks of its callers leave no stack for one more frame. */
static __always_inline struct pp_user_share *share_row(__u32 user)
{
	const struct pp_config *cfg = config_get();
	__u32 index = PP_USER_SHARE_COMMON;

	for (__u32 way = 0; cfg && user && way < PP_USER_SHARE_WAYS; way++) {
		struct pp_user_share *share;

		index = pp_user_share_at(user, way, cfg->name_secret);
		share = bpf_map_lookup_elem(&user_shares, &index);
		if (share && share->who == user)
			return share;
	}
	index = PP_USER_SHARE_COMMON;
	return bpf_map_lookup_elem(&user_shares, &index);
}

/* Returns NULL for root, who is bounded by the whole alone. */
static __always_inline struct pp_user_share *share_of(__u32 user)
{
	return user ? share_row(user) : NULL;
}

/* Puts a record into the ring, unless its user's share is used up.  Returns 0, or counts why it was
 * not sent. */
#define ring_send(data, bytes, wakeup)                                                             \
	({                                                                                         \
		int failed_ = ring_share_take(user_of_current(), (__u32)(bytes));                  \
                                                                                                   \
		if (failed_) {                                                                     \
			count_loss(PP_LOSS_RING_SHARE);                                            \
		} else if (bpf_ringbuf_output(&stacks, data, bytes, wakeup)) {                     \
			count_loss(PP_LOSS_RING_FULL);                                             \
			failed_ = 1;                                                               \
		}                                                                                  \
		failed_;                                                                           \
	})

#endif
