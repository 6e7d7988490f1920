/* SPDX-License-Identifier: BSD-2-Clause */
/* Divides a budget among all processes, and among all users but root.  A process may have as much
 * as is still free, and so may all processes of a user together: one of either gets half of the
 * budget, and N greedy ones leave 1/(N + 1) to the others.  That is the thought of
 * base/user_quota.h, but not its rule: what is free counts here before a request and there after
 * it, so that one large stack fits; root's processes are bounded one by one, what is shared has no
 * holder, and the greedy are the processes above a fixed quarter. */
#ifndef DRAIN_SHARES_H
#define DRAIN_SHARES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <pyprofd/process.h>

struct share;
struct shares {
	struct share *process, *user; /* owned */
	size_t max_bytes, used_bytes;
};
void shares_release(struct shares *shares);

/* Who holds something. */
struct share_holder {
	struct pp_process_id id;
	uint32_t user; /* who answers for the process; 0: root */
};
/* Takes bytes for a process.  Returns 0; -ENOSPC: they are too many; -EDQUOT: they are too many for
 * its user; -ENOMEM. */
int shares_take(struct shares *shares, const struct share_holder *holder, size_t bytes);
/* Takes bytes that belong to no process: only the budget as a whole bounds them. */
bool shares_take_common(struct shares *shares, size_t bytes);
/* Takes bytes for a process without a bound: for entries that stay while everything is counted
 * again. */
void shares_recount(struct shares *shares, const struct share_holder *holder, size_t bytes);
/* Returns whether a process has more than a quarter of the budget. */
bool shares_is_greedy(const struct shares *shares, struct pp_process_id id);
/* Frees all shares. */
void shares_reset(struct shares *shares);

#endif
