/* SPDX-License-Identifier: BSD-2-Clause */
/* Counts the samples whose stacks are completed here (miss_walk.h), and says how many of them the kernel side
 * may send. */
#ifndef AGENT_MISS_COUNTS_H
#define AGENT_MISS_COUNTS_H

#include <stdint.h>

struct agent;
struct decoded_miss;

/* context: the agent.  The sample is counted into agent->finished; a wait's stack gets the name by which the
 * wait is counted elsewhere. */
void miss_counts_on_record(void *context, const struct decoded_miss *miss);
/* How many may come in a tick: all, while they leave the agent most of its CPU. */
int64_t miss_counts_tokens(const struct agent *agent, uint64_t tick_ns);

#endif
