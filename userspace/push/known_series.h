/* SPDX-License-Identifier: BSD-2-Clause */
/* The series that a sink has sent in an hour of windows.  A collector keeps an index of them, which
 * is what a fleet pays for, so their number is bounded, and users share it: one may hold as many as
 * are still free, root is bounded by the table alone (base/user_quota.h, whose rule this is).
 * What is heavy and new takes the place of what is light: a few times an hour, which users share
 * likewise.  One thread an object. */
#ifndef PUSH_KNOWN_SERIES_H
#define PUSH_KNOWN_SERIES_H

#include <stdbool.h>
#include <stdint.h>

#define PUSH_SERIES_MAX 500U /* at a time, with that of all others */
#define PUSH_SERIES_DISPLACED_MAX (PUSH_SERIES_MAX / 2) /* in an hour */
#define PUSH_SERIES_HOUR_MS (3600U * 1000U)
/* Each one came with a series; the last one is who comes now. */
#define PUSH_SERIES_USERS_MAX (PUSH_SERIES_MAX + PUSH_SERIES_DISPLACED_MAX)
#define PUSH_USER_ROOT 0U
#define PUSH_USER_UNKNOWN 1U

/* All zero is none. */
struct push_known_series {
	struct {
		uint64_t hash;
		uint64_t weight; /* of all its windows in this hour */
		uint32_t user;	 /* below */
	} series[PUSH_SERIES_MAX - 1];
	struct {
		uint64_t id;
		uint32_t held, displaced; /* series that it has; that gave way to its own */
	} user[PUSH_SERIES_USERS_MAX];
	uint32_t count, user_count, displaced;
	uint64_t hour; /* of the windows */
};

/* Notes when the next window starts: another hour begins anew. */
void push_known_series_begin(struct push_known_series *known, uint64_t start_ms);
/* Returns whether a series of this user is known, or has found a place.  hash: of its labels;
 * user: a number that stands for one; weight: in its window, in a unit that all windows have. */
bool push_known_series_admit(struct push_known_series *known, uint64_t hash, uint64_t user,
			     uint64_t weight);
/* Returns whether the first of two users may have more series than the second. */
bool push_known_series_has_more_room(const struct push_known_series *known, uint64_t user,
				     uint64_t than);

#endif
