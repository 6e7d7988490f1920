/* SPDX-License-Identifier: BSD-2-Clause */
#include "agent/window.h"

#include "agent/live.h"
#include "agent/naming.h"
#include "agent/samples.h"
#include "agent/stack_intake.h"
#include "agent/tables.h"
#include "agent/window_facts.h"
#include "attach/context_table.h"
#include "attach/file_table.h"
#include "base/clock.h"
#include "base/intern.h"
#include "base/log.h"
#include "discover/process_table.h"
#include "drain/thread_slots.h"
#include "options/options.h"
#include "processes/identities.h"
#include "processes/process_watch.h"
#include "processes/thread_names.h"
#include "store/output.h"
#include "windows/modules.h"
#include "windows/profile_shares.h"
#include "windows/profiles.h"
#include "windows/top.h"

#define CLOSE_AFTER_NS NS_PER_SEC
/* How long files that are to be closed are named at once. */
#define KEEP_NAMES_NS (40 * NS_PER_MS)
/* How many windows ended processes and unmapped files are kept. */
#define KEEP_WINDOWS 3U
/* From so many processes on one window is enough: what ended before it is in the profiles. */
#define CROWD_PROCESSES 16384U
/* How long the ring of stacks is read at once at the end of a window, and in all. */
#define STACKS_NS (40 * NS_PER_MS)
#define LATE_STACKS_NS (500 * NS_PER_MS)
/* How long stacks are completed at the end of the run, which a service manager waits for. */
#define LAST_STACKS_NS NS_PER_SEC
/* How far the clock may be off the names of windows: it is kept in time by slewing it.  From which
 * distance on that is told. */
#define CLOCK_OFF_NS (100 * NS_PER_MS)
#define CLOCK_TOLD_NS (10 * NS_PER_SEC)

/* Windows begin where the one before ended, also by their names.  When somebody has set the clock,
 * or the machine has slept, which is no time for CLOCK_MONOTONIC, they go on at the new time. */
static void follow_clock(struct window *window)
{
	const uint64_t clock_says_ns = wall_ns() - (mono_ns() - window->started_ns);
	const int64_t off_ns = (int64_t)(clock_says_ns - window->started_wall_ns);
	const uint64_t far_ns = (uint64_t)(off_ns < 0 ? -off_ns : off_ns);

	if (far_ns < CLOCK_OFF_NS)
		return;
	window->started_wall_ns = clock_says_ns;
	if (far_ns >= CLOCK_TOLD_NS)
		log_info("the clock has gone %.0f s %s: windows are named by the new time",
			 (double)far_ns / (double)NS_PER_SEC, off_ns < 0 ? "back" : "on");
}

static int open_profiles(struct window *window)
{
	struct samples *samples = window->samples;
	int err = intern_new(&samples->strings);

	if (err)
		return err;
	follow_clock(window);
	profile_shares_reset(samples->shares);
	modules_begin(samples->modules, samples->strings);
	window->profile_started_ns = window->started_ns;
	window->profile_started_wall_ns = window->started_wall_ns;
	return profiles_open(samples->profiles, window->services->options, samples->strings,
			     window->started_wall_ns);
}

int window_open(struct window *window, uint64_t started_ns)
{
	/* Later windows begin where the one before ends, however long its profile took. */
	if (!window->started_ns) {
		window->started_ns = started_ns;
		tables_start(window->samples->tables, started_ns);
		window->started_wall_ns = wall_ns() - (mono_ns() - started_ns);
	}
	return window->samples->profiles->is_open ? 0 : open_profiles(window);
}

static void closing_release(struct window_closing *closing)
{
	counts_release(&closing->counts);
	wakes_release(&closing->wakes);
	samples_adding_release(&closing->samples);
	wakers_adding_free(closing->wakers);
	free(closing->comment);
	*closing = (struct window_closing){};
}

void window_release(struct window *window)
{
	if (!window->samples)
		return;
	profiles_close(window->samples->profiles);
	intern_free(TAKE(window->samples->strings));
	profile_shares_release(window->samples->shares);
	closing_release(&window->closing);
}

/* ---- the end of a window ---- */

/* Reads the ring and completes stacks for a while.  The rest is for the next stage; after the last
 * window there is none. */
static int read_stacks(const struct window *window)
{
	const bool is_last = window->closing.end == WINDOW_LAST;
	const struct slice slice = slice_begin(is_last ? LAST_STACKS_NS : STACKS_NS);
	int got;

	if (is_last)
		return stack_intake_end(window->stacks, &slice);
	got = stack_intake_serve(window->stacks, &slice);
	return got < 0 ? got : 0;
}

static bool is_written(const struct window *window)
{
	return window->closing.end == WINDOW_LAST ||
	       (window->closing.end == WINDOW_WHOLE && output_is_store(window->output));
}

/* Ends the kernel side's window and collects all its counters. */
static int collect(struct window *window)
{
	const struct samples *samples = window->samples;
	struct window_closing *closing = &window->closing;
	const struct source_window *of = &closing->window;
	struct counts *counts = &closing->counts;
	struct tables *tables = samples->tables;
	const uint32_t closed = tables_begin_window(tables, closing->ended_ns);
	int err, sources_err;

	window->services->summary->scheduler_ns += coverage_take(window->coverage);
	tables_settle();
	err = process_watch_follow(window->watch);
	if (!err)
		err = read_stacks(window);
	tables_take(tables, counts, &closing->wakes);
	if (!err)
		err = sources_collect_slots(window->services->sources, of);
	tables_end_slots(tables, of->slots.number);
	if (!err)
		err = tables_drain(tables, closed, counts, &closing->wakes);
	sources_err = sources_collect(window->services->sources, of);
	window->facts->bounded += counts->bounded;
	return err ? err : sources_err;
}

void window_cut(struct window *window, enum window_end end)
{
	struct window_closing *closing = &window->closing;

	closing->end = end;
	closing->stage = 1;
	closing->ended_ns = window->paused_ns ? window->paused_ns : mono_ns();
	closing->length_ns = closing->ended_ns - window->started_ns;
	profile_shares_allow(window->samples->shares,
			     closing->ended_ns - window->profile_started_ns,
			     window->services->online_cpus, window->services->options->hz);
	closing->source = 0;
	closing->window = (struct source_window){
		.slots = {.number = window->samples->tables->window,
			  .start_ns = window->started_ns,
			  .end_ns = closing->ended_ns,
			  .wait_min_ns = window->services->options->offcpu_min_ns},
		.is_part = end == WINDOW_PART,
		.is_last = end == WINDOW_LAST,
		.is_written = is_written(window),
		.counts = &closing->counts};
	closing->err = collect(window);
	top_begin(window->services->top, window->samples->strings, window->started_wall_ns);
	window->started_ns = closing->ended_ns;
	window->started_wall_ns += closing->length_ns;
}

bool window_is_closing(const struct window *window)
{
	return window->closing.stage;
}

/* ---- its stages: each returns 1 while it has more to do, 0 when it is done, or -errno ---- */

/* Stacks that the closed tables' rows refer to may lie in the ring or in the queue still. */
static int read_late_stacks(struct window *window, const struct slice *slice)
{
	const uint64_t late_ns = mono_ns() - window->closing.ended_ns;
	const struct slice own = slice_begin(STACKS_NS);
	int got;

	if (window->closing.end == WINDOW_LAST)
		return 0;
	got = stack_intake_serve(window->stacks, slice ? slice : &own);
	return got > 0 && late_ns >= LATE_STACKS_NS ? 0 : got;
}

static int add_more(struct window *window, const struct slice *slice)
{
	struct window_closing *closing = &window->closing;

	return sources_add(window->services->sources, &closing->window, slice, &closing->source);
}

static int add_samples(struct window *window, const struct slice *slice)
{
	struct window_closing *closing = &window->closing;

	return samples_add(window->samples, &closing->counts, &closing->samples, slice);
}

static int finish_sources(struct window *window, const struct slice *slice)
{
	struct window_closing *closing = &window->closing;

	return sources_finish(window->services->sources, &closing->window, slice, &closing->source);
}

static int send_to_clients(struct window *window, const struct slice *slice)
{
	struct window_closing *closing = &window->closing;
	const struct samples *samples = window->samples;
	struct top_facts facts = {.modules = profiles_any(samples->profiles),
				  .duration_ns = closing->length_ns,
				  .spent_ns = closing->spent_ns};

	if (!closing->is_told && top_wants_comment(window->services->top))
		(void)window_facts_tell(window->facts, &window->facts_watched, &closing->comment);
	closing->is_told = true;
	facts.comment = closing->comment;
	return top_end(window->services->top, &facts, slice);
}

static int add_wakers(struct window *window, const struct slice *slice)
{
	struct window_closing *closing = &window->closing;

	return wakers_add(window->samples, &closing->wakes, &closing->wakers, slice);
}

static int add_facts(struct window *window, const struct slice *slice)
{
	OWNED_MEM char *text = NULL;
	int err;

	(void)slice;
	if (!is_written(window))
		return 0;
	err = window_facts_tell(window->facts, &window->facts_told, &text);
	window->services->summary->loop_stall_max_ns = 0;
	return err ? err : profiles_add_comment(window->samples->profiles, text);
}

/* From here on the window's rows are named, and need nothing of what is given up. */
static int end_epoch(struct window *window, const struct slice *slice)
{
	(void)slice;
	if (window->closing.end == WINDOW_PART)
		return 0;
	window_forget(window);
	if (epochs_end_window(window->epochs)) {
		sources_refresh(window->services->sources);
		live_refresh(window->live);
	}
	return 0;
}

/* Hands the profiles over with their strings: whoever writes them has them alone. */
static int write_profiles(struct window *window, const struct slice *slice)
{
	struct profiles *profiles = window->samples->profiles;
	struct writer_window written = {.start_wall_ns = window->profile_started_wall_ns,
					.duration_ns = window->closing.ended_ns -
						       window->profile_started_ns,
					.ended_ns = window->closing.ended_ns,
					.is_last = window->closing.end == WINDOW_LAST};
	int err;

	(void)slice;
	if (!is_written(window))
		return 0;
	err = sources_describe(window->services->sources, profiles);
	if (!err) {
		written.strings = TAKE(window->samples->strings);
		err = profiles_write(profiles, window->output, &written);
	}
	profiles_close(profiles);
	intern_free(TAKE(window->samples->strings));
	return err;
}

static const struct {
	int (*run)(struct window *window, const struct slice *slice);
	bool needs_rows; /* left out when the window's rows are not whole */
} stages[] = {
	{}, /* no window is being closed */
	{read_late_stacks, true},
	{add_more, true},
	{add_samples, true},
	{finish_sources, true},
	{send_to_clients, false},
	{add_wakers, true},
	{add_facts, true},
	{end_epoch, false},
	{write_profiles, false},
};

static bool is_last_stage(const struct window *window)
{
	return window->closing.stage == ARRAY_SIZE(stages) - 1;
}

/* Goes to the next stage, with what the one before has returned. */
static int end_stage(struct window *window, int err)
{
	struct window_closing *closing = &window->closing;
	const int rows_err = closing->err;
	const bool was_last = closing->end == WINDOW_LAST;

	if (!is_last_stage(window)) {
		if (!closing->err)
			closing->err = err;
		closing->stage++;
		return 1;
	}
	if (rows_err)
		log_error_errno(rows_err, "cannot read the counters of a window");
	closing_release(closing);
	/* A run goes on after a window that is not whole; at its end it is no success. */
	return err ? err : was_last ? rows_err : 0;
}

int window_step(struct window *window, const struct slice *slice)
{
	struct window_closing *closing = &window->closing;
	int more = window_is_closing(window);

	while (more > 0) {
		const uint64_t begun_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
		const bool is_run = !closing->err || !stages[closing->stage].needs_rows;

		more = is_run ? stages[closing->stage].run(window, slice) : 0;
		closing->spent_ns += clock_ns(CLOCK_THREAD_CPUTIME_ID) - begun_ns;
		if (more <= 0)
			more = end_stage(window, more);
		if (slice_is_over(slice))
			break;
	}
	return more;
}

int window_close(struct window *window, enum window_end end)
{
	int err = window_step(window, NULL);

	if (!err)
		err = window_open(window, window->started_ns);
	if (err)
		return err;
	window_cut(window, end);
	return window_step(window, NULL);
}

uint64_t window_next_end(const struct window *window, uint64_t due_ns, uint64_t *ret_missed)
{
	const uint64_t interval_ns = window->services->options->interval_ns;
	const uint64_t behind_ns = window->started_ns > due_ns ? window->started_ns - due_ns : 0;

	/* A window may be late by half of its length, for the profile of the one before. */
	*ret_missed = (behind_ns + interval_ns / 2) / interval_ns;
	return due_ns + (*ret_missed + 1) * interval_ns;
}

static void release_process(void *context, struct process *process)
{
	context_table_release(context, process);
}

void window_forget(const struct window *window)
{
	const bool is_crowd = process_table_count(window->services->processes) > CROWD_PROCESSES;
	const uint64_t keep_ns =
		(is_crowd ? 1 : KEEP_WINDOWS) * window->services->options->interval_ns;
	const uint64_t now_ns = mono_ns();
	uint64_t before_ns = now_ns > keep_ns ? now_ns - keep_ns : 0;

	thread_names_expire(window->services->thread_names, before_ns);
	identities_expire(window->services->identities, before_ns);
	process_table_expire(window->services->processes, before_ns, release_process,
			     window->services->contexts);
	context_table_tidy(window->services->contexts, before_ns);
	file_table_tidy(window->services->files, before_ns);
}

bool window_close_files(const struct window *window)
{
	const struct slice slice = slice_begin(KEEP_NAMES_NS);
	const uint64_t now_ns = mono_ns();
	OWNED_MEM uint64_t *unused = calloc(FILE_SLOTS / 64, sizeof(*unused));
	bool more;

	if (!unused ||
	    !file_table_find_unused(window->services->files, now_ns - CLOSE_AFTER_NS, unused))
		return false;
	more = naming_keep(window->services->naming, unused, &slice);
	file_table_close(window->services->files, unused);
	return more;
}
