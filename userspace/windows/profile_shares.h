/* SPDX-License-Identifier: BSD-2-Clause */
/* Bounds what the stacks of one user add to a window's profiles.  All users share the store, and
 * the oldest files go when it is full: a program of deep stacks that never repeat, or of functions
 * with long random names, would leave seconds of everybody's history.  Bytes are estimated as a
 * compressed profile has them: a name, and a step from a frame to its caller, cost once a window.
 * docs/design/shares.md.  One thread. */
#ifndef WINDOWS_PROFILE_SHARES_H
#define WINDOWS_PROFILE_SHARES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/user_quota.h"

struct intern;
struct process;
struct profile_sample;

/* What is not known to belong to anybody: processes that ended before they were looked at. */
#define PROFILE_SHARES_UNKNOWN UINT32_MAX

/* A bit for each number that was met. */
struct met {
	uint64_t *word; /* owned */
	size_t words;
};

struct profile_shares {
	struct user_quota quota;   /* bytes; its total is that of the open profiles */
	struct left_out *left_out; /* owned: processes with rows of left-out stacks */
	struct met strings;	   /* by id */
	struct met steps;	   /* by hash of two frames */
	uint64_t *added;	   /* owned: what the last sample met first, to take it back */
	size_t added_count, added_capacity;
};
/* Forgets what was counted, for new profiles. */
void profile_shares_reset(struct profile_shares *shares);
/* Sets what the profiles may have by now: for duration_ns on that many CPUs, sampled at hz. */
void profile_shares_allow(struct profile_shares *shares, uint64_t duration_ns, uint32_t cpus,
			  uint32_t hz);
void profile_shares_release(struct profile_shares *shares);

/* Counts a sample, with frames and labels, for the user of its process (NULL: not known); root's
 * are not counted.  strings: the table that they refer to.  Returns 0; -EDQUOT: it is more than
 * what is left for that user, and nothing was counted; -ENOMEM. */
int profile_shares_take(struct profile_shares *shares, const struct intern *strings,
			struct process *process, const struct profile_sample *sample);
/* Returns whether a process whose stacks are left out has rows of its own: the first 1,024 of a
 * window.  NULL has none. */
bool profile_shares_has_row(struct profile_shares *shares, const struct process *process);

#endif
