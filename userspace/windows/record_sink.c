/* SPDX-License-Identifier: BSD-2-Clause */
#include "windows/record_sink.h"

#include <stdlib.h>

#include "base/array.h"
#include "profile/record.h"
#include "windows/profiles.h"
#include "windows/source.h"
#include "windows/top.h"

/* ---- where rows go ---- */

struct record_sink record_sink_profiles(const struct services *services, struct profiles *profiles)
{
	return (struct record_sink){
		.services = services, .strings = profiles->strings, .profiles = profiles};
}

struct record_sink record_sink_clients(const struct services *services)
{
	return (struct record_sink){.services = services, .strings = top_strings(services->top)};
}

int record_put(const struct record_sink *sink, struct record *record)
{
	int err = sink->is_other ? record_make_other(record, sink->strings) : 0;

	if (err || sink->profiles)
		return err ? err : profiles_add_record(sink->profiles, record);
	top_add_record(sink->services->top, record);
	return 0;
}

/* ---- the order ---- */

static int by_size(const struct record_turn *a, const struct record_turn *b)
{
	return ORDER(b->size, a->size) ?: ORDER(a->pid, b->pid);
}

static int by_user(const void *left, const void *right)
{
	const struct record_turn *a = left, *b = right;

	return ORDER(a->user, b->user) ?: by_size(a, b);
}

static int by_turn(const void *left, const void *right)
{
	const struct record_turn *a = left, *b = right;

	return ORDER(a->turn, b->turn) ?: by_size(a, b);
}

void record_take_turns(struct record_turn *turn, size_t count)
{
	qsort(turn, count, sizeof(*turn), by_user);
	for (size_t i = 0; i < count; i++)
		turn[i].turn = i && turn[i].user == turn[i - 1].user ? turn[i - 1].turn + 1 : 0;
	qsort(turn, count, sizeof(*turn), by_turn);
}
