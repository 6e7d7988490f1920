/* SPDX-License-Identifier: BSD-2-Clause */
#include "timeline/lanes.h"

#include <errno.h>
#include <string.h>

#include <uthash.h>

#include "drain/thread_slots.h"

/* A thread that waits for the GIL wakes up every 5 ms to ask for it, and waits again: as in
 * bpf/switch_thread.bpf.c. */
#define GIL_RETRY_NS 50000U
#define FIRST_MARKS 8U

/* Whether the thread holds the GIL at a moment. */
enum gil { GIL_UNKNOWN, GIL_OTHERS, GIL_HELD };

/* A sample in the current run on the CPU. */
struct mark {
	uint64_t ns;
	uint32_t function;
	uint8_t gil; /* enum gil */
};

/* A slice that grows while the next piece is the same. */
struct span {
	bool is_open;
	struct trace_slice slice;
};

struct thread {
	struct trace_thread thread;
	UT_hash_handle hh;
	struct mark *mark; /* owned */
	uint32_t mark_count, mark_capacity;
	struct span function, gil;
	/* The last wait. */
	uint64_t back_ns; /* 0: there was none */
	uint32_t stack;
	uint8_t wait, flags;
	uint64_t name_hash; /* of the names that the sink knows */
};

struct lanes {
	struct trace_sink sink;
	struct lanes_names names;
	struct thread *thread;
	uint32_t numbers;
	uint32_t holding, waiting, on_cpu, queue; /* ids of names */
	uint32_t wait[PP_WAIT_COUNT];
	uint64_t refused;
};

static void thread_free(struct lanes *lanes, struct thread *thread)
{
	HASH_DEL(lanes->thread, thread);
	free(thread->mark);
	free(thread);
}

void lanes_free(struct lanes *lanes)
{
	struct thread *thread, *next;

	if (!lanes)
		return;
	HASH_ITER (hh, lanes->thread, thread, next)
		thread_free(lanes, thread);
	free(lanes);
}

int lanes_new(struct intern *strings, const struct trace_sink *sink,
	      const struct lanes_names *names, struct lanes **ret_lanes)
{
	OWNED(lanes) struct lanes *lanes = calloc(1, sizeof(*lanes));
	int err;

	if (!lanes)
		return -ENOMEM;
	lanes->sink = *sink;
	lanes->names = *names;
	err = intern_string(strings, "Holding GIL", &lanes->holding);
	if (!err)
		err = intern_string(strings, "Waiting for GIL", &lanes->waiting);
	if (!err)
		err = intern_string(strings, "on CPU", &lanes->on_cpu);
	for (unsigned int i = 0; i < PP_WAIT_COUNT && !err; i++)
		err = intern_string(strings, wait_label((enum pp_wait)i), &lanes->wait[i]);
	if (err)
		return err;
	lanes->wait[PP_WAIT_GIL] = lanes->waiting;
	lanes->queue = lanes->wait[PP_WAIT_RUN_QUEUE];
	*ret_lanes = TAKE(lanes);
	return 0;
}

uint64_t lanes_refused(const struct lanes *lanes)
{
	return lanes->refused;
}

/* ---- threads ---- */

/* Sends the thread's names to the sink when they have changed. */
static int tell_names(struct lanes *lanes, struct thread *thread)
{
	const char *process_name = "", *name = "";
	unsigned int process_hash, name_hash;
	uint64_t both;

	lanes->names.find(lanes->names.context, thread->thread.id, thread->thread.tid,
			  &process_name, &name);
	HASH_JEN(process_name, strlen(process_name), process_hash);
	HASH_JEN(name, strlen(name), name_hash);
	both = (uint64_t)process_hash << 32 | name_hash;
	if (both == thread->name_hash)
		return 0;
	thread->name_hash = both;
	return lanes->sink.thread(lanes->sink.context, &thread->thread, process_name, name);
}

static int thread_get(struct lanes *lanes, const struct pp_timeline_record *record,
		      struct thread **ret_thread)
{
	struct pp_thread_key key = {.id = record->id, .tid = record->tid};
	struct thread *thread;

	_Static_assert(offsetof(struct trace_thread, tid) == sizeof(struct pp_process_id), "a key");
	HASH_FIND(hh, lanes->thread, &key, offsetof(struct trace_thread, number), thread);
	if (!thread) {
		if (HASH_COUNT(lanes->thread) >= LANES_MAX_THREADS)
			return -ENOSPC;
		thread = calloc(1, sizeof(*thread));
		if (!thread)
			return -ENOMEM;
		thread->thread = (struct trace_thread){
			.id = record->id, .tid = record->tid, .number = lanes->numbers++};
		HASH_ADD(hh, lanes->thread, thread, offsetof(struct trace_thread, number), thread);
	}
	*ret_thread = thread;
	return thread->name_hash ? 0 : tell_names(lanes, thread);
}

/* ---- spans ---- */

static int span_close(struct lanes *lanes, struct span *span)
{
	if (!span->is_open)
		return 0;
	span->is_open = false;
	return lanes->sink.slice(lanes->sink.context, &span->slice);
}

/* Extends the open span when the piece continues it, else opens another one. */
static int span_add(struct lanes *lanes, struct span *span, const struct trace_slice *piece)
{
	int err;

	if (piece->start_ns >= piece->end_ns)
		return 0;
	if (span->is_open && span->slice.name == piece->name &&
	    span->slice.end_ns == piece->start_ns) {
		span->slice.end_ns = piece->end_ns;
		if (!span->slice.holder_tid)
			span->slice.holder_tid = piece->holder_tid;
		return 0;
	}
	err = span_close(lanes, span);
	span->slice = *piece;
	span->is_open = true;
	return err;
}

static struct trace_slice slice_of(const struct thread *thread, enum trace_lane lane,
				   uint64_t start_ns, uint64_t end_ns, uint32_t name)
{
	return (struct trace_slice){.thread = &thread->thread,
				    .lane = lane,
				    .start_ns = start_ns,
				    .end_ns = end_ns,
				    .name = name,
				    .cpu = TRACE_NO_CPU};
}

static int put_slice(struct lanes *lanes, const struct trace_slice *slice)
{
	if (slice->start_ns >= slice->end_ns)
		return 0;
	return lanes->sink.slice(lanes->sink.context, slice);
}

/* ---- samples ---- */

static enum gil gil_of(uint8_t flags)
{
	if (!(flags & PP_TIMELINE_GIL))
		return GIL_UNKNOWN;
	return flags & PP_TIMELINE_GIL_HELD ? GIL_HELD : GIL_OTHERS;
}

static int mark_room(struct thread *thread)
{
	uint32_t capacity = thread->mark_capacity ? thread->mark_capacity * 2 : FIRST_MARKS;
	struct mark *grown;

	if (thread->mark_count < thread->mark_capacity)
		return 0;
	if (capacity > LANES_MAX_MARKS) {
		thread->mark_count = LANES_MAX_MARKS / 2;
		for (uint32_t i = 0; i < thread->mark_count; i++)
			thread->mark[i] = thread->mark[2 * i + 1];
		return 0;
	}
	grown = realloc(thread->mark, capacity * sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	thread->mark = grown;
	thread->mark_capacity = capacity;
	return 0;
}

static int add_sample(struct lanes *lanes, struct thread *thread, const struct lanes_event *event)
{
	const struct pp_timeline_record *record = event->record;
	struct trace_slice instant = slice_of(thread, TRACE_FUNCTION, record->leave_ns,
					      record->leave_ns, event->function);
	int err = mark_room(thread);

	if (err)
		return err;
	thread->mark[thread->mark_count++] = (struct mark){.ns = record->leave_ns,
							   .function = event->function,
							   .gil = (uint8_t)gil_of(record->flags)};
	if (!event->function)
		return 0;
	instant.stack = event->stack;
	instant.cpu = record->cpu;
	return lanes->sink.instant(lanes->sink.context, &instant);
}

/* Keeps the samples inside the run: others belong to a run whose record was lost. */
static void keep_marks(struct thread *thread, const struct pp_timeline_record *record)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < thread->mark_count; i++)
		if (thread->mark[i].ns > record->run_ns && thread->mark[i].ns < record->leave_ns &&
		    (!kept || thread->mark[i].ns >= thread->mark[kept - 1].ns))
			thread->mark[kept++] = thread->mark[i];
	thread->mark_count = kept;
}

/* ---- the lane of functions ---- */

static int add_function(struct lanes *lanes, struct thread *thread, uint64_t start_ns,
			uint64_t end_ns, uint32_t function)
{
	struct trace_slice piece = slice_of(thread, TRACE_FUNCTION, start_ns, end_ns, function);

	return function ? span_add(lanes, &thread->function, &piece) : 0;
}

/* Adds the functions of a run: until each sample, and until the switch-out, the thread is taken to
 * be in the function seen at that moment. */
static int add_functions(struct lanes *lanes, struct thread *thread,
			 const struct lanes_event *event)
{
	const struct pp_timeline_record *record = event->record;
	uint64_t from_ns = record->run_ns;
	uint32_t seen = event->function;
	int err = 0;

	for (uint32_t i = 0; i < thread->mark_count && !err; i++) {
		seen = thread->mark[i].function;
		err = add_function(lanes, thread, from_ns, thread->mark[i].ns, seen);
		from_ns = thread->mark[i].ns;
	}
	if (!err)
		err = add_function(lanes, thread, from_ns, record->leave_ns,
				   event->function ? event->function : seen);
	if (!err)
		err = add_function(lanes, thread, record->leave_ns, record->back_ns,
				   event->function);
	return err;
}

/* ---- the lane of the CPU ---- */

static int add_cpu(struct lanes *lanes, struct thread *thread, const struct lanes_event *event)
{
	const struct pp_timeline_record *record = event->record;
	struct trace_slice run =
		slice_of(thread, TRACE_CPU, record->run_ns, record->leave_ns, lanes->on_cpu);
	struct trace_slice wait = slice_of(thread, TRACE_CPU, record->leave_ns, record->woken_ns,
					   lanes->wait[record->wait]);
	struct trace_slice queue =
		slice_of(thread, TRACE_CPU, record->woken_ns, record->back_ns, lanes->queue);
	int err;

	run.cpu = record->cpu;
	wait.stack = event->stack;
	wait.holder_tid = record->holder_tid;
	if (record->wait == PP_WAIT_RUN_QUEUE)
		queue.stack = event->stack;
	err = put_slice(lanes, &run);
	if (!err)
		err = put_slice(lanes, &wait);
	return err ? err : put_slice(lanes, &queue);
}

/* ---- the lane of the GIL ---- */

static int add_gil(struct lanes *lanes, struct thread *thread, uint64_t start_ns, uint64_t end_ns,
		   uint32_t name, uint32_t holder_tid)
{
	struct trace_slice piece = slice_of(thread, TRACE_GIL, start_ns, end_ns, name);

	piece.holder_tid = holder_tid;
	return span_add(lanes, &thread->gil, &piece);
}

static bool is_retry(const struct thread *thread, const struct pp_timeline_record *record)
{
	return thread->back_ns == record->run_ns && thread->wait == PP_WAIT_GIL &&
	       record->wait == PP_WAIT_GIL && !(record->flags & PP_TIMELINE_GIL_HELD) &&
	       record->leave_ns - record->run_ns < GIL_RETRY_NS;
}

/* Returns the GIL's state when the run began.  While a thread is off the CPU nothing changes; after
 * a wait for the GIL it holds the GIL; after another wait it may take the GIL at once. */
static enum gil gil_at_start(const struct thread *thread, const struct pp_timeline_record *record)
{
	if (!thread->back_ns || thread->back_ns != record->run_ns ||
	    !(thread->flags & PP_TIMELINE_GIL))
		return GIL_UNKNOWN;
	if (thread->flags & PP_TIMELINE_GIL_HELD || thread->wait == PP_WAIT_GIL)
		return GIL_HELD;
	return thread->wait == PP_WAIT_RUN_QUEUE ? GIL_OTHERS : GIL_UNKNOWN;
}

/* Returns the GIL's state before the switch-out.  A thread that waits for the GIL has released it
 * just now, or did not hold it. */
static enum gil gil_at_end(const struct pp_timeline_record *record)
{
	enum gil gil = gil_of(record->flags);

	return gil == GIL_OTHERS && record->wait != PP_WAIT_RUN_QUEUE ? GIL_UNKNOWN : gil;
}

/* Returns the GIL's state in a run between two waits without a sample: it ran Python when it was
 * the GIL's last holder, or when its place in the code has changed. */
static enum gil gil_of_run(const struct thread *thread, const struct lanes_event *event)
{
	if (event->record->flags & PP_TIMELINE_GIL_LAST)
		return GIL_HELD;
	if (event->record->flags & PP_TIMELINE_GIL && event->is_python && thread->stack &&
	    event->stack != thread->stack)
		return GIL_HELD;
	return GIL_OTHERS;
}

/* Adds the GIL's state between two moments: what both say; where they differ, each has half; where
 * one is unknown, the other. */
static int add_hold(struct lanes *lanes, struct thread *thread, const struct mark *from,
		    const struct mark *to)
{
	uint8_t first = from->gil == GIL_UNKNOWN ? to->gil : from->gil;
	uint8_t last = to->gil == GIL_UNKNOWN ? from->gil : to->gil;
	uint64_t start_ns = from->ns, end_ns = to->ns;

	if (first != GIL_HELD && last != GIL_HELD)
		return 0;
	if (first != last && first == GIL_HELD)
		end_ns = start_ns + (end_ns - start_ns) / 2;
	else if (first != last)
		start_ns += (end_ns - start_ns) / 2;
	return add_gil(lanes, thread, start_ns, end_ns, lanes->holding, 0);
}

static int add_holds(struct lanes *lanes, struct thread *thread, const struct lanes_event *event)
{
	const struct pp_timeline_record *record = event->record;
	struct mark from = {.ns = record->run_ns, .gil = (uint8_t)gil_at_start(thread, record)};
	struct mark end = {.ns = record->leave_ns, .gil = (uint8_t)gil_at_end(record)};
	bool is_known = from.gil != GIL_UNKNOWN || end.gil != GIL_UNKNOWN;
	int err = 0;

	for (uint32_t i = 0; i < thread->mark_count && !err; i++) {
		if (thread->mark[i].gil == GIL_UNKNOWN)
			continue;
		is_known = true;
		err = add_hold(lanes, thread, &from, &thread->mark[i]);
		from = thread->mark[i];
	}
	if (!is_known)
		end.gil = (uint8_t)gil_of_run(thread, event);
	return err ? err : add_hold(lanes, thread, &from, &end);
}

static int add_gil_lane(struct lanes *lanes, struct thread *thread, const struct lanes_event *event)
{
	const struct pp_timeline_record *record = event->record;
	int err;

	if (is_retry(thread, record))
		err = add_gil(lanes, thread, record->run_ns, record->leave_ns, lanes->waiting,
			      record->holder_tid);
	else
		err = add_holds(lanes, thread, event);
	if (err)
		return err;
	if (record->wait == PP_WAIT_GIL)
		return add_gil(lanes, thread, record->leave_ns, record->back_ns, lanes->waiting,
			       record->holder_tid);
	if (record->flags & PP_TIMELINE_GIL_HELD)
		return add_gil(lanes, thread, record->leave_ns, record->back_ns, lanes->holding, 0);
	return 0;
}

/* ---- all ---- */

static int add_switch(struct lanes *lanes, struct thread *thread, const struct lanes_event *event)
{
	int err;

	keep_marks(thread, event->record);
	err = add_cpu(lanes, thread, event);
	if (!err)
		err = add_functions(lanes, thread, event);
	if (!err)
		err = add_gil_lane(lanes, thread, event);
	thread->mark_count = 0;
	thread->back_ns = event->record->back_ns;
	thread->wait = event->record->wait;
	thread->flags = event->record->flags;
	thread->stack = event->stack;
	return err;
}

static int thread_end(struct lanes *lanes, struct thread *thread)
{
	int err = tell_names(lanes, thread);

	if (!err)
		err = span_close(lanes, &thread->function);
	return err ? err : span_close(lanes, &thread->gil);
}

int lanes_add(struct lanes *lanes, const struct lanes_event *event)
{
	struct thread *thread;
	int err = thread_get(lanes, event->record, &thread);

	if (err == -ENOSPC) {
		lanes->refused++;
		return 0;
	}
	if (err)
		return err;
	if (event->record->record.type == PP_TIMELINE_SAMPLE)
		return add_sample(lanes, thread, event);
	err = add_switch(lanes, thread, event);
	if (err || event->record->record.type != PP_TIMELINE_LAST)
		return err;
	err = thread_end(lanes, thread);
	thread_free(lanes, thread);
	return err;
}

int lanes_end(struct lanes *lanes)
{
	struct thread *thread, *next;
	int err = 0;

	HASH_ITER (hh, lanes->thread, thread, next)
		if (!err)
			err = thread_end(lanes, thread);
	return err;
}
