/* SPDX-License-Identifier: BSD-2-Clause */
/* The labels of a sample: whose it is, and what its thread was in. */
#ifndef AGENT_LABELS_H
#define AGENT_LABELS_H

struct agent;
struct pp_count_key;
struct profile_sample;
struct who;

/* who: of the counter's process.  0 or -ENOMEM. */
int labels_add(struct agent *agent, struct profile_sample *sample, const struct pp_count_key *key,
	       const struct who *who);

#endif
