/* SPDX-License-Identifier: BSD-2-Clause */
/* Divides the rows of a profile into the series of a collector: one a service and set of chosen
 * labels.  A collector keeps an index of them, which is what a fleet pays for, so their number is
 * bounded, and users share it: one may hold as many as are still free, root is bounded by the table
 * alone (base/user_quota.h, whose rule this is).  What is heavy and new takes the place of what is
 * light: a few times an hour, which users share likewise; what goes beyond is in one series of its
 * own.  One thread an object. */
#ifndef COLLECTORS_SERIES_H
#define COLLECTORS_SERIES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- whose a sample is ---- */

struct profile;

/* The labels that a service's name is made of, in this order; NULL at the end. */
#define PUSH_SERVICE_NAME "service_name"
#define PUSH_SERVICE_LABELS PUSH_SERVICE_NAME, "app", "container", "comm"
#define PUSH_SERVICE_UNKNOWN "unknown_service"

/* Returns the id, in the profile's strings, of the first of PUSH_SERVICE_LABELS that the label set
 * has; 0 (""): none. */
uint32_t push_service_name(const struct profile *profile, uint32_t label_set);

/* ---- series that were sent ---- */

#define PUSH_SERIES_MAX 500U				/* at a time, with that of all others */
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

/* ---- the division ---- */

struct profile;
struct relabel_rules;

/* With the labels of each protocol they stay below Pyroscope's 30. */
#define PUSH_LABELS_MAX 24U
/* Of names and values, longer ones are cut.  Pyroscope takes 1024 and 2048. */
#define PUSH_LABEL_NAME_MAX_BYTES 128U
#define PUSH_LABEL_VALUE_MAX_BYTES 1024U
#define PUSH_SERIES_OTHER "other_services"
#define PUSH_USER_LABEL "user" /* base/kinds.h */

struct push_label_choice {
	const char *key[PUSH_LABELS_MAX]; /* as in the profile; borrowed */
	size_t count;
	/* Change the labels of each sample before they are chosen, and leave samples out; with them
	 * the profile must have all its labels.  Borrowed; NULL: none. */
	const struct relabel_rules *rules;
};

/* Rows of the profile with the same service and the same chosen labels, of one user. */
struct push_series {
	/* ids of the profile's strings: the service, then a value for each chosen label, then the
	 * user where others have series of this name; 0: there is no such label */
	uint32_t value[1 + PUSH_LABELS_MAX + 1];
	uint32_t *row; /* owned; indices in the profile, which go up */
	uint32_t row_count, row_capacity;
	uint64_t weight;
	uint64_t user;
};

/* Release with push_division_release(), even when push_divide() failed. */
struct push_division {
	struct push_series *series;
	uint32_t count, capacity;
	uint64_t folded_count; /* series that became one */
};
void push_division_release(struct push_division *division);

/* Divides the profile of a window that starts then; the heaviest series come first.  Numbers become
 * texts, which are added to the profile's strings.  Returns 0, -ENOMEM; -ENOSPC: rules make too
 * many labels. */
int push_divide(struct profile *profile, const struct push_label_choice *choice, uint64_t start_ms,
		struct push_known_series *known, struct push_division *ret_division);

/* Returns the key of a label of series; NULL: there are no more.  index: in push_series.value[],
 * not 0, which is the service. */
const char *push_series_key(const struct push_label_choice *choice, size_t index);

/* Writes a label's name as Prometheus has them, [a-zA-Z_][a-zA-Z0-9_]*, where "__" in front is
 * reserved: other characters become '_'. */
void push_label_name(const char *key, char ret_name[PUSH_LABEL_NAME_MAX_BYTES + 1]);
/* Returns how many bytes of a text a value takes: it is cut between two characters. */
size_t push_label_value_size(const char *text);

#endif
