/* SPDX-License-Identifier: BSD-2-Clause */
/* Divides the rows of a profile into the series of a collector: one a service and set of chosen
 * labels.  A collector keeps an index of them, which is what a fleet pays for: their number is
 * bounded, and what goes beyond is in one series of its own.  One thread an object. */
#ifndef PUSH_SERIES_H
#define PUSH_SERIES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "push/known_series.h"

struct profile;
struct relabel_rules;

/* With the labels of each protocol they stay below Pyroscope's 30. */
#define PUSH_LABELS_MAX 24U
/* Of names and values, longer ones are cut.  Pyroscope takes 1024 and 2048. */
#define PUSH_LABEL_NAME_MAX_BYTES 128U
#define PUSH_LABEL_VALUE_MAX_BYTES 1024U
#define PUSH_SERIES_OTHER "other_services"
#define PUSH_USER_LABEL "user" /* base/label_keys.h */

struct push_label_choice {
	const char *key[PUSH_LABELS_MAX]; /* as in the profile; borrowed */
	size_t count;
	/* Change the labels of each sample before they are chosen, and leave samples out; with them
	 * the profile must have all its labels.  Borrowed; NULL: none. */
	const struct relabel_rules *rules;
};

/* Rows of the profile with the same service and the same chosen labels. */
struct push_series {
	/* ids of the profile's strings: the service, then a value for each chosen label; 0: the
	 * rows have no such label */
	uint32_t value[1 + PUSH_LABELS_MAX];
	uint32_t *row; /* owned; indices in the profile, which go up */
	uint32_t row_count, row_capacity;
	uint64_t weight;
	uint64_t user; /* of its rows' users the one who may have most series */
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
int push_divide(struct profile *profile, const struct push_label_choice *choice,
		uint64_t start_ms, struct push_known_series *known,
		struct push_division *ret_division);

/* Writes a label's name as Prometheus has them, [a-zA-Z_][a-zA-Z0-9_]*, where "__" in front is
 * reserved: other characters become '_'. */
void push_label_name(const char *key, char ret_name[PUSH_LABEL_NAME_MAX_BYTES + 1]);
/* Returns how many bytes of a text a value takes: it is cut between two characters. */
size_t push_label_value_size(const char *text);

#endif
