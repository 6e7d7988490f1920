/* SPDX-License-Identifier: BSD-2-Clause */
/* Groups samples by their labels: process, thread, container, kind of wait, or any other. */
#ifndef RENDER_GROUPS_H
#define RENDER_GROUPS_H

#include <stdint.h>

#include "base/id_map.h"
#include "base/index_table.h"
#include "profile/profile_data.h"

enum group_by {
	GROUP_BY_NONE = 0,
	GROUP_BY_PROCESS = 1U << 0, /* pid */
	GROUP_BY_THREAD = 1U << 1,  /* pid and tid */
	GROUP_BY_COMM = 1U << 2,
	GROUP_BY_THREAD_NAME = 1U << 3,
	GROUP_BY_CONTAINER = 1U << 4,
	GROUP_BY_WAIT = 1U << 5,
	GROUP_BY_LABELS = 1U << 6, /* those of struct grouping */
};

#define GROUP_LABELS_MAX 4U
#define GROUP_LABEL_BYTES 64U /* of a label's key, with its NUL */

/* What samples are grouped by.  All zero: by nothing.  With labels GROUP_BY_LABELS is set. */
struct grouping {
	uint32_t keys; /* enum group_by, ored */
	uint32_t label_count;
	char label[GROUP_LABELS_MAX][GROUP_LABEL_BYTES];
};

/* 0: the label is missing, or not asked for.  Other values but pid and tid are ids of strings. */
struct group {
	int64_t pid, tid;
	uint32_t comm, thread, container, wait;
	uint32_t other[GROUP_LABELS_MAX];
	uint32_t label; /* string: "pid 12 python3 / thread 14 main"; "all" without any key */
};

/* Release with groups_release(). */
struct groups {
	struct profile *profile; /* borrowed; labels are added to its strings */
	struct grouping by;
	struct group *group;
	uint32_t count, capacity;
	struct index_table index;
	struct id_map of_set; /* by label set */
};

void groups_init(struct groups *groups, struct profile *profile, const struct grouping *by);
void groups_release(struct groups *groups);
/* Returns the group of a label set; ids count from 0.  Returns 0 or -ENOMEM. */
int groups_of_set(struct groups *groups, uint32_t label_set, uint32_t *ret_group);
/* Lists the label keys that `by` needs, NULL at the end: at most GROUPS_MAX_KEYS with the NULL.
 * Those of its labels are borrowed. */
#define GROUPS_MAX_KEYS (9U + GROUP_LABELS_MAX)
void groups_label_keys(const struct grouping *by, const char *key[GROUPS_MAX_KEYS]);

#endif
