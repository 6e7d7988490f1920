/* SPDX-License-Identifier: BSD-2-Clause */
#include "agent/window.h"

#include <errno.h>

#include "agent/coverage.h"
#include "agent/epochs.h"
#include "agent/live.h"
#include "agent/modules.h"
#include "agent/naming.h"
#include "agent/output.h"
#include "agent/process_watch.h"
#include "agent/profiles.h"
#include "agent/scans.h"
#include "agent/tables.h"
#include "agent/thread_names.h"
#include "agent/top.h"
#include "agent/waits.h"
#include "agent/wakers.h"
#include "agent/window_facts.h"
#include "attach/context_table.h"
#include "attach/file_table.h"
#include "base/clock.h"
#include "base/intern.h"
#include "base/log.h"
#include "discover/process_table.h"
#include "drain/ring.h"
#include "drain/thread_slots.h"
#include "options/options.h"

/* How many windows ended processes and unmapped files are kept. */
#define CLOSE_AFTER_NS NS_PER_SEC
#define KEEP_WINDOWS 3U

static int open_profiles(struct window *window)
{
	struct samples *samples = window->samples;
	int err = intern_new(&samples->strings);

	if (err)
		return err;
	modules_begin(samples->modules, samples->strings);
	window->profile_started_ns = window->started_ns;
	window->profile_started_wall_ns = window->started_wall_ns;
	return profiles_open(samples->profiles, window->options, samples->strings,
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

void window_release(struct window *window)
{
	if (!window->samples)
		return;
	profiles_close(window->samples->profiles);
	intern_free(TAKE(window->samples->strings));
}

/* Ends the kernel side's window and collects all its counters. */
static int collect(struct window *window, uint64_t ended_ns, struct counts *counts,
		   struct wakes *wakes)
{
	const struct samples *samples = window->samples;
	struct tables *tables = samples->tables;
	const struct slots_window slots = {.number = tables->window,
					   .start_ns = window->started_ns,
					   .end_ns = ended_ns,
					   .wait_min_ns = window->options->offcpu_min_ns};
	const uint32_t closed = tables_begin_window(tables, ended_ns);
	int err;

	samples->summary->scheduler_ns += coverage_take(window->coverage);
	tables_settle();
	err = process_watch_follow(window->watch);
	if (!err)
		err = ring_consume(window->stacks_ring);
	tables_take(tables, counts, wakes);
	if (!err)
		err = waits_collect(samples->waits, &slots, counts);
	if (!err)
		err = scans_collect(window->scans, &slots, waits_ledger(samples->waits), counts);
	tables_end_slots(tables, slots.number);
	if (!err)
		err = tables_drain(tables, closed, counts, wakes);
	if (!err)
		err = waits_divide(samples->waits, &slots, counts);
	window->facts->bounded += counts->bounded;
	return err;
}

static void end_top(struct window *window, uint64_t length_ns)
{
	const struct samples *samples = window->samples;
	OWNED_MEM char *comment = NULL;
	struct top_facts facts = {.modules = profiles_any(samples->profiles),
				  .duration_ns = length_ns};

	if (top_wants_comment(samples->top) &&
	    !window_facts_tell(window->facts, &window->facts_watched, &comment))
		facts.comment = comment;
	top_end(samples->top, &facts);
}

/* Adds what was counted to the profiles, and sends it to who watches. */
static int take(struct window *window, uint64_t ended_ns)
{
	CLEANUP(counts_release) struct counts counts = {};
	CLEANUP(wakes_release) struct wakes wakes = {};
	const struct samples *samples = window->samples;
	uint64_t length_ns = ended_ns - window->started_ns;
	int err = collect(window, ended_ns, &counts, &wakes);

	top_begin(samples->top, samples->strings, window->started_wall_ns);
	window->started_ns = ended_ns;
	window->started_wall_ns += length_ns;
	if (!err)
		err = samples_add(samples, &counts);
	if (!err)
		err = waits_close(samples->waits);
	end_top(window, length_ns);
	return err ? err : wakers_add(samples, &wakes);
}

static int add_facts(struct window *window)
{
	OWNED_MEM char *text = NULL;
	int err = window_facts_tell(window->facts, &window->facts_told, &text);

	window->samples->summary->loop_stall_max_ns = 0;
	return err ? err : profiles_add_comment(window->samples->profiles, text);
}

static int write_profiles(struct window *window, uint64_t ended_ns, bool is_last)
{
	struct profiles *profiles = window->samples->profiles;
	int err = waits_describe(window->samples->waits, profiles);

	if (!err)
		err = profiles_write(profiles, window->output, window->profile_started_wall_ns,
				     ended_ns - window->profile_started_ns, is_last);
	window_release(window);
	return err;
}

int window_close(struct window *window, enum window_end end)
{
	const bool is_last = end == WINDOW_LAST;
	const bool is_written = end != WINDOW_PART && (is_last || output_is_store(window->output));
	uint64_t ended_ns = window->paused_ns ? window->paused_ns : mono_ns();
	int err = take(window, ended_ns), wrote;

	if (!err && is_written)
		err = add_facts(window);
	if (err)
		log_error_errno(err, "cannot read the counters of a window");
	if (end == WINDOW_PART)
		return 0;
	window_forget(window);
	if (epochs_end_window(window->epochs)) {
		scans_refresh(window->scans);
		live_refresh(window->live);
	}
	if (!is_written)
		return 0;
	wrote = write_profiles(window, ended_ns, is_last);
	/* A run goes on after a window that is not whole; at its end it is no success. */
	return wrote ? wrote : is_last ? err : 0;
}

uint64_t window_next_end(const struct window *window, uint64_t due_ns, uint64_t *ret_missed)
{
	const uint64_t interval_ns = window->options->interval_ns;
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
	uint64_t keep_ns = KEEP_WINDOWS * window->options->interval_ns, now_ns = mono_ns();
	uint64_t before_ns = now_ns > keep_ns ? now_ns - keep_ns : 0;

	thread_names_expire(window->samples->thread_names, before_ns);
	process_table_expire(window->samples->processes, before_ns, release_process,
			     window->contexts);
	context_table_tidy(window->contexts, before_ns);
	file_table_tidy(window->files, before_ns);
}

void window_close_files(const struct window *window)
{
	const uint64_t now_ns = mono_ns();
	OWNED_MEM uint64_t *unused = calloc(FILE_SLOTS / 64, sizeof(*unused));

	if (!unused || !file_table_find_unused(window->files, now_ns - CLOSE_AFTER_NS, unused))
		return;
	naming_keep(window->samples->naming, unused);
	file_table_close(window->files, unused);
}
