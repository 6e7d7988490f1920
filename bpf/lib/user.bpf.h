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
/* The same, and claims a row for him where that may be. */
int user_claims(__u64 address, __u32 may_claim);
/* Claims a row for a user, if he has none and there is one; it may update a map.  Returns 0; 1:
 * there is none, which is counted. */
int share_claim(__u32 user);
/* Returns pp_count_key.euid of the current thread. */
int euid_of_current(void);
/* Takes room in `processes` and `contexts` for a process of a user.  Returns 0; 1: he has as many
 * as are left for all others. */
int process_share_take(__u32 user);
/* Takes one of the moves between cgroups that a user may tell of.  Returns 0; 1: none is left. */
int move_share_take(__u32 user);
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
 * none.  It is inlined: walks leave no stack for one more frame. */
static __always_inline struct pp_user_share *share_row(__u32 user)
{
	const __u32 *row = bpf_map_lookup_elem(&share_rows, &user);
	__u32 index = row ? *row : PP_USER_SHARE_COMMON;

	return bpf_map_lookup_elem(&user_shares, &index);
}

/* Returns NULL for root, who is bounded by the whole alone. */
static __always_inline struct pp_user_share *share_of(__u32 user)
{
	return user ? share_row(user) : NULL;
}

/* Puts a record into the ring, unless its user's share is used up.  Returns 0, or counts why it was
 * not sent. */
#define ring_send(user, data, bytes, wakeup)                                                       \
	({                                                                                         \
		int failed_ = ring_share_take(user, (__u32)(bytes));                               \
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
