/* SPDX-License-Identifier: BSD-2-Clause */
#include "agent/stack_intake.h"

#include <stdlib.h>

#include "base/clock.h"
#include "drain/counts.h"
#include "drain/decode.h"
#include "drain/incomplete_queue.h"
#include "finish/user_unwind.h"

/* The part of a CPU that the agent may spend on this, and the cost that is assumed for a walk until
 * some were measured. */
#define BUDGET_PERCENT 30U
#define FIRST_WALK_NS 500000U
#define MEAN_SHIFT 4U	  /* an average of some 16 walks */
#define TOKENS_BESIDE 48U /* for new code, which comes in bursts */
/* A user may take as many tokens as are left, which is half of them. */
#define TOKENS_OF_ONE 2U
/* The queue's size.  On two CPUs the most that a tick's tokens bring is 5 MiB. */
#define QUEUE_BYTES (4U << 20)
#define QUEUE_BYTES_PER_CPU (1U << 20)
#define QUEUE_BYTES_MAX (32U << 20)
#define QUEUE_BUDGET_SHARE 16U

uint64_t incomplete_queue_limit(uint64_t budget_bytes, uint32_t cpus)
{
	const uint64_t bytes = QUEUE_BYTES + (uint64_t)cpus * QUEUE_BYTES_PER_CPU;
	const uint64_t max = budget_bytes ? budget_bytes / QUEUE_BUDGET_SHARE : QUEUE_BYTES_MAX;

	return bytes < max ? bytes : max;
}

static bool lacks_mapping(enum pp_stop stop)
{
	return stop == PP_STOP_NO_MAPPING || stop == PP_STOP_NO_IMAGE;
}

/* The kernel side sends a stack of this name once an epoch, and all waits of that minute have the
 * frames that we found.  If the thread ran on before we read them, the next walk is sent again. */
static void name_wait(const struct finisher *finisher, uint64_t name, uint64_t stack)
{
	bool again = false;

	(void)dictionary_add_alias(finisher->dictionary, name, stack, &again);
	if (again)
		finisher->send_again(finisher->context, name);
}

/* Counts the sample of a stack that is as whole as it gets.  A wait's stack only gets the name by
 * which the kernel side counts the wait. */
static void count_record(const struct incomplete_counts *counts,
			 const struct pp_incomplete_record *incomplete,
			 const struct pp_stack_record *record)
{
	const struct finisher *finisher = counts->finisher;
	struct pp_count_key key = incomplete->key;
	struct pp_count one = {.samples = 1, .weight = incomplete->weight};

	(void)user_unwind_describe(finisher->dictionary, record);
	if (key.user_stack) { /* of a wait, which the kernel side counts under this hash */
		name_wait(finisher, key.user_stack, record->hash);
		return;
	}
	key.user_stack = record->hash;
	key.flags &= ~(0xffU << PP_COUNT_STOP_SHIFT | 0xffU << PP_COUNT_PY_STOP_SHIFT);
	key.flags |= (uint32_t)record->stop << PP_COUNT_STOP_SHIFT |
		     (uint32_t)record->py_stop << PP_COUNT_PY_STOP_SHIFT;
	(void)counts_add(counts->counts, &key, &one);
}

static void finish_record(const struct incomplete_counts *counts,
			  const struct decoded_incomplete *incomplete)
{
	const struct finisher *finisher = counts->finisher;
	OWNED_MEM struct pp_stack_record *record = NULL;
	struct process *process =
		finisher->find_process(finisher->context, incomplete->record->key.id);

	if (process && lacks_mapping(incomplete->record->stop)) {
		/* The mapping may have arrived in the side-band meanwhile. */
		(void)finisher->follow_processes(finisher->context);
		process = finisher->find_process(finisher->context, incomplete->record->key.id);
	}
	if (!user_unwind(finisher, process, incomplete, &record))
		count_record(counts, incomplete->record, record);
}

/* Counts a stack with the frames that the kernel side has walked. */
static void leave_out(const struct incomplete_counts *counts,
		      const struct decoded_incomplete *incomplete)
{
	OWNED_MEM struct pp_stack_record *record = NULL;

	if (!user_unwind_leave_out(counts->finisher, incomplete, &record))
		count_record(counts, incomplete->record, record);
}

void incomplete_counts_on_record(const struct incomplete_counts *counts,
				 const struct decoded_incomplete *incomplete)
{
	if (incomplete_queue_add(counts->queue, incomplete, mono_ns()))
		leave_out(counts, incomplete);
}

static void finish_next(struct incomplete_counts *counts)
{
	OWNED_MEM struct queued_incomplete *queued = incomplete_queue_take(counts->queue);
	uint64_t started_ns = mono_ns(), spent_ns;

	if (started_ns - queued->queued_ns > counts->age_max_ns)
		counts->age_max_ns = started_ns - queued->queued_ns;
	finish_record(counts, &queued->incomplete);
	spent_ns = mono_ns() - started_ns;
	if (!counts->mean_ns)
		counts->mean_ns = FIRST_WALK_NS;
	counts->mean_ns += (spent_ns >> MEAN_SHIFT) - (counts->mean_ns >> MEAN_SHIFT);
}

int incomplete_counts_step(struct incomplete_counts *counts, const struct slice *slice)
{
	while (!incomplete_queue_is_empty(counts->queue)) {
		finish_next(counts);
		if (slice_is_over(slice))
			break;
	}
	return !incomplete_queue_is_empty(counts->queue);
}

void incomplete_counts_leave_out(struct incomplete_counts *counts)
{
	struct queued_incomplete *queued;

	while ((queued = incomplete_queue_take(counts->queue))) {
		leave_out(counts, &queued->incomplete);
		free(queued);
		counts->left_out++;
	}
}

int64_t incomplete_counts_tokens(const struct incomplete_counts *counts, uint64_t samples_per_s,
				 uint64_t tick_ns)
{
	uint64_t mean_ns = counts->mean_ns ? counts->mean_ns : FIRST_WALK_NS;
	uint64_t affordable = tick_ns * BUDGET_PERCENT / 100 / mean_ns;
	uint64_t wanted = samples_per_s * tick_ns / NS_PER_SEC;

	/* A tick may be late. */
	wanted += wanted / 4 + TOKENS_BESIDE;
	if (affordable < TOKENS_BESIDE)
		affordable = TOKENS_BESIDE;
	return TOKENS_OF_ONE * (int64_t)(wanted < affordable ? wanted : affordable);
}
