/* SPDX-License-Identifier: BSD-2-Clause */
/* Labels a sample with the process it belongs to and with what its thread was doing. */
#ifndef AGENT_LABELS_H
#define AGENT_LABELS_H

#include <stddef.h>

struct cuda;
struct identities;
struct intern;
struct pp_count_key;
struct profile_sample;
struct text_table;
struct thread_names;
struct who;

/* What labels are made from; all is borrowed. */
struct labels {
	struct intern *strings; /* of the profile that the sample goes into */
	struct thread_names *thread_names;
	struct identities *identities;
	const struct text_table *texts; /* NULL: nothing refers to texts */
	const char *const *probe;	/* names by index; probe_count of them */
	size_t probe_count;
	const struct cuda *cuda; /* NULL: it is not captured */
};
/* who: the process of the counter.  Returns 0 or -ENOMEM. */
int labels_add(const struct labels *labels, struct profile_sample *sample,
	       const struct pp_count_key *key, const struct who *who);

#endif
