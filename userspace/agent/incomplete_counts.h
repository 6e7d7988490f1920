/* SPDX-License-Identifier: BSD-2-Clause */
/* Counts the samples whose stacks are completed here (user_unwind.h), and says how many of them the
 * kernel side may send. */
#ifndef AGENT_INCOMPLETE_COUNTS_H
#define AGENT_INCOMPLETE_COUNTS_H

#include <stdint.h>

struct counts;
struct decoded_incomplete;
struct finisher;

/* Both are borrowed. */
struct incomplete_counts {
	const struct finisher *finisher;
	struct counts *counts; /* what the samples are added to */
	uint64_t mean_ns;      /* what one of them costs; 0: unknown yet */
};
/* Completes the stack of one record and counts its sample.  A wait's stack only gets the name by
 * which the kernel side counts the wait. */
void incomplete_counts_on_record(struct incomplete_counts *counts,
				 const struct decoded_incomplete *incomplete);
/* Returns how many may come in a tick: all of samples_per_s, while they leave the agent most of its
 * CPU. */
int64_t incomplete_counts_tokens(const struct incomplete_counts *counts, uint64_t samples_per_s,
				 uint64_t tick_ns);

#endif
