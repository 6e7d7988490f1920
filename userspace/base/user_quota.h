/* SPDX-License-Identifier: BSD-2-Clause */
/* Divides a table that all users share, or all processes.  A holder may have as much as is still
 * free: one who wants all gets half, and N greedy ones leave 1/(N + 1) to the others.  Root, and
 * whatever else has the number 0, is bounded by the table alone.  docs/design/shares.md.
 * One thread. */
#ifndef BASE_USER_QUOTA_H
#define BASE_USER_QUOTA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct user_holding;
struct user_quota {
	struct user_holding *holding; /* owned, by user, or by whatever number holders have */
	uint64_t total, used;	      /* in the table's unit */
	uint64_t refused;	      /* requests, of all users, since the start */
	uint32_t users;		      /* that hold something */
};
void user_quota_release(struct user_quota *quota);

/* Takes an amount for a user.  Returns 0; -EDQUOT: it is more than is left for this user; -ENOSPC:
 * root wants more than there is; -ENOMEM.  What is not given is counted. */
int user_quota_take(struct user_quota *quota, uint64_t holder, uint64_t amount);
/* Notes an amount that a user holds, whatever his share is: for tables that take back from the
 * greedy when they are short.  Returns 0; -ENOMEM. */
int user_quota_note(struct user_quota *quota, uint64_t holder, uint64_t amount);
void user_quota_give(struct user_quota *quota, uint64_t holder, uint64_t amount);
/* Gives back so much of what each user holds, or all that he has. */
void user_quota_give_each(struct user_quota *quota, uint64_t amount);
static inline void user_quota_give_all(struct user_quota *quota)
{
	user_quota_give_each(quota, UINT64_MAX);
}
uint64_t user_quota_held(const struct user_quota *quota, uint64_t holder);
/* Returns the user who holds most, besides root; 0: none holds anything. */
uint64_t user_quota_most(const struct user_quota *quota);
/* Returns whether a user holds more than each would have if one more came and all took the same. */
bool user_quota_is_greedy(const struct user_quota *quota, uint64_t holder);
bool user_quota_has_greedy(const struct user_quota *quota);
/* Counts a request that the table itself refused. */
void user_quota_refuse(struct user_quota *quota, uint64_t holder);
/* Of users: returns true, with one who was refused something, of whom this was not told before. */
bool user_quota_tell(struct user_quota *quota, uint32_t *ret_uid);

#endif
