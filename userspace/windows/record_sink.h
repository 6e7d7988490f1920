/* SPDX-License-Identifier: BSD-2-Clause */
/* Where the rows of kinds of records go, and in which order those of processes do. */
#ifndef WINDOWS_RECORD_SINK_H
#define WINDOWS_RECORD_SINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct intern;
struct profiles;
struct record;
struct services;

/* Where rows go. */
struct record_sink {
	const struct services *services;
	struct intern *strings;
	struct profiles *profiles; /* of the window; NULL: to clients */
	bool is_other;		   /* there: to the rows of the others */
};
struct record_sink record_sink_profiles(const struct services *services, struct profiles *profiles);
/* strings: NULL: nobody watches. */
struct record_sink record_sink_clients(const struct services *services);
/* Returns 0 or -ENOMEM. */
int record_put(const struct record_sink *sink, struct record *record);

/* A process on its way into an order. */
struct record_turn {
	const void *of;
	uint64_t size;
	uint32_t user, pid;
	uint32_t turn; /* of the user's: set by record_take_turns() */
};
/* Puts each user's largest one first, then each user's second, so that no user's processes leave no
 * room for another's. */
void record_take_turns(struct record_turn *turn, size_t count);

#endif
