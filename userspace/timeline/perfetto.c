/* SPDX-License-Identifier: BSD-2-Clause */
/* Lanes as tracks of a Perfetto trace: a thread's own track has its functions, and two below it the
 * CPU and the GIL.  Names are interned: written with the first event that has them. */
#include "timeline/lanes.h"

#include <errno.h>
#include <string.h>

#include "base/array.h"
#include "timeline/trace_format.h"

#define FIRST_UUID 16U /* of threads; a process's has bit 63 */

enum { CLOCK_ID_REALTIME = 1, CLOCK_ID_MONOTONIC = 3, CLOCK_ID_BOOTTIME = 6 };
enum { SNAPSHOT_CLOCKS = 1 };
enum { CLOCK_ID = 1, CLOCK_TIMESTAMP = 2 };
enum { DEFAULTS_TIMESTAMP_CLOCK_ID = 58 };
enum {
	TRACK_UUID = 1,
	TRACK_NAME = 2,
	TRACK_PROCESS = 3,
	TRACK_THREAD = 4,
	TRACK_PARENT_UUID = 5,
	TRACK_CHILD_ORDERING = 11,
	TRACK_SIBLING_ORDER_RANK = 12,
};
enum { BY_RANK = 3 };
enum { PROCESS_PID = 1, PROCESS_NAME = 6 };
enum { THREAD_PID = 1, THREAD_TID = 2, THREAD_NAME = 5 };
enum {
	EVENT_CATEGORY = 3,
	EVENT_NOTE = 4,
	EVENT_TYPE = 9,
	EVENT_NAME = 10,
	EVENT_TRACK = 11,
};
enum { SLICE_BEGIN = 1, SLICE_END, INSTANT };
enum { NOTE_NAME = 1, NOTE_UINT = 3, NOTE_TEXT = 17 };
/* Categories: one per lane, and one for instants.  Names of annotations. */
enum { CATEGORY_SAMPLE = TRACE_LANES + 1, CATEGORIES = CATEGORY_SAMPLE };
enum { NOTE_CPU = 1, NOTE_HOLDER, NOTE_STACK, NOTES = NOTE_STACK };

/* The strings that the file contains already. */
struct seen {
	uint8_t *bit;
	size_t bytes;
};

struct perfetto {
	struct trace_file *file;
	const struct intern *strings;
	struct seen names, stacks;
	struct proto_writer proto; /* packets that go to the file as one piece */
	struct trace_text text;
};

static void perfetto_free(void *context)
{
	struct perfetto *perfetto = context;

	if (!perfetto)
		return;
	free(perfetto->names.bit);
	free(perfetto->stacks.bit);
	proto_release(&perfetto->proto);
	trace_text_release(&perfetto->text);
	free(perfetto);
}
static void perfetto_free_owned(struct perfetto **perfetto)
{
	perfetto_free(*perfetto);
}

/* Writes the packets to the file. */
static int put_packets(struct perfetto *perfetto)
{
	int err = perfetto->proto.error;

	if (err) {
		proto_release(&perfetto->proto);
		return err;
	}
	err = trace_file_put(perfetto->file, perfetto->proto.byte, perfetto->proto.size);
	perfetto->proto.size = 0;
	return err;
}

/* ---- strings ---- */

static bool is_seen(const struct seen *seen, uint32_t id)
{
	return id / 8 < seen->bytes && seen->bit[id / 8] >> (id & 7) & 1;
}

static int mark_seen(struct seen *seen, uint32_t id)
{
	if (id / 8 >= seen->bytes && ARRAY_EXTEND(seen->bit, (size_t)id / 8 + 1024, seen->bytes))
		return -ENOMEM;
	seen->bit[id / 8] |= (uint8_t)(1U << (id & 7));
	return 0;
}

static void clean(struct perfetto *perfetto, const char *text, size_t size)
{
	if (trace_text_clean(&perfetto->text, text, size))
		perfetto->proto.error = -ENOMEM;
}

static void put_clean(struct perfetto *perfetto, uint32_t field, const char *text)
{
	clean(perfetto, text, strlen(text));
	proto_bytes(&perfetto->proto, field, perfetto->text.text, perfetto->text.size);
}

/* Interns one of our strings. */
static void put_interned(struct perfetto *perfetto, enum perfetto_interned table, uint32_t id)
{
	size_t size;
	const char *text = intern_get(perfetto->strings, id, &size);

	clean(perfetto, text, size);
	perfetto_put_text(&perfetto->proto, table, (uint64_t)id + 1, perfetto->text.text,
			  perfetto->text.size);
}

/* ---- threads ---- */

static uint64_t track_uuid(const struct trace_thread *thread, enum trace_lane lane)
{
	return FIRST_UUID + (uint64_t)thread->number * TRACE_LANES + lane;
}

static void open_track(struct perfetto *perfetto, uint64_t uuid)
{
	perfetto_open_packet(&perfetto->proto, 0);
	proto_open(&perfetto->proto, PACKET_TRACK_DESCRIPTOR);
	proto_uint(&perfetto->proto, TRACK_UUID, uuid);
}

static void close_track(struct perfetto *perfetto)
{
	proto_close(&perfetto->proto);
	proto_close(&perfetto->proto);
}

static void put_process(struct perfetto *perfetto, const struct trace_thread *thread,
			const char *name)
{
	open_track(perfetto, 1ULL << 63 | thread->id.tgid);
	proto_open(&perfetto->proto, TRACK_PROCESS);
	proto_uint_always(&perfetto->proto, PROCESS_PID, thread->id.tgid);
	put_clean(perfetto, PROCESS_NAME, name);
	proto_close(&perfetto->proto);
	close_track(perfetto);
}

static void put_thread(struct perfetto *perfetto, const struct trace_thread *thread,
		       const char *name)
{
	open_track(perfetto, track_uuid(thread, TRACE_FUNCTION));
	proto_open(&perfetto->proto, TRACK_THREAD);
	proto_uint_always(&perfetto->proto, THREAD_PID, thread->id.tgid);
	proto_uint_always(&perfetto->proto, THREAD_TID, thread->tid);
	put_clean(perfetto, THREAD_NAME, name);
	proto_close(&perfetto->proto);
	proto_uint(&perfetto->proto, TRACK_CHILD_ORDERING, BY_RANK);
	close_track(perfetto);
}

static void put_lane(struct perfetto *perfetto, const struct trace_thread *thread,
		     enum trace_lane lane, const char *name)
{
	open_track(perfetto, track_uuid(thread, lane));
	proto_text(&perfetto->proto, TRACK_NAME, name);
	proto_uint(&perfetto->proto, TRACK_PARENT_UUID, track_uuid(thread, TRACE_FUNCTION));
	proto_uint(&perfetto->proto, TRACK_SIBLING_ORDER_RANK, lane);
	close_track(perfetto);
}

static int perfetto_thread(void *context, const struct trace_thread *thread,
			   const char *process_name, const char *thread_name)
{
	struct perfetto *perfetto = context;

	put_process(perfetto, thread, process_name);
	put_thread(perfetto, thread, thread_name);
	put_lane(perfetto, thread, TRACE_CPU, "CPU");
	put_lane(perfetto, thread, TRACE_GIL, "GIL");
	return put_packets(perfetto);
}

/* ---- events ---- */

static void put_note(struct perfetto *perfetto, uint64_t name, uint32_t field, uint64_t value)
{
	proto_open(&perfetto->proto, EVENT_NOTE);
	proto_uint(&perfetto->proto, NOTE_NAME, name);
	proto_uint_always(&perfetto->proto, field, value);
	proto_close(&perfetto->proto);
}

static void put_notes(struct perfetto *perfetto, const struct trace_slice *slice)
{
	if (slice->cpu != TRACE_NO_CPU)
		put_note(perfetto, NOTE_CPU, NOTE_UINT, slice->cpu);
	if (slice->holder_tid)
		put_note(perfetto, NOTE_HOLDER, NOTE_UINT, slice->holder_tid);
	if (slice->stack)
		put_note(perfetto, NOTE_STACK, NOTE_TEXT, (uint64_t)slice->stack + 1);
}

/* Opens the packet of an event and the event in it. */
static void open_event(struct perfetto *perfetto, const struct trace_slice *slice,
		       unsigned int type, uint64_t ns)
{
	perfetto_open_packet(&perfetto->proto, PERFETTO_NEEDED);
	proto_uint_always(&perfetto->proto, PACKET_TIMESTAMP, ns);
	proto_open(&perfetto->proto, PACKET_TRACK_EVENT);
	proto_uint(&perfetto->proto, EVENT_TYPE, type);
	proto_uint(&perfetto->proto, EVENT_TRACK, track_uuid(slice->thread, slice->lane));
}

/* Writes a slice's begin and end together: a slice is whole or not in the file. */
static int put_event(struct perfetto *perfetto, const struct trace_slice *slice, unsigned int type,
		     uint64_t category)
{
	const bool has_name = !is_seen(&perfetto->names, slice->name);
	const bool has_stack = slice->stack && !is_seen(&perfetto->stacks, slice->stack);
	struct proto_writer *proto = &perfetto->proto;
	int err;

	open_event(perfetto, slice, type, slice->start_ns);
	proto_uint(proto, EVENT_CATEGORY, category);
	proto_uint(proto, EVENT_NAME, (uint64_t)slice->name + 1);
	put_notes(perfetto, slice);
	proto_close(proto);
	if (has_name || has_stack) {
		proto_open(proto, PACKET_INTERNED_DATA);
		if (has_name)
			put_interned(perfetto, INTERNED_EVENT_NAMES, slice->name);
		if (has_stack)
			put_interned(perfetto, INTERNED_NOTE_TEXTS, slice->stack);
		proto_close(proto);
	}
	proto_close(proto);
	if (type == SLICE_BEGIN) {
		open_event(perfetto, slice, SLICE_END, slice->end_ns);
		proto_close(proto);
		proto_close(proto);
	}
	err = put_packets(perfetto);
	if (!err && has_name)
		err = mark_seen(&perfetto->names, slice->name);
	if (!err && has_stack)
		err = mark_seen(&perfetto->stacks, slice->stack);
	return err;
}

static int perfetto_slice(void *context, const struct trace_slice *slice)
{
	return put_event(context, slice, SLICE_BEGIN, (uint64_t)slice->lane + 1);
}

static int perfetto_instant(void *context, const struct trace_slice *slice)
{
	return put_event(context, slice, INSTANT, CATEGORY_SAMPLE);
}

static int perfetto_end(void *context)
{
	(void)context;
	return 0;
}

/* ---- the first packets ---- */

/* Writes how the clocks relate, before any packet with a CLOCK_MONOTONIC time. */
static void put_clocks(struct perfetto *perfetto, const struct trace_start *start)
{
	static const uint32_t id[] = {CLOCK_ID_BOOTTIME, CLOCK_ID_MONOTONIC, CLOCK_ID_REALTIME};
	const uint64_t ns[] = {start->boottime_ns, start->monotonic_ns, start->wall_ns};
	struct proto_writer *proto = &perfetto->proto;

	perfetto_open_packet(proto, 0);
	proto_open(proto, PACKET_CLOCK_SNAPSHOT);
	for (unsigned int i = 0; i < ARRAY_SIZE(id); i++) {
		proto_open(proto, SNAPSHOT_CLOCKS);
		proto_uint(proto, CLOCK_ID, id[i]);
		proto_uint_always(proto, CLOCK_TIMESTAMP, ns[i]);
		proto_close(proto);
	}
	proto_close(proto);
	proto_close(proto);
}

static void put_first(struct perfetto *perfetto, const struct trace_start *start)
{
	static const char *const category[CATEGORIES] = {"function", "cpu", "gil", "sample"};
	static const char *const note[NOTES] = {"cpu", "holder", "stack"};
	struct proto_writer *proto = &perfetto->proto;

	perfetto_open_packet(proto, PERFETTO_CLEARED);
	proto_uint(proto, PACKET_TIMESTAMP, start->monotonic_ns);
	proto_open(proto, PACKET_INTERNED_DATA);
	for (unsigned int i = 0; i < CATEGORIES; i++)
		perfetto_put_text(proto, INTERNED_CATEGORIES, i + 1, category[i],
				  strlen(category[i]));
	for (unsigned int i = 0; i < NOTES; i++)
		perfetto_put_text(proto, INTERNED_NOTE_NAMES, i + 1, note[i], strlen(note[i]));
	proto_close(proto);
	proto_open(proto, PACKET_DEFAULTS);
	proto_uint(proto, DEFAULTS_TIMESTAMP_CLOCK_ID, CLOCK_ID_MONOTONIC);
	proto_close(proto);
	proto_close(proto);
}

int perfetto_sink_new(struct trace_file *file, const struct intern *strings,
		      const struct trace_start *start, struct trace_sink *ret_sink)
{
	CLEANUP(perfetto_free_owned) struct perfetto *perfetto = calloc(1, sizeof(*perfetto));
	int err;

	if (!perfetto)
		return -ENOMEM;
	perfetto->file = file;
	perfetto->strings = strings;
	put_clocks(perfetto, start);
	put_first(perfetto, start);
	err = put_packets(perfetto);
	if (err)
		return err;
	*ret_sink = (struct trace_sink){.context = TAKE(perfetto),
					.thread = perfetto_thread,
					.slice = perfetto_slice,
					.instant = perfetto_instant,
					.end = perfetto_end,
					.free = perfetto_free};
	return 0;
}
