/* SPDX-License-Identifier: BSD-2-Clause */
/* Who answers for a user id, in all shares and places that users have.  A user may own tens of
 * thousands of other ids (subuid(5)): of a set-user-ID file that was made in a user namespace each
 * of them runs programs outside of it.  An id that lies in such a range answers as the range's
 * owner; one of a user in /etc/passwd, and one that root owns, for itself.  The kernel side has the
 * same ranges (bpf/lib/user_share.bpf.h).  docs/design/shares.md. */
#ifndef BASE_WHO_ANSWERS_H
#define BASE_WHO_ANSWERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <pyprofd/config.h>

#include "base/cleanup.h"

struct who_ranges {
	struct pp_user_range *range; /* owned; by id, no two overlap */
	uint32_t count;
	uint32_t left_out; /* there were more than PP_USER_RANGES */
};
void who_ranges_release(struct who_ranges *ranges);

/* Takes the ranges from texts as /etc/subuid and /etc/passwd.  Of two that overlap the one that
 * begins first counts.  An owner who is not in `users` is not known by his number: such a range
 * answers as its first id.  Returns 0; -ENOMEM. */
int who_ranges_parse(const char *subordinates, const char *users, struct who_ranges *ret_ranges);
/* Returns who answers for a user id, by these ranges. */
uint32_t who_ranges_find(const struct who_ranges *ranges, uint32_t uid);

/* The same by the ranges that who_answers_follow() has read last; before that each id answers for
 * itself.  It is a fact of the machine, and so is the process's.  Any thread. */
uint32_t who_answers(uint32_t uid);
/* Reads the files, as process_read_text() does.  Returns whether the ranges have changed: then
 * *ret_ranges is a copy of them, borrowed until the next call.  One thread. */
bool who_answers_follow(const struct who_ranges **ret_ranges);

#endif
