/* SPDX-License-Identifier: BSD-2-Clause */
/* Labels a sample with the process it belongs to and with what its thread was doing. */
#ifndef AGENT_LABELS_H
#define AGENT_LABELS_H

struct identities;
struct intern;
struct pp_count_key;
struct profile_sample;
struct sources;
struct thread_names;
struct who;

/* What labels are made from; all is borrowed. */
struct labels {
	struct intern *strings; /* of the profile that the sample goes into */
	struct thread_names *thread_names;
	struct identities *identities;
	const struct sources *sources; /* label what only they count */
};
/* who: the process of the counter.  Returns 0 or -ENOMEM. */
int labels_add(const struct labels *labels, struct profile_sample *sample,
	       const struct pp_count_key *key, const struct who *who);

#endif
