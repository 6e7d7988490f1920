/* SPDX-License-Identifier: BSD-2-Clause */
#include "push/known_series.h"

#include <string.h>

#define PLACES_MAX (PUSH_SERIES_MAX - 1) /* the last one is that of all others */
/* A newcomer's weight in a window against the other's in the hour: what is as heavy stays. */
#define HEAVIER_TIMES 2U

void push_known_series_begin(struct push_known_series *known, uint64_t start_ms)
{
	const uint64_t hour = start_ms / PUSH_SERIES_HOUR_MS;

	if (known->hour == hour)
		return;
	memset(known, 0, sizeof(*known));
	known->hour = hour;
}

/* Returns the user's index, or user_count. */
static uint32_t find_user(const struct push_known_series *known, uint64_t id)
{
	uint32_t at = 0;

	while (at < known->user_count && known->user[at].id != id)
		at++;
	return at;
}

bool push_known_series_has_more_room(const struct push_known_series *known, uint64_t user,
				     uint64_t than)
{
	/* Of one who is not there yet: zero. */
	const uint32_t held = known->user[find_user(known, user)].held;
	const uint32_t other_held = known->user[find_user(known, than)].held;

	if (user == PUSH_USER_ROOT || than == PUSH_USER_ROOT)
		return than != PUSH_USER_ROOT;
	return held < other_held;
}

/* Returns whether a user may take one more of what is shared. */
static bool has_share(uint64_t user, uint32_t taken, uint32_t used, uint32_t total)
{
	const uint32_t left = total - used;

	return left && (user == PUSH_USER_ROOT || taken + 1 < left);
}

/* Finds the lightest series of this user, or of one who has more.  Returns false: there is none. */
static bool find_lightest(const struct push_known_series *known, uint32_t user, uint32_t *ret_at)
{
	bool is_found = false;

	for (uint32_t i = 0; i < known->count; i++) {
		const uint32_t other = known->series[i].user;

		if (other != user && known->user[other].held <= known->user[user].held + 1)
			continue;
		if (is_found && known->series[i].weight >= known->series[*ret_at].weight)
			continue;
		*ret_at = i;
		is_found = true;
	}
	return is_found;
}

/* Takes a place that is free, or that of a lighter series.  Returns false: there is none. */
static bool find_place(struct push_known_series *known, uint64_t id, uint32_t user,
		       uint64_t weight, uint32_t *ret_at)
{
	if (has_share(id, known->user[user].held, known->count, PLACES_MAX)) {
		*ret_at = known->count++;
		return true;
	}
	if (!has_share(id, known->user[user].displaced, known->displaced,
		       PUSH_SERIES_DISPLACED_MAX) ||
	    !find_lightest(known, user, ret_at) ||
	    weight / HEAVIER_TIMES <= known->series[*ret_at].weight)
		return false;
	known->user[known->series[*ret_at].user].held--;
	known->user[user].displaced++;
	known->displaced++;
	return true;
}

bool push_known_series_admit(struct push_known_series *known, uint64_t hash, uint64_t user,
			     uint64_t weight)
{
	const uint32_t user_at = find_user(known, user);
	uint32_t at;

	for (at = 0; at < known->count; at++) {
		if (known->series[at].hash != hash)
			continue;
		known->series[at].weight += weight;
		return true;
	}
	if (!find_place(known, user, user_at, weight, &at))
		return false;
	known->user[user_at].id = user;
	known->user[user_at].held++;
	if (user_at == known->user_count)
		known->user_count++;
	known->series[at].hash = hash;
	known->series[at].user = user_at;
	known->series[at].weight = weight;
	return true;
}
