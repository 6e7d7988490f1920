/* SPDX-License-Identifier: BSD-2-Clause */
/* The end of a window: counters joined with the dictionary, named, put into the profile. */
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "agent/agent.h"
#include "agent/coverage.h"
#include "agent/live.h"
#include "agent/sweeps.h"
#include "agent/top.h"
#include "base/clock.h"
#include "base/log.h"
#include "discover/proc_scan.h"
#include "drain/thread_slots.h"
#include "symbolize/symbolizer.h"

/* What stacks and code objects may take, in bytes. */
#define DICTIONARY_BYTES (24U << 20)
#define DICTIONARY_BYTES_PER_CPU (4U << 20)
#define DICTIONARY_BYTES_PER_PROCESS (16U << 10)
#define DICTIONARY_BYTES_MAX (256U << 20)
/* After as many windows the kernel side sends every stack once more, and unused ones go. */
#define EPOCH_WINDOWS 6U
/* Dead processes and unmapped files are kept for this many windows. */
#define KEEP_WINDOWS 3U
/* Frames of the tracepoint and the scheduler that a stack at a switch can begin with. */
#define SWITCH_FRAMES_MAX 12U

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

/* ---- labels ---- */

static int label_string(struct agent *agent, struct profile_sample *sample, const char *key,
			const char *value)
{
	struct profile_label *label = &sample->label[sample->label_count];

	if (!value || !value[0] || sample->label_count == PROFILE_MAX_LABELS)
		return 0;
	label->key = key;
	label->is_number = 0;
	sample->label_count++;
	return intern_string(agent->strings, value, &label->string);
}

static void label_number(struct profile_sample *sample, const char *key, int64_t value)
{
	if (sample->label_count < PROFILE_MAX_LABELS)
		sample->label[sample->label_count++] =
			(struct profile_label){.key = key, .number = value, .is_number = 1};
}

static int label_python(struct agent *agent, struct profile_sample *sample, uint32_t flags,
			const struct process_python *python)
{
	char version[16];
	int err = 0;

	if (python && python->file) {
		snprintf(version, sizeof(version), "%u.%u", python->file->python->bpf.major,
			 python->file->python->bpf.minor);
		err = label_string(agent, sample, "python_version", version);
	}
	if (!err && flags & PP_COUNT_GIL_HELD)
		err = label_string(agent, sample, "gil", "held");
	if (!err && flags & PP_COUNT_GC)
		err = label_string(agent, sample, "gc", "collecting");
	return err;
}

/* ---- labels of one kind of counter: PP_COUNT_KINDS ---- */

static int label_none(struct agent *agent, struct profile_sample *sample,
		      const struct pp_count_key *key)
{
	(void)agent, (void)sample, (void)key;
	return 0;
}

static int label_wait(struct agent *agent, struct profile_sample *sample,
		      const struct pp_count_key *key)
{
	int err = label_string(agent, sample, "wait",
			       wait_label((enum pp_wait)pp_count_wait(key->flags)));

	if (!err && key->flags & PP_COUNT_SWEPT)
		err = label_string(agent, sample, "swept", "yes");
	if (!err && key->flags & PP_COUNT_EARLIER)
		err = label_string(agent, sample, "stack", "earlier");
	return err;
}

static int label_kind(struct agent *agent, struct profile_sample *sample,
		      const struct pp_count_key *key)
{
#define LABEL_OF(id, label) [PP_KIND_##id] = label_##label,
	static int (*const label_of[PP_KIND_COUNT])(struct agent *, struct profile_sample *,
						    const struct pp_count_key *) = {
		PP_COUNT_KINDS(LABEL_OF)};

	return key->kind < PP_KIND_COUNT ? label_of[key->kind](agent, sample, key) : 0;
}

/* ---- all labels ---- */

/* The GIL's holder is known by the number that it has itself.  0: by none. */
static uint32_t sample_tid(const struct agent *agent, const struct pp_count_key *key,
			   const struct process *process)
{
	if (process && key->kind == PP_KIND_BLAME)
		return thread_names_host_tid(agent->thread_names, process, key->tid);
	return key->tid;
}

int window_label_sample(struct agent *agent, struct profile_sample *sample,
			const struct pp_count_key *key, struct process *process)
{
	char comm[PP_COMM_BYTES + 1] = "";
	const uint32_t tid = sample_tid(agent, key, process);
	int err = label_kind(agent, sample, key);

	if (err)
		return err;
	label_number(sample, "pid", key->id.tgid);
	if (tid)
		label_number(sample, "tid", tid);
	if (!process) {
		/* A kernel thread, or gone before anybody could look. */
		if (thread_comm_read(key->id.tgid, key->tid, comm))
			return 0;
		return label_string(agent, sample, "comm", comm);
	}
	if (!process->details_read && !process->exit_ns)
		(void)process_read_details(agent->processes, process);
	memcpy(comm, process->comm, PP_COMM_BYTES);
	label_number(sample, "ppid", process->ppid);
	err = label_string(agent, sample, "comm", comm);
	if (!err)
		err = label_string(agent, sample, "thread_name",
				   tid ? thread_names_get(agent->thread_names, process, tid) : "");
	if (!err)
		err = label_string(agent, sample, "container_id", process->container_id);
	if (!err)
		err = label_string(agent, sample, "cgroup", process->cgroup);
	if (err)
		return err;
	return label_python(agent, sample, key->flags, image_table_python(process));
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

/* The kernel's own way out of a thread: tracing and scheduler frames above __schedule(). */
void window_drop_switch_frames(struct agent *agent, struct profile_sample *sample)
{
	for (size_t i = 0; i < sample->frame_count && i < SWITCH_FRAMES_MAX; i++) {
		const struct frame *frame = &sample->frame[i];

		if (frame->kind != FRAME_KERNEL)
			return;
		if (strcmp(intern_get(agent->strings, frame->name, NULL), "__schedule"))
			continue;
		sample->frame += i;
		sample->frame_count -= i;
		return;
	}
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
	struct process *process = process_table_find(agent->processes, key->id);
	struct profile_sample sample = {};
	struct frame lost;
	int err;

	if (!process)
		process = process_table_find_tgid(agent->processes, key->id.tgid);
	err = symbolizer_stack(symbolizer, key->id, user, kernel, &sample.frame,
			       &sample.frame_count);
	if (err)
		return err;
	if (!sample.frame_count) {
		sample.frame = say_why(agent, user, key, &lost);
		sample.frame_count = 1;
	}
	if (key->kind == PP_KIND_WAIT)
		window_drop_switch_frames(agent, &sample);
	err = window_label_sample(agent, &sample, key, process);
	if (!err && agent->ledger && key->kind == PP_KIND_CPU)
		err = ledger_add_sample(agent->ledger, key->id, leaf_part(&sample),
					counted->count.weight);
	if (err)
		return err;
	top_add(agent->top, key, &counted->count, &sample);
	summarize(agent, process, counted);
	return profiles_add(&agent->profiles, key, &counted->count, &sample);
}

static int add_samples(struct agent *agent, const struct counts *counts)
{
	OWNED(symbolizer) struct symbolizer *symbolizer = NULL;
	struct symbolizer_sources sources;
	const struct symbolizer_options options = {.raw = agent->options->raw,
						   .no_native = agent->options->no_native};
	int err;

	naming_begin(agent->naming, &sources);
	err = symbolizer_new(agent->strings, agent->dictionary, &sources, &options, &symbolizer);
	if (err)
		return err;
	for (size_t i = 0; i < counts->count && !err; i++) {
		const struct dict_stack *stack =
			dictionary_find_stack(agent->dictionary, counts->entry[i].key.user_stack);

		if (stack)
			err = symbolizer_note(symbolizer, stack);
	}
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
	err = lives_follow(agent);
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
		agent->epoch++;
	} else if (++agent->windows_closed % EPOCH_WINDOWS == 0) {
		agent->epoch++;
	}
	if (config->epoch != agent->epoch) {
		config->epoch = agent->epoch;
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
