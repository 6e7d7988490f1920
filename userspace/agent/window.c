/* SPDX-License-Identifier: BSD-2-Clause */
/* The end of a window: counters joined with the dictionary, named, put into the profile. */
#include "agent/window.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "agent/agent.h"
#include "agent/coverage.h"
#include "agent/labels.h"
#include "agent/live.h"
#include "agent/naming.h"
#include "agent/process_watch.h"
#include "agent/sweeps.h"
#include "agent/switch_frames.h"
#include "agent/tables.h"
#include "agent/thread_names.h"
#include "agent/top.h"
#include "agent/waits.h"
#include "agent/wakers.h"
#include "agent/window_facts.h"
#include "base/clock.h"
#include "base/log.h"
#include "drain/thread_slots.h"
#include "symbolize/symbolizer.h"

/* What stacks and code objects may take, in bytes. */
#define DICTIONARY_BYTES (24U << 20)
#define DICTIONARY_BYTES_PER_CPU (4U << 20)
#define DICTIONARY_BYTES_PER_PROCESS (16U << 10)
#define DICTIONARY_BYTES_MAX (256U << 20)
/* Dead processes and unmapped files are kept for this many windows. */
#define KEEP_WINDOWS 3U

static int open_profiles(struct agent *agent)
{
	int err = intern_new(&agent->strings);

	if (err)
		return err;
	agent->profile_serial++;
	agent->profile_started_ns = agent->window_started_ns;
	agent->profile_started_wall_ns = agent->window_started_wall_ns;
	return profiles_open(&agent->profiles, agent->options, agent->strings,
			     agent->window_started_wall_ns);
}

/* The first window: nothing lies before it. */
static void set_window_edges(struct agent *agent)
{
	volatile struct pp_config *config = kernel_side_config(agent->kernel);

	config->window_start_ns[0] = config->window_start_ns[1] = agent->started_ns;
}

int window_open(struct agent *agent)
{
	/* The next window begins where one ends, however long its profile takes. */
	if (!agent->window_started_ns) {
		agent->window_started_ns = agent->started_ns;
		set_window_edges(agent);
		agent->window_started_wall_ns = wall_ns() - (mono_ns() - agent->started_ns);
	}
	return agent->profiles.is_open ? 0 : open_profiles(agent);
}

/* ---- samples ---- */

static void summarize(struct agent *agent, struct process *process,
		      const struct counted *counted)
{
	struct summary *summary = &agent->summary;
	uint32_t stop = counted->key.flags >> PP_COUNT_STOP_SHIFT & 0xff;
	uint32_t py_stop = counted->key.flags >> PP_COUNT_PY_STOP_SHIFT & 0xff;

	if (counted->key.user_stack == PP_STACK_OTHERS && counted->key.kind == PP_KIND_CPU)
		summary->coarse_cpu_ns += counted->count.weight;
	if (counted->key.user_stack == PP_STACK_OTHERS && counted->key.kind == PP_KIND_WAIT)
		summary->coarse_wait_ns += counted->count.weight;
	if (counted->key.kind == PP_KIND_WAIT)
		summary->wait_ns += counted->count.weight;
	if (counted->key.kind != PP_KIND_CPU)
		return;
	summary->samples += counted->count.samples;
	summary->cpu_ns += counted->count.weight;
	if (process && !process->is_sampled) {
		process->is_sampled = true;
		summary->processes++;
	}
	if (stop < PP_STOP_COUNT)
		summary->stop[stop] += counted->count.samples;
	if (py_stop < PP_PY_STOP_COUNT && counted->key.flags & PP_COUNT_PYTHON)
		summary->py_stop[py_stop] += counted->count.samples;
}

/* No frame at all: the stack's description did not get through, or nothing could be walked. */
static const struct frame *say_why(struct agent *agent, const struct dict_stack *user,
				   const struct pp_count_key *key, struct frame *frame)
{
#define STOP_TEXT(id, name, text) text,
	static const char *const reason[] = {PP_STOPS(STOP_TEXT)};
	uint32_t stop = key->flags >> PP_COUNT_STOP_SHIFT & 0xff;
	char text[128] = "[stack lost: the ring was full]";

	if (dictionary_was_refused(agent->dictionary,
				   key->user_stack ? key->user_stack : key->kernel_stack))
		snprintf(text, sizeof(text), "[stack left out: its process has too many]");
	if (key->kind == PP_KIND_BLAME && !key->user_stack)
		snprintf(text, sizeof(text), "[holder of the GIL not seen]");
	else if (key->user_stack == PP_STACK_OTHERS)
		snprintf(text, sizeof(text), "[other stacks]");
	else if ((user || !key->user_stack) && stop < PP_STOP_COUNT)
		snprintf(text, sizeof(text), "[%s]", reason[stop]);
	*frame = (struct frame){.kind = FRAME_MARKER};
	(void)intern_string(agent->strings, text, &frame->name);
	return frame;
}

/* What the thread was busy with, by the leaf. */
static enum ledger_part leaf_part(const struct profile_sample *sample)
{
	switch ((enum frame_kind)sample->frame[0].kind) {
	case FRAME_KERNEL:
		return LEDGER_KERNEL;
	case FRAME_PYTHON:
		return LEDGER_PYTHON;
	default:
		return LEDGER_NATIVE;
	}
}

static int add_sample(struct agent *agent, struct symbolizer *symbolizer,
		      const struct counted *counted)
{
	const struct pp_count_key *key = &counted->key;
	const struct dict_stack *user = dictionary_use_stack(agent->dictionary, key->user_stack);
	const struct dict_kernel *kernel =
		dictionary_use_kernel(agent->dictionary, key->kernel_stack);
	struct profile_sample sample = {};
	struct who who;
	struct frame lost;
	int err;

	process_watch_who(agent, key->id, key->tid, &who);
	err = symbolizer_stack(symbolizer, key->id, user, kernel, &sample.frame,
			       &sample.frame_count);
	if (err)
		return err;
	if (!sample.frame_count) {
		sample.frame = say_why(agent, user, key, &lost);
		sample.frame_count = 1;
	}
	if (key->kind == PP_KIND_WAIT)
		switch_frames_drop(agent->strings, &sample);
	err = labels_add(agent, &sample, key, &who);
	if (!err && agent->ledger && key->kind == PP_KIND_CPU)
		err = ledger_add_sample(agent->ledger, key->id, leaf_part(&sample),
					counted->count.weight);
	if (err)
		return err;
	top_add(agent->top, key, &counted->count, &sample);
	summarize(agent, who.process, counted);
	return profiles_add(&agent->profiles, key, &counted->count, &sample);
}

static int add_samples(struct agent *agent, const struct counts *counts)
{
	OWNED(symbolizer) struct symbolizer *symbolizer = NULL;
	const struct naming_options options = {.strings = agent->strings};
	int err = naming_begin(agent->naming, &options, &symbolizer);

	for (size_t i = 0; i < counts->count && !err; i++)
		err = symbolizer_note_hash(symbolizer, counts->entry[i].key.user_stack);
	if (!err)
		err = symbolizer_resolve(symbolizer);
	for (size_t i = 0; i < counts->count && !err; i++) {
		err = add_sample(agent, symbolizer, &counts->entry[i]);
		if (!err && i % NAMED_AT_ONCE == 0)
			err = tables_relieve(agent);
	}
	return err;
}

/* ---- the end of a window ---- */

static int collect(struct agent *agent, uint64_t ended_ns, struct counts *counts,
		   struct wakes *wakes)
{
	volatile struct pp_config *config = kernel_side_config(agent->kernel);
	const struct slots_window window = {.number = agent->window,
					    .start_ns = agent->window_started_ns,
					    .end_ns = ended_ns,
					    .wait_min_ns = agent->options->offcpu_min_ns};
	const uint32_t tables = tables_swap_for_next(agent);
	int err;

	agent->window++;
	config->window_start_ns[agent->window & 1] = ended_ns;
	/* What the kernel side looks up by the window's number is there before. */
	atomic_thread_fence(memory_order_release);
	config->window = agent->window;
	agent->summary.scheduler_ns += coverage_take(agent->coverage);
	tables_settle();
	err = process_watch_follow(agent);
	if (!err)
		err = ring_consume(agent->stacks_ring);
	*counts = agent->finished;
	agent->finished = (struct counts){};
	*wakes = agent->woken;
	agent->woken = (struct wakes){};
	if (!err)
		err = waits_collect(agent, &window, counts);
	config->slots_read = window.number;
	if (!err)
		err = tables_drain(agent, tables, counts, wakes);
	if (!err)
		err = waits_divide(agent, &window, counts);
	agent->bounded += counts->bounded;
	return err;
}

static void release_process(void *context, struct process *process)
{
	struct agent *agent = context;

	image_table_release(agent->images, process);
}

void window_forget(struct agent *agent)
{
	uint64_t keep_ns = KEEP_WINDOWS * agent->options->interval_ns;
	uint64_t before_ns = mono_ns() > keep_ns ? mono_ns() - keep_ns : 0;

	thread_names_expire(agent->thread_names, before_ns);
	process_table_expire(agent->processes, before_ns, release_process, agent);
	file_table_tidy(agent->files, before_ns);
}

/* By what the machine may hold: CPUs bring samples, processes their code. */
size_t window_dictionary_bytes(const struct agent *agent)
{
	uint64_t bytes = DICTIONARY_BYTES + (uint64_t)agent->online_cpus * DICTIONARY_BYTES_PER_CPU +
			 process_table_live_count(agent->processes) * DICTIONARY_BYTES_PER_PROCESS;
	uint64_t max = agent->options->budget_bytes ? agent->options->budget_bytes / 4 :
						      DICTIONARY_BYTES_MAX;

	return bytes < max ? bytes : max;
}

/* Ids of files that are gone serve others once no stack names them. */
static void reuse_file_slots(struct agent *agent)
{
	OWNED_MEM uint64_t *named = NULL;

	if (!file_table_has_resting(agent->files))
		return;
	named = calloc(FILE_SLOTS / 64, sizeof(*named));
	if (!named)
		return;
	dictionary_note_files(agent->dictionary, named);
	file_table_end_epoch(agent->files, named);
}

/* Code objects stay until the dictionary is full; then what is in use stays, and everything is described
 * anew.  What found no room tells so until then (say_why()). */
static void renew_dictionary(struct agent *agent)
{
	volatile struct pp_config *config = kernel_side_config(agent->kernel);
	struct dictionary_stats stats;

	dictionary_get_stats(agent->dictionary, &stats);
	if (stats.refused != agent->refused) {
		agent->refused = stats.refused;
		dictionary_set_max_bytes(agent->dictionary, window_dictionary_bytes(agent));
		dictionary_make_room(agent->dictionary);
		config->code_epoch++;
		kernel_side_processes_changed(agent->kernel);
		agent->epoch++;
	} else if (++agent->windows_closed % EPOCH_WINDOWS == 0) {
		agent->epoch++;
	}
	if (config->epoch != agent->epoch) {
		config->epoch = agent->epoch;
		/* What the open tables have rows of is sent again. */
		config->sent_from_table = config->table[agent->window & 1] + 1;
		dictionary_set_epoch(agent->dictionary, agent->epoch);
		reuse_file_slots(agent);
		sweeps_refresh(agent->sweeps);
		live_refresh(agent->live);
	}
}

static int finish_profiles(struct agent *agent, uint64_t ended_ns, bool is_last)
{
	int err = waits_describe(agent);

	if (!err)
		err = profiles_write(&agent->profiles, agent->output,
				     agent->profile_started_wall_ns,
				     ended_ns - agent->profile_started_ns, is_last);
	profiles_close(&agent->profiles);
	intern_free(TAKE(agent->strings));
	return err;
}

static void end_top(struct agent *agent, uint64_t length_ns)
{
	OWNED_MEM char *comment = NULL;
	struct top_facts facts = {.modules = profiles_any(&agent->profiles),
				  .duration_ns = length_ns};

	if (top_wants_comment(agent->top) &&
	    !window_facts_tell(agent, &agent->facts_watched, &comment))
		facts.comment = comment;
	top_end(agent->top, &facts);
}

/* What a window has counted, into the profiles and to who watches. */
static int take_window(struct agent *agent, uint64_t ended_ns)
{
	CLEANUP(counts_release) struct counts counts = {};
	CLEANUP(wakes_release) struct wakes wakes = {};
	uint64_t length_ns = ended_ns - agent->window_started_ns;
	int err = collect(agent, ended_ns, &counts, &wakes);

	top_begin(agent->top, agent->strings, agent->window_started_wall_ns);
	agent->window_started_ns = ended_ns;
	agent->window_started_wall_ns += length_ns;
	if (!err)
		err = add_samples(agent, &counts);
	if (!err)
		err = waits_close(agent);
	end_top(agent, length_ns);
	if (!err)
		err = wakers_close(agent, &wakes);
	return err;
}

int window_close(struct agent *agent, enum window_end end)
{
	uint64_t ended_ns = agent->paused_ns ? agent->paused_ns : mono_ns();
	bool is_last = end == WINDOW_LAST;
	int err = take_window(agent, ended_ns);

	if (!err && end != WINDOW_PART && (is_last || output_is_store(agent->output)))
		err = window_facts_add(agent);
	if (err)
		log_error_errno(err, "a window could not be read");
	if (end == WINDOW_PART)
		return 0;
	window_forget(agent);
	renew_dictionary(agent);
	return is_last || output_is_store(agent->output) ?
		       finish_profiles(agent, ended_ns, is_last) :
		       0;
}
