/* SPDX-License-Identifier: BSD-2-Clause */
/* Divides a budget among all processes.  A process may have as much as is still free: a single
 * process gets half of the budget, and N greedy ones leave 1/(N + 1) to the others.  That is the
 * thought of base/user_quota.h, but not its rule: what is free counts here before a request and
 * there after it, so that one large stack fits; nobody is exempt, what is shared has no holder,
 * and the greedy are those above a fixed quarter. */
#ifndef DRAIN_SHARES_H
#define DRAIN_SHARES_H

#include <stdbool.h>
#include <stddef.h>

#include <pyprofd/process.h>

struct share;
struct shares {
	struct share *share; /* owned, by process */
	size_t max_bytes, used_bytes;
};
void shares_release(struct shares *shares);

/* Takes bytes for a process.  Returns false when they are too many, or when there is no memory to
 * note them. */
bool shares_take(struct shares *shares, struct pp_process_id id, size_t bytes);
/* Takes bytes that belong to no process: only the budget as a whole bounds them. */
bool shares_take_common(struct shares *shares, size_t bytes);
/* Takes bytes for a process without a bound: for entries that stay while everything is counted
 * again. */
void shares_recount(struct shares *shares, struct pp_process_id id, size_t bytes);
/* Returns whether a process has more than a quarter of the budget. */
bool shares_is_greedy(const struct shares *shares, struct pp_process_id id);
/* Frees all shares. */
void shares_reset(struct shares *shares);

#endif
