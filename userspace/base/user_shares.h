/* SPDX-License-Identifier: BSD-2-Clause */
/* The rows of map user_shares: what each who answers for processes has taken of what all share
 * (include/pyprofd/config.h).  The kernel side claims rows as well (bpf/lib/user_share.bpf.h), and
 * the agent alone frees them. */
#ifndef BASE_USER_SHARES_H
#define BASE_USER_SHARES_H

#include <stddef.h>
#include <stdint.h>

#include <pyprofd/config.h>

struct user_shares {
	struct pp_user_share *row; /* PP_USER_SHARE_ROWS, mapped; the kernel side changes it, too */
	/* PP_USER_SHARES: by user, the row that he had last.  It saves a system call. */
	uint16_t *known;
	int rows, free; /* descriptors of share_rows and share_free */
};

/* Makes all rows free, before there are programs.  Returns 0 or -errno. */
int user_shares_begin(const struct user_shares *shares);
/* Returns a user's row: that of all who have claimed none is the last. */
struct pp_user_share *user_shares_find(const struct user_shares *shares, uint32_t user);
/* The same, and claims one for a user who has none, but not for root. */
struct pp_user_share *user_shares_claim(const struct user_shares *shares, uint32_t user);
/* Gives back one of what the kernel side has taken for a user: `at` is where its number lies in the
 * row.  Root has no share. */
void user_shares_give(const struct user_shares *shares, uint32_t user, size_t at);
/* Frees rows in which nothing was held for the last USER_SHARES_IDLE_MAX calls. */
#define USER_SHARES_IDLE_MAX 250U /* of ticks: a minute */
void user_shares_expire(const struct user_shares *shares);
/* Takes some of the calls that users have open off their rows: those will never end. */
void user_shares_fade_calls(const struct user_shares *shares);

#endif
