/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Divides the slots of threads, and the rows of the ledger of ended ones, among users. */
#ifndef BPF_LIB_SLOT_SHARE_H
#define BPF_LIB_SLOT_SHARE_H

#include "lib/user.bpf.h"

/* Takes a slot of threads[] for a user: as long as he has no more than half of what is free then,
 * because a thread finds a free one among eight only while many are free.  Returns 0; 1: he has no
 * such slot left. */
static __always_inline int slot_share_take(__u32 user, struct pp_config *cfg)
{
	struct pp_user_share *share = share_of(user);

	if (share) {
		if (cfg->slots_taken + 2 * (share->slots + 1ULL) > cfg->thread_mask)
			return 1;
		__sync_fetch_and_add(&share->slots, 1);
	}
	__sync_fetch_and_add(&cfg->slots_taken, 1);
	return 0;
}

static __always_inline void slot_share_give(__u32 user, struct pp_config *cfg)
{
	struct pp_user_share *share = share_of(user);

	/* The agent may have given it back a moment ago: a wrap would last. */
	if (share && share->slots)
		__sync_fetch_and_add(&share->slots, -1);
	if (cfg->slots_taken)
		__sync_fetch_and_add(&cfg->slots_taken, -1);
}

/* Takes a row of ledgers[] for a user.  Returns 0; 1: he has no such row left. */
static __always_inline int ledger_share_take(__u32 user, struct pp_config *cfg)
{
	struct pp_user_share *share = share_of(user);

	if (share) {
		if (share->ledger_turn != cfg->ledger_turn) {
			share->ledger_turn = cfg->ledger_turn;
			share->ledgers = 0;
		}
		if (cfg->ledgers_taken + share->ledgers >= PP_LEDGER_ROWS)
			return 1;
		__sync_fetch_and_add(&share->ledgers, 1);
	}
	__sync_fetch_and_add(&cfg->ledgers_taken, 1);
	return 0;
}

#endif
