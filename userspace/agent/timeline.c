/* SPDX-License-Identifier: BSD-2-Clause */
/* --timeline: records wait here until the stacks that they name are sent and named, a few
 * times a second; then they go through the lanes into the file. */
#include "agent/timeline.h"

#include <errno.h>
#include <string.h>
#include <time.h>

#include "agent/stack_intake.h"
#include "attach/kernel_side.h"
#include "base/clock.h"
#include "base/log.h"
#include "discover/process_table.h"
#include "drain/ring.h"
#include "options/options.h"
#include "processes/process_watch.h"
#include "processes/thread_names.h"
#include "store/output.h"
#include "timeline/lanes.h"
#include "windows/source.h"

/* How long stacks are completed that the records of a tick name. */
#define STACKS_NS (100 * NS_PER_MS)
#define RECORDS_MAX 131072U
/* One text in the file for each stack, or one for each event. */
#define FRAMES_INTERNED 128U
#define FRAMES_INLINE 16U

struct timeline {
	struct timeline_sources sources;
	struct ring *ring;
	struct intern *strings;
	struct stack_texts *texts;
	struct trace_file *file;
	struct trace_sink sink;
	struct lanes *lanes;
	struct pp_timeline_record *record; /* RECORDS_MAX */
	size_t count;
	uint64_t taken, dropped;
	bool is_over; /* full, or failed */
};

void timeline_free(struct timeline *timeline)
{
	if (!timeline)
		return;
	lanes_free(timeline->lanes);
	if (timeline->sink.free)
		timeline->sink.free(timeline->sink.context);
	trace_file_free(timeline->file);
	stack_texts_free(timeline->texts);
	intern_free(timeline->strings);
	ring_free(timeline->ring);
	free(timeline->record);
	free(timeline);
}
DEFINE_OWNED(struct timeline, timeline)

int timeline_fd(const struct timeline *timeline)
{
	return ring_fd(timeline->ring);
}

static void on_record(void *context, const struct pp_timeline_record *record)
{
	struct timeline *timeline = context;

	if (timeline->is_over)
		return;
	if (timeline->count < RECORDS_MAX)
		timeline->record[timeline->count++] = *record;
	else
		timeline->dropped++;
}

/* ---- opening ---- */

static void find_names(void *context, struct pp_process_id id, uint32_t tid,
		       const char **ret_process_name, const char **ret_thread_name)
{
	struct timeline *timeline = context;
	const struct timeline_sources *sources = &timeline->sources;
	const struct process *process =
		process_table_find_or_tgid(sources->services->processes, id);

	if (!process)
		return;
	*ret_process_name = process->comm; /* its last byte is 0: decode_event() */
	*ret_thread_name = thread_names_get(sources->services->thread_names, process, tid, "");
}

static int open_file(struct timeline *timeline)
{
	const struct options *options = timeline->sources.services->options;
	struct trace_file_options file = {.path = options->timeline,
					  .max_bytes = options->timeline_max_bytes,
					  .gzip = options->timeline_kind ==
						  OPTIONS_TIMELINE_CHROME_GZ};
	int err;

	output_owner(&file.uid, &file.gid);
	err = trace_file_open(&file, &timeline->file);
	if (err == -EINVAL)
		log_error("--timeline: '%s' is not a regular file", options->timeline);
	else if (err == -EEXIST)
		log_error("--timeline: '%s' belongs to another user: give another name",
			  options->timeline);
	else if (err)
		log_error_errno(err, "cannot write to '%s'", options->timeline);
	return err;
}

static int open_format(struct timeline *timeline)
{
	const struct trace_start start = {.monotonic_ns = mono_ns(),
					  .boottime_ns = clock_ns(CLOCK_BOOTTIME),
					  .wall_ns = wall_ns()};

	if (timeline->sources.services->options->timeline_kind == OPTIONS_TIMELINE_PERFETTO)
		return perfetto_sink_new(timeline->file, timeline->strings, &start,
					 &timeline->sink);
	return chrome_sink_new(timeline->file, timeline->strings, &start, &timeline->sink);
}

static int open_parts(struct timeline *timeline)
{
	const struct lanes_names names = {.context = timeline, .find = find_names};
	const struct drain_handlers handlers = {.context = timeline, .timeline = on_record};
	const struct timeline_sources *sources = &timeline->sources;
	bool is_interned = sources->services->options->timeline_kind == OPTIONS_TIMELINE_PERFETTO;
	struct stack_texts_sources texts = {.dictionary = sources->services->dictionary,
					    .naming = sources->services->naming,
					    .max_frames =
						    is_interned ? FRAMES_INTERNED : FRAMES_INLINE};
	int err = ring_new(kernel_side_parts(sources->services->kernel).timeline, RING_TIMELINE,
			   &handlers, &timeline->ring);

	if (!err)
		err = intern_new(&timeline->strings);
	texts.strings = timeline->strings;
	if (!err)
		err = stack_texts_new(&texts, &timeline->texts);
	if (!err)
		err = open_format(timeline);
	if (!err)
		err = lanes_new(timeline->strings, &timeline->sink, &names, &timeline->lanes);
	return err ? log_error_errno(err, "cannot start the timeline") : 0;
}

int timeline_open(const struct timeline_sources *sources, struct timeline **ret_timeline)
{
	OWNED(timeline) struct timeline *timeline = NULL;
	int err;

	if (!sources->services->options->timeline)
		return 0;
	timeline = calloc(1, sizeof(*timeline));
	if (!timeline)
		return -ENOMEM;
	timeline->sources = *sources;
	timeline->record = malloc(RECORDS_MAX * sizeof(*timeline->record));
	if (!timeline->record)
		return -ENOMEM;
	err = open_file(timeline);
	if (!err)
		err = open_parts(timeline);
	if (err)
		return err;
	*ret_timeline = TAKE(timeline);
	return 0;
}

/* ---- recording ---- */

static void stop(struct timeline *timeline, int err)
{
	const char *path = timeline->sources.services->options->timeline;

	if (timeline->is_over)
		return;
	timeline->is_over = true;
	if (err == -EFBIG)
		log_warn("the timeline '%s' ends here: it has reached timeline-max", path);
	else if (err == -ENOBUFS)
		log_warn("the timeline '%s' ends here: it is written too slowly", path);
	else
		log_warn_errno(err, "the timeline '%s' ends here", path);
}

static int name_stacks(struct timeline *timeline)
{
	int err = 0;

	stack_texts_tidy(timeline->texts);
	for (size_t i = 0; i < timeline->count && !err; i++) {
		const struct pp_timeline_record *record = &timeline->record[i];

		err = stack_texts_note(timeline->texts, record->id, record->user_stack,
				       record->kernel_stack);
	}
	return err ? err : stack_texts_resolve(timeline->texts);
}

/* As the host numbers it; 0: not known. */
static uint32_t holder_of(const struct timeline *timeline, const struct pp_timeline_record *record)
{
	const struct timeline_sources *sources = &timeline->sources;
	const struct process *process =
		record->holder_tid ? process_table_find(sources->services->processes, record->id)
				   : NULL;

	return process ? thread_names_host_tid(sources->services->thread_names, process,
					       record->holder_tid)
		       : 0;
}

static int write_record(struct timeline *timeline, struct pp_timeline_record *record)
{
	struct stack_text text =
		stack_texts_find(timeline->texts, record->user_stack, record->kernel_stack);
	const struct lanes_event event = {.record = record,
					  .function = text.function,
					  .stack = text.text,
					  .is_python = text.is_python};

	record->holder_tid = holder_of(timeline, record);
	return lanes_add(timeline->lanes, &event);
}

static int write_records(struct timeline *timeline)
{
	int err = name_stacks(timeline);

	for (size_t i = 0; i < timeline->count && !err; i++)
		err = write_record(timeline, &timeline->record[i]);
	timeline->taken += timeline->count;
	timeline->count = 0;
	return err ? err : trace_file_flush(timeline->file);
}

void timeline_tick(struct timeline *timeline)
{
	struct slice slice;
	int err;

	(void)ring_consume(timeline->ring);
	if (timeline->is_over || !timeline->count)
		return;
	/* What the records name was sent before them. */
	(void)process_watch_follow(timeline->sources.watch);
	slice = slice_begin(STACKS_NS);
	(void)stack_intake_serve(timeline->sources.stacks, &slice);
	err = write_records(timeline);
	if (err)
		stop(timeline, err);
}

/* ---- the end ---- */

/* What a thread has done since its last record. */
static bool last_record(const struct pp_thread *thread, uint64_t now_ns,
			struct pp_timeline_record *ret_record)
{
	const struct pp_wait_site *site = &thread->site[thread->at % PP_THREAD_WAIT_SITES];
	bool is_waiting = thread->flags & PP_THREAD_WAITING;

	if (!thread->tid || thread->tid & PP_TID_ENDED || !(thread->flags & PP_THREAD_MATCHES) ||
	    thread->since_ns > now_ns || thread->ran_since_ns > thread->since_ns)
		return false;
	*ret_record = (struct pp_timeline_record){
		.record = {.type = PP_TIMELINE_SWITCH, .size = sizeof(*ret_record)},
		.id = thread->id,
		.tid = thread->tid,
		.cpu = thread->timeline_cpu,
		.run_ns = is_waiting ? thread->ran_since_ns : thread->since_ns,
		.leave_ns = is_waiting ? thread->since_ns : now_ns,
		.woken_ns = now_ns,
		.back_ns = now_ns};
	if (!is_waiting)
		return true;
	ret_record->wait = thread->wait;
	ret_record->flags = thread->timeline_flags;
	if (thread->wait == PP_WAIT_RUN_QUEUE)
		ret_record->woken_ns = thread->since_ns;
	if (site->key == thread->last_key) {
		ret_record->user_stack = site->user_stack;
		ret_record->kernel_stack = site->kernel_stack;
	}
	return true;
}

static void add_last_records(struct timeline *timeline)
{
	struct timespec settle = {.tv_nsec = PP_SETTLE_NS};
	uint64_t now_ns = mono_ns();
	uint32_t slot_count;
	const struct pp_thread *slot =
		kernel_side_threads(timeline->sources.services->kernel, &slot_count);

	nanosleep(&settle, NULL);
	timeline_tick(timeline);
	for (uint32_t i = 0; i < slot_count; i++) {
		struct pp_thread thread = slot[i];
		struct pp_timeline_record record;

		if (last_record(&thread, now_ns, &record) && record.wait < PP_WAIT_COUNT)
			on_record(timeline, &record);
	}
}

static void tell(const struct timeline *timeline)
{
	const struct options *options = timeline->sources.services->options;

	if (timeline->dropped || lanes_refused(timeline->lanes))
		log_warn("the timeline is incomplete: %llu records came faster than they could be "
			 "read, %llu were of threads beyond the first %u",
			 (unsigned long long)timeline->dropped,
			 (unsigned long long)lanes_refused(timeline->lanes), LANES_MAX_THREADS);
	if (!options->quiet)
		log_info("timeline: %llu records, %.1f MiB in '%s'",
			 (unsigned long long)timeline->taken,
			 (double)trace_file_bytes(timeline->file) / (1 << 20), options->timeline);
}

int timeline_close(struct timeline *timeline)
{
	int err = 0, closed;

	if (!timeline)
		return 0;
	if (!timeline->is_over) {
		add_last_records(timeline);
		err = write_records(timeline);
		if (err)
			stop(timeline, err);
	}
	trace_file_end(timeline->file);
	closed = lanes_end(timeline->lanes);
	if (!closed || closed == -EFBIG)
		closed = timeline->sink.end(timeline->sink.context);
	if (!closed)
		closed = trace_file_close(timeline->file);
	if (closed == -ETIMEDOUT)
		log_error("'%s' does not answer: the timeline is not finished",
			  timeline->sources.services->options->timeline);
	else if (closed)
		log_error_errno(closed, "cannot finish the timeline '%s'",
				timeline->sources.services->options->timeline);
	tell(timeline);
	return closed;
}
