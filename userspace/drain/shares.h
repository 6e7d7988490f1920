/* SPDX-License-Identifier: BSD-2-Clause */
/* Who has how much of a budget that all processes share.  A process may have as much as is still free:
 * one alone gets half of it, N greedy ones leave 1/(N + 1) to the others. */
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

/* True: they are the process's now.  False: too many, or no memory to note them. */
bool shares_take(struct shares *shares, struct pp_process_id id, size_t bytes);
/* Of nobody: only the budget as a whole bounds them. */
bool shares_take_common(struct shares *shares, size_t bytes);
/* As shares_take(), but without a bound: what is kept while everything is counted once more. */
void shares_recount(struct shares *shares, struct pp_process_id id, size_t bytes);
/* Whether a process has more than a quarter of the budget. */
bool shares_is_greedy(const struct shares *shares, struct pp_process_id id);
/* Nobody has anything. */
void shares_reset(struct shares *shares);

#endif
