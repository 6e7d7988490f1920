/* SPDX-License-Identifier: BSD-2-Clause */
#include "agent/sweeps.h"

#include <errno.h>
#include <string.h>

#include "agent/agent.h"
#include "base/clock.h"
#include "base/log.h"
#include "discover/proc_scan.h"

#define STEP_NS (10 * NS_PER_MS)
#define PAUSE_NS (20 * NS_PER_MS) /* between steps: a third of a CPU at most */
#define CLOSE_MAX_NS NS_PER_SEC	  /* at the end of a window, and at most half of its length */
#define AGAIN_MIN_NS NS_PER_SEC
/* bpf/switch_thread.bpf.c: IDENTIFY_NS, and a margin.  Until then its threads may leave unseen. */
#define WANTED_NS (200 * NS_PER_MS)
#define AGAIN_FACTOR 200U /* sweeps after the first one cost half a percent of a CPU */
#define SWEEPS_MAX 16U	  /* with threads that still sleep */

struct one {
	struct sweep *sweep;
	uint64_t since_ns; /* its threads sleep since then, or longer */
};

struct sweeps {
	struct agent *agent;
	struct one one[SWEEPS_MAX];
	size_t count;
	bool is_running;     /* the last one */
	bool was_cut;	     /* by the end of a window */
	size_t counted;	     /* threads that it had found by then */
	uint64_t wanted_ns;  /* 0: no other sweep is */
	uint64_t next_step_ns, next_sweep_ns;
	uint64_t threads_full; /* losses at the last look */
	uint64_t lost;
};

/* The window that is counted. */
struct counting {
	struct sweeps *sweeps;
	const struct slots_window *window;
	struct counts *counts;
	const struct pp_thread *slot;
	uint32_t slot_count;
	bool was_full; /* a thread found no slot: who has none may run */
};

int sweeps_new(struct agent *agent, struct sweeps **ret_sweeps)
{
	struct sweeps *sweeps = calloc(1, sizeof(*sweeps));

	if (!sweeps)
		return -ENOMEM;
	sweeps->agent = agent;
	*ret_sweeps = sweeps;
	return 0;
}

void sweeps_free(struct sweeps *sweeps)
{
	for (size_t i = 0; sweeps && i < sweeps->count; i++)
		sweep_free(sweeps->one[i].sweep);
	free(sweeps);
}

uint64_t sweeps_lost(const struct sweeps *sweeps)
{
	return sweeps ? sweeps->lost : 0;
}

/* ---- sweeping ---- */

static bool is_known(void *context, uint32_t tid)
{
	return sweeps_find(context, tid);
}

static void begin(struct sweeps *sweeps, uint64_t since_ns)
{
	const struct sweep_scope scope = {.context = sweeps, .is_known = is_known};
	struct one *one = &sweeps->one[sweeps->count];
	int err;

	sweeps->wanted_ns = 0;
	if (sweeps->count == SWEEPS_MAX) {
		sweeps->lost++;
		return;
	}
	*one = (struct one){.since_ns = since_ns};
	err = sweep_new(&sweeps->agent->finisher, &scope, &one->sweep);
	if (err) {
		log_warn("threads that sleep since before the start are not measured: %s",
			 strerror(-err));
		sweeps->lost++;
		return;
	}
	sweeps->count++;
	sweeps->is_running = true;
	sweeps->next_step_ns = 0;
}

void sweeps_start(struct sweeps *sweeps)
{
	if (sweeps)
		begin(sweeps, sweeps->agent->started_ns);
}

void sweeps_want(struct sweeps *sweeps)
{
	if (sweeps)
		sweeps->wanted_ns = mono_ns();
}

static void end(struct sweeps *sweeps)
{
	struct one *one = &sweeps->one[sweeps->count - 1];
	struct sweep_stats stats;

	sweeps->is_running = false;
	sweep_get_stats(one->sweep, &stats);
	sweeps->lost += stats.torn + stats.late + stats.refused;
	if (sweeps->was_cut)
		sweeps->lost += stats.threads - sweeps->counted;
	sweeps->was_cut = false;
	sweeps->next_sweep_ns =
		mono_ns() + AGAIN_MIN_NS + AGAIN_FACTOR * stats.spent_ns;
	log_debug("swept %zu threads in %.1f ms: %zu walks, %zu torn, %zu late, %zu refused",
		  stats.threads, (double)stats.spent_ns / NS_PER_MS, stats.walks, stats.torn,
		  stats.late, stats.refused);
}

/* False: it has ended. */
static bool go_on(struct sweeps *sweeps, uint64_t budget_ns)
{
	int more = sweep_step(sweeps->one[sweeps->count - 1].sweep, budget_ns);

	if (more < 0) {
		log_debug("a sweep broke off: %s", strerror(-more));
		sweeps->lost++;
	}
	if (more <= 0)
		end(sweeps);
	return more > 0;
}

void sweeps_step(struct sweeps *sweeps)
{
	uint64_t now_ns = mono_ns();

	if (!sweeps)
		return;
	if (!sweeps->is_running && sweeps->wanted_ns && sweeps->next_sweep_ns &&
	    now_ns >= sweeps->next_sweep_ns && now_ns >= sweeps->wanted_ns + WANTED_NS)
		begin(sweeps, now_ns);
	if (!sweeps->is_running || now_ns < sweeps->next_step_ns)
		return;
	(void)go_on(sweeps, STEP_NS);
	sweeps->next_step_ns = mono_ns() + PAUSE_NS;
}

int sweeps_timeout_ms(const struct sweeps *sweeps, int longest_ms)
{
	uint64_t now_ns = mono_ns();
	int ms = 0;

	if (!sweeps || !sweeps->is_running)
		return longest_ms;
	if (now_ns < sweeps->next_step_ns)
		ms = (int)((sweeps->next_step_ns - now_ns) / NS_PER_MS) + 1;
	return ms < longest_ms ? ms : longest_ms;
}

const struct swept *sweeps_find(const struct sweeps *sweeps, uint32_t tid)
{
	const struct swept *swept = NULL;

	for (size_t i = 0; sweeps && i < sweeps->count && !swept; i++)
		swept = sweep_find(sweeps->one[i].sweep, tid);
	return swept;
}

void sweeps_refresh(struct sweeps *sweeps)
{
	for (size_t i = 0; sweeps && i < sweeps->count; i++)
		(void)sweep_refresh(sweeps->one[i].sweep);
}

/* ---- counting ---- */

/* Until when the thread slept, as far as can be told: the window's end if it still does, 0 when it
 * moved at some time. */
static uint64_t slept_until(const struct counting *counting, struct swept *swept,
			    uint64_t since_ns)
{
	uint64_t end_ns = counting->window->end_ns;
	uint64_t moves = thread_slots_moves(counting->slot, counting->slot_count, swept->tid);
	struct proc_status status;
	struct thread_glance glance;
	bool has_slot = thread_slots_glance(counting->slot, counting->slot_count, swept->tid,
					    &glance);

	uint64_t woke_ns = has_slot && glance.first_ns >= since_ns ? glance.first_ns
			   : has_slot			      ? glance.created_ns
							      : 0;

	if (woke_ns >= end_ns)
		return end_ns;
	/* It may have run before, when no slot was free. */
	if (woke_ns >= since_ns)
		return counting->was_full ? 0 : woke_ns;
	if (!has_slot && !counting->was_full && moves == swept->moves)
		return end_ns;
	/* A neighbour has moved, or the slot is that of an unwanted thread and tells nothing. */
	if (thread_status_read(swept->id.tgid, swept->tid, &status) || status.is_runnable ||
	    status.tgid != swept->id.tgid || status.switches != swept->switches)
		return 0;
	swept->moves = moves;
	return end_ns;
}

/* Whether its slot is in the ledger's reading of the same window. */
static bool is_in_ledger(const struct counting *counting, const struct swept *swept)
{
	struct thread_glance glance;

	return thread_slots_glance(counting->slot, counting->slot_count, swept->tid, &glance) &&
	       glance.created_ns < counting->window->end_ns &&
	       glance.flags & PP_THREAD_WANTED;
}

static uint32_t flags_of(const struct swept *swept)
{
	const uint32_t stop = 0xffU << PP_COUNT_STOP_SHIFT, py_stop = 0xffU << PP_COUNT_PY_STOP_SHIFT;

	if (!swept->is_torn)
		return swept->flags | PP_COUNT_SWEPT;
	return (swept->flags & ~(stop | py_stop)) | PP_STOP_READ_FAULT << PP_COUNT_STOP_SHIFT |
	       PP_COUNT_SWEPT;
}

/* As if it had a slot, in which it waits from begin_ns on. */
static int add_wait(const struct counting *counting, const struct swept *swept, uint64_t begin_ns,
		    uint64_t until_ns)
{
	const struct slots_window part = {.number = counting->window->number,
					  .start_ns = begin_ns,
					  .end_ns = until_ns};
	const struct pp_thread thread = {
		.tid = swept->tid,
		.id = swept->id,
		.flags = PP_THREAD_WANTED | PP_THREAD_WAITING,
		.wait = (uint8_t)swept->wait,
		.since_ns = begin_ns,
		.place[0] = {.key = 1,
			     .user_stack = swept->is_torn ? 0 : swept->user_stack,
			     .kernel_stack = swept->kernel_stack,
			     .flags = flags_of(swept),
			     .sum[0].window = part.number - 1,
			     .sum[1].window = part.number - 1},
	};
	int err = thread_slot_count(&thread, &part, counting->counts);

	if (err)
		return err;
	return ledger_add_sleep(counting->sweeps->agent->ledger, swept->id, swept->wait,
				until_ns - begin_ns, !is_in_ledger(counting, swept));
}

static int count_one(const struct counting *counting, struct one *one)
{
	uint64_t begin_ns = one->since_ns, end_ns = counting->window->end_ns;
	struct swept *swept = NULL;
	int err = 0;

	if (begin_ns < counting->window->start_ns)
		begin_ns = counting->window->start_ns;
	while (!err && (swept = sweep_next(one->sweep, swept))) {
		uint64_t until_ns = slept_until(counting, swept, one->since_ns);

		if (!until_ns)
			counting->sweeps->lost++;
		else if (begin_ns < until_ns)
			err = add_wait(counting, swept, begin_ns, until_ns);
		if (until_ns < end_ns)
			sweep_forget(one->sweep, swept);
	}
	return err;
}

/* It may not hold up the window for long; whom it has not met by then misses this one. */
static void hurry(struct sweeps *sweeps)
{
	uint64_t budget_ns = sweeps->agent->options->interval_ns / 2;
	struct sweep_stats stats;

	if (!sweeps->is_running)
		return;
	if (budget_ns > CLOSE_MAX_NS)
		budget_ns = CLOSE_MAX_NS;
	if (!go_on(sweeps, budget_ns))
		return;
	sweep_get_stats(sweeps->one[sweeps->count - 1].sweep, &stats);
	if (stats.passes > 1)
		return; /* it has met all */
	sweeps->was_cut = true;
	sweeps->counted = stats.threads;
	sweeps->lost++; /* one at least, should this be the last window */
}

/* Those of which nobody sleeps any more. */
static void tidy(struct sweeps *sweeps)
{
	size_t kept = 0;

	for (size_t i = 0; i < sweeps->count; i++) {
		bool is_last = i == sweeps->count - 1;

		if ((is_last && sweeps->is_running) || sweep_next(sweeps->one[i].sweep, NULL))
			sweeps->one[kept++] = sweeps->one[i];
		else
			sweep_free(sweeps->one[i].sweep);
	}
	sweeps->count = kept;
}

int sweeps_collect(struct sweeps *sweeps, const struct slots_window *window, struct counts *counts)
{
	struct counting counting = {.sweeps = sweeps, .window = window, .counts = counts};
	uint64_t loss[PP_LOSS_COUNT] = {};
	int err = 0;

	if (!sweeps)
		return 0;
	hurry(sweeps);
	counting.slot = kernel_side_threads(sweeps->agent->kernel, &counting.slot_count);
	if (kernel_side_get_losses(sweeps->agent->kernel, loss))
		loss[PP_LOSS_THREADS_FULL] = UINT64_MAX;
	counting.was_full = loss[PP_LOSS_THREADS_FULL] != sweeps->threads_full;
	sweeps->threads_full = loss[PP_LOSS_THREADS_FULL];
	for (size_t i = 0; i < sweeps->count && !err; i++)
		err = count_one(&counting, &sweeps->one[i]);
	tidy(sweeps);
	return err;
}
