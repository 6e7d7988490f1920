/* SPDX-License-Identifier: BSD-2-Clause */
#include "agent/miss_counts.h"

#include <stdlib.h>

#include "agent/agent.h"
#include "agent/process_watch.h"
#include "base/clock.h"
#include "finish/miss_walk.h"

/* What the agent may cost for this, and how much is taken for a walk until some were measured. */
#define BUDGET_PERCENT 30U
#define FIRST_WALK_NS 500000U
#define MEAN_SHIFT 4U	  /* an average of some 16 walks */
#define TOKENS_BESIDE 48U /* of new code, which comes in bursts */

static bool lacks_mapping(enum pp_stop stop)
{
	return stop == PP_STOP_NO_MAPPING || stop == PP_STOP_NO_IMAGE;
}

static void finish_record(struct agent *agent, const struct decoded_miss *miss)
{
	OWNED_MEM struct pp_stack_record *record = NULL;
	struct process *process = process_watch_find(agent, miss->record->key.id);
	struct pp_count_key key = miss->record->key;
	struct pp_count one = {.samples = 1, .weight = miss->record->weight};

	if (process && lacks_mapping(miss->record->stop)) {
		/* It may be in the side-band now. */
		(void)process_watch_follow(agent);
		process = process_watch_find(agent, miss->record->key.id);
	}
	if (miss_walk(&agent->finisher, process, miss, &record))
		return;
	if (key.user_stack) { /* of a wait, which is counted under this hash elsewhere */
		(void)miss_describe(agent->dictionary, record);
		(void)dictionary_add_alias(agent->dictionary, key.user_stack, record->hash);
		return;
	}
	(void)miss_describe(agent->dictionary, record);
	key.user_stack = record->hash;
	key.flags &= ~(0xffU << PP_COUNT_STOP_SHIFT | 0xffU << PP_COUNT_PY_STOP_SHIFT);
	key.flags |= (uint32_t)record->stop << PP_COUNT_STOP_SHIFT |
		     (uint32_t)record->py_stop << PP_COUNT_PY_STOP_SHIFT;
	(void)counts_add(&agent->finished, &key, &one);
}

void miss_counts_on_record(void *context, const struct decoded_miss *miss)
{
	struct agent *agent = context;
	uint64_t started_ns = mono_ns(), spent_ns;

	finish_record(agent, miss);
	spent_ns = mono_ns() - started_ns;
	if (!agent->miss_mean_ns)
		agent->miss_mean_ns = FIRST_WALK_NS;
	agent->miss_mean_ns += (spent_ns >> MEAN_SHIFT) - (agent->miss_mean_ns >> MEAN_SHIFT);
}

int64_t miss_counts_tokens(const struct agent *agent, uint64_t tick_ns)
{
	uint64_t mean_ns = agent->miss_mean_ns ? agent->miss_mean_ns : FIRST_WALK_NS;
	uint64_t affordable = tick_ns * BUDGET_PERCENT / 100 / mean_ns;
	uint64_t wanted = (uint64_t)agent->options->hz * cpu_events_count(agent->cpu_events) *
			  tick_ns / NS_PER_SEC;

	/* A tick may be late. */
	wanted += wanted / 4 + TOKENS_BESIDE;
	if (affordable < TOKENS_BESIDE)
		affordable = TOKENS_BESIDE;
	return (int64_t)(wanted < affordable ? wanted : affordable);
}
