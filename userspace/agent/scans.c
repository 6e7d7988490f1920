/* SPDX-License-Identifier: BSD-2-Clause */
/* Decides when the agent scans, and counts in each window the threads that a scan found for as
 * long as they sleep.  The first scan is made at the start, in steps beside the first samples;
 * later ones when processes match the filters that did not before.  Finishing one may take a part
 * of a window's length. */
#include <errno.h>
#include <string.h>

#include "agent/waits.h"
#include "attach/kernel_side.h"
#include "base/clock.h"
#include "base/log.h"
#include "discover/proc_scan.h"
#include "drain/thread_slots.h"
#include "finish/scan.h"
#include "finish/user_unwind.h"
#include "ledger/ledger.h"
#include "options/options.h"
#include "windows/source.h"
#include "windows/summary.h"

#define STEP_NS (10 * NS_PER_MS)
#define PAUSE_NS (20 * NS_PER_MS)     /* between steps: a third of a CPU at most */
#define CLOSE_MAX_NS (40 * NS_PER_MS) /* at the end of a window: while it lasts, nobody is served */
#define LAST_MAX_NS NS_PER_SEC /* at the end of the last one, and at most half of its length */
#define AGAIN_MIN_NS NS_PER_SEC
/* IDENTIFY_NS of bpf/switch_thread.bpf.c and a margin: until then a thread may switch out
 * unseen. */
#define WANTED_NS (200 * NS_PER_MS)
#define AGAIN_FACTOR 200U /* scans after the first one cost half a percent of a CPU */
#define SCANS_MAX 16U	  /* with threads that still sleep */

struct one {
	struct scan *scan;
	uint64_t since_ns; /* its threads have slept since then, or longer */
};

struct scans {
	const struct services *services;
	struct one one[SCANS_MAX];
	size_t count;
	bool is_running;    /* the last one is not done */
	bool is_hurried;    /* a window's end waits for it */
	bool was_cut;	    /* a window ended before it was done */
	size_t counted;	    /* threads that it had found by then */
	uint64_t wanted_ns; /* when another scan was asked for; 0: none is */
	uint64_t next_step_ns, next_scan_ns;
	uint64_t no_slot; /* threads that found none, at the last look */
	uint64_t lost;	  /* threads whose times or stacks are missing */
};

/* The window that is counted. */
struct counting {
	struct scans *scans;
	const struct slots_window *window;
	struct ledger *ledger;
	struct counts *counts;
	const struct pp_thread *slot;
	uint32_t slot_count, slot_seed;
	bool was_full; /* a thread found no slot, so that one without a slot may run */
};

static const struct scanned *find(const struct scans *scans, uint32_t tid)
{
	const struct scanned *scanned = NULL;

	for (size_t i = 0; i < scans->count && !scanned; i++)
		scanned = scan_find(scans->one[i].scan, tid);
	return scanned;
}

/* ---- scanning ---- */

static bool is_known(void *context, uint32_t tid)
{
	return find(context, tid);
}

static void begin(struct scans *scans, uint64_t since_ns)
{
	const struct scan_scope scope = {.context = scans, .is_known = is_known};
	struct one *one = &scans->one[scans->count];
	int err;

	scans->wanted_ns = 0;
	if (scans->count == SCANS_MAX) {
		scans->lost++;
		return;
	}
	*one = (struct one){.since_ns = since_ns};
	err = scan_new(scans->services->finisher, &scope, &one->scan);
	if (err) {
		log_warn("threads that have slept since before the start are not measured: %s",
			 strerror(-err));
		scans->lost++;
		return;
	}
	scans->count++;
	scans->is_running = true;
	scans->next_step_ns = 0;
}

static void end(struct scans *scans)
{
	struct one *one = &scans->one[scans->count - 1];
	struct scan_stats stats;

	scans->is_running = false;
	scan_get_stats(one->scan, &stats);
	scans->lost += stats.torn + stats.late + stats.refused;
	if (scans->was_cut)
		scans->lost += stats.threads - scans->counted;
	scans->was_cut = false;
	scans->next_scan_ns = mono_ns() + AGAIN_MIN_NS + AGAIN_FACTOR * stats.spent_ns;
	log_debug("swept %zu threads in %.1f ms: %zu walks, %zu torn, %zu late, %zu refused",
		  stats.threads, (double)stats.spent_ns / NS_PER_MS, stats.walks, stats.torn,
		  stats.late, stats.refused);
}

/* Returns false when the scan is done. */
static bool go_on(struct scans *scans, uint64_t budget_ns)
{
	int more = scan_step(scans->one[scans->count - 1].scan, budget_ns);

	if (more < 0) {
		log_debug("a scan broke off: %s", strerror(-more));
		scans->lost++;
	}
	if (more <= 0)
		end(scans);
	return more > 0;
}

/* ---- counting ---- */

static bool glance_at(const struct counting *counting, const struct scanned *scanned,
		      struct thread_glance *ret_glance)
{
	return thread_slots_glance(counting->slot, counting->slot_count, counting->slot_seed,
				   scanned->tid, ret_glance);
}

/* Returns until when the thread slept: the window's end if it still does, 0 when it woke up at an
 * unknown time. */
static uint64_t slept_until(const struct counting *counting, struct scanned *scanned,
			    uint64_t since_ns)
{
	uint64_t end_ns = counting->window->end_ns;
	uint64_t moves = thread_slots_moves(counting->slot, counting->slot_count,
					    counting->slot_seed, scanned->tid);
	struct proc_status status;
	struct thread_glance glance;
	bool has_slot = glance_at(counting, scanned, &glance);
	uint64_t woke_ns = has_slot && glance.first_ns >= since_ns ? glance.first_ns
			   : has_slot				   ? glance.created_ns
								   : 0;

	if (woke_ns >= end_ns)
		return end_ns;
	/* The thread may have run before, when no slot was free. */
	if (woke_ns >= since_ns)
		return counting->was_full ? 0 : woke_ns;
	if (!has_slot && !counting->was_full && moves == scanned->moves)
		return end_ns;
	/* Another thread has moved, or the slot belongs to a thread outside of the filter: ask
	 * /proc. */
	if (thread_status_read(scanned->id.tgid, scanned->tid, &status) || status.is_runnable ||
	    status.tgid != scanned->id.tgid || status.switches != scanned->switches)
		return 0;
	scanned->moves = moves;
	return end_ns;
}

/* Whether the ledger has read a slot of this thread in the same window. */
static bool is_in_ledger(const struct counting *counting, const struct scanned *scanned)
{
	struct thread_glance glance;

	return glance_at(counting, scanned, &glance) &&
	       glance.created_ns < counting->window->end_ns && glance.flags & PP_THREAD_MATCHES;
}

static uint32_t flags_of(const struct scanned *scanned)
{
	const uint32_t stop = 0xffU << PP_COUNT_STOP_SHIFT,
		       py_stop = 0xffU << PP_COUNT_PY_STOP_SHIFT;

	if (!scanned->is_torn)
		return scanned->flags | PP_COUNT_SWEPT;
	return (scanned->flags & ~(stop | py_stop)) | PP_STOP_READ_FAULT << PP_COUNT_STOP_SHIFT |
	       PP_COUNT_SWEPT;
}

/* Counts the thread as if it had a slot in which it waits from begin_ns on. */
static int add_wait(const struct counting *counting, const struct scanned *scanned,
		    uint64_t begin_ns, uint64_t until_ns)
{
	const struct slots_window part = {
		.number = counting->window->number, .start_ns = begin_ns, .end_ns = until_ns};
	const struct pp_thread thread = {
		.tid = scanned->tid,
		.id = scanned->id,
		.flags = PP_THREAD_MATCHES | PP_THREAD_WAITING,
		.wait = (uint8_t)scanned->wait,
		.since_ns = begin_ns,
		.site[0] = {.key = 1,
			    .user_stack = scanned->is_torn ? 0 : scanned->user_stack,
			    .kernel_stack = scanned->kernel_stack,
			    .flags = flags_of(scanned),
			    .sum[0].window = part.number - 1,
			    .sum[1].window = part.number - 1},
	};
	int err = thread_slot_count(&thread, &part, counting->counts);

	if (err)
		return err;
	return ledger_add_sleep(counting->ledger, scanned->id, scanned->wait, until_ns - begin_ns,
				!is_in_ledger(counting, scanned));
}

static int count_one(const struct counting *counting, struct one *one)
{
	uint64_t begin_ns = one->since_ns, end_ns = counting->window->end_ns;
	struct scanned *scanned = NULL;
	int err = 0;

	if (begin_ns < counting->window->start_ns)
		begin_ns = counting->window->start_ns;
	while (!err && (scanned = scan_next(one->scan, scanned))) {
		uint64_t until_ns = slept_until(counting, scanned, one->since_ns);

		if (!until_ns)
			counting->scans->lost++;
		else if (begin_ns < until_ns)
			err = add_wait(counting, scanned, begin_ns, until_ns);
		if (until_ns < end_ns)
			scan_forget(one->scan, scanned);
	}
	return err;
}

/* The window may not be held up for long; threads that the scan has not reached by then miss this
 * window. */
static void reach_end(struct scans *scans, bool is_last)
{
	const uint64_t max_ns = is_last ? LAST_MAX_NS : CLOSE_MAX_NS;
	uint64_t budget_ns = scans->services->options->interval_ns / 2;
	struct scan_stats stats;

	scans->is_hurried = false;
	if (!scans->is_running)
		return;
	if (budget_ns > max_ns)
		budget_ns = max_ns;
	if (!go_on(scans, budget_ns))
		return;
	scan_get_stats(scans->one[scans->count - 1].scan, &stats);
	if (stats.passes > 1)
		return; /* it has reached all threads */
	scans->was_cut = true;
	scans->counted = stats.threads;
	scans->lost++; /* at least one thread, should this be the last window */
}

/* Drops the scans none of whose threads sleeps any more. */
static void tidy(struct scans *scans)
{
	size_t kept = 0;

	for (size_t i = 0; i < scans->count; i++) {
		bool is_last = i == scans->count - 1;

		if ((is_last && scans->is_running) || scan_next(scans->one[i].scan, NULL))
			scans->one[kept++] = scans->one[i];
		else
			scan_free(scans->one[i].scan);
	}
	scans->count = kept;
}

/* ---- as a source ---- */

static bool source_close(void *state)
{
	struct scans *scans = state;

	for (size_t i = 0; i < scans->count; i++)
		scan_free(scans->one[i].scan);
	return true;
}

/* The program of context switches runs since started_ns: a thread that sleeps now and has not
 * passed it has slept since then at least. */
static int source_begin(void *state, uint64_t started_ns)
{
	begin(state, started_ns);
	return 0;
}

/* The threads of a process that did not match the filter before may sleep already. */
static void source_see_process(void *state, const struct process *process, bool is_new)
{
	struct scans *scans = state;

	(void)process;
	if (is_new)
		scans->wanted_ns = mono_ns();
}

static void source_step(void *state)
{
	struct scans *scans = state;
	const uint64_t now_ns = mono_ns();

	if (!scans->is_running && scans->wanted_ns && scans->next_scan_ns &&
	    now_ns >= scans->next_scan_ns && now_ns >= scans->wanted_ns + WANTED_NS)
		begin(scans, now_ns);
	if (!scans->is_running || now_ns < scans->next_step_ns)
		return;
	(void)go_on(scans, STEP_NS);
	scans->next_step_ns = scans->is_hurried ? 0 : mono_ns() + PAUSE_NS;
}

/* Steps are due without a pause until the window ends. */
static bool source_hurry(void *state)
{
	struct scans *scans = state;

	if (!scans->is_running)
		return false;
	if (!scans->is_hurried)
		scans->next_step_ns = 0;
	scans->is_hurried = true;
	return true;
}

static int source_timeout_ms(void *state, int longest_ms)
{
	const struct scans *scans = state;

	return scans->is_running ? ms_until(scans->next_step_ns, longest_ms) : longest_ms;
}

/* A scan that is not done is continued first, within a bound, which is longer for the last
 * window. */
static int source_collect_slots(void *state, const struct source_window *window)
{
	struct scans *scans = state;
	const struct kernel_side *kernel = scans->services->finisher->kernel;
	struct counting counting = {
		.scans = scans,
		.window = &window->slots,
		.ledger = waits_ledger(scans->services->sources->state[PP_SOURCE_WAITS]),
		.counts = window->counts};
	uint64_t loss[PP_LOSS_COUNT] = {}, no_slot;
	int err = 0;

	reach_end(scans, window->is_last);
	counting.slot = kernel_side_threads(kernel, &counting.slot_count);
	counting.slot_seed = kernel_side_config(kernel)->thread_seed;
	if (kernel_side_get_losses(kernel, loss))
		loss[PP_LOSS_THREADS_FULL] = UINT64_MAX;
	no_slot = loss[PP_LOSS_THREADS_FULL] + loss[PP_LOSS_THREADS_SHARE];
	counting.was_full = no_slot != scans->no_slot;
	scans->no_slot = no_slot;
	for (size_t i = 0; i < scans->count && !err; i++)
		err = count_one(&counting, &scans->one[i]);
	tidy(scans);
	return err;
}

static void source_refresh(void *state)
{
	const struct scans *scans = state;

	for (size_t i = 0; i < scans->count; i++)
		(void)scan_refresh(scans->one[i].scan);
}

static void source_summarize(void *state, struct summary *summary)
{
	const struct scans *scans = state;

	summary->loss[PP_LOSS_SWEPT_LOST] = scans->lost;
}

const struct source scans_source = {.name = "scans",
				    .bytes = sizeof(struct scans),
				    .close = source_close,
				    .begin = source_begin,
				    .see_process = source_see_process,
				    .step = source_step,
				    .timeout_ms = source_timeout_ms,
				    .hurry = source_hurry,
				    .collect_slots = source_collect_slots,
				    .refresh = source_refresh,
				    .summarize = source_summarize};
