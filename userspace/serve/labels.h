/* SPDX-License-Identifier: BSD-2-Clause */
/* Which values the labels of a profile have, and how much of it each one is.  No global state; one
 * thread per object. */
#ifndef SERVE_LABELS_H
#define SERVE_LABELS_H

#include <stdint.h>

#include "base/index_table.h"
#include "base/json_writer.h"
#include "profile/profile_data.h"
#include "serve/answer.h"

#define LABELS_VALUES_SHOWN 100U /* of a key; and processes */
#define LABELS_KEYS_MAX 128U	 /* more are left out: only a foreign profile has them */

/* A value of a key, or a process: the sum of the samples that have it. */
struct labels_value {
	uint32_t key; /* in labels.key; of a process LABELS_KEYS_MAX */
	bool is_number;
	int64_t value; /* a number, or an id of the profile's strings */
	int64_t total;
	/* Of most of what has it; ids of the profile's strings; 0: none. */
	uint32_t comm, app;
};

/* Release with labels_release().  A zeroed one is that of no profile. */
struct labels {
	const struct profile *profile;	  /* borrowed */
	const char *key[LABELS_KEYS_MAX]; /* borrowed; sorted by name */
	uint32_t key_count;
	struct labels_value *value; /* owned; by key, the largest first; processes come last */
	uint32_t value_count, value_capacity;
	struct index_table index;
	int64_t total; /* of all samples */
};

void labels_release(struct labels *labels);
/* Sums the samples of a profile by their labels: pid makes processes, tid is left out.
 * value_index: of which sample type.  Returns 0 or -ENOMEM. */
int labels_of_profile(const struct profile *profile, unsigned int value_index,
		      struct labels *ret_labels);
/* Writes "total":N,"labels":[{"key","values":[{"value","total"}],"more"}],
 * "processes":[{"pid","comm","app","total"}],"processes_more":N into an object that is open. */
void labels_put(const struct labels *labels, struct json_writer *json);

/* /api/v1/labels: answers a request for REQUEST_LABELS of one who sees everything.  now_ms: since
 * 1970. */
void labels_answer(const struct answer_sources *sources, const struct request *request,
		   const struct answer_view *view, uint64_t now_ms, struct answer *ret_answer);

#endif
