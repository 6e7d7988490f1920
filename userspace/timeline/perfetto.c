/* SPDX-License-Identifier: BSD-2-Clause */
/* Perfetto's protobuf format: packets of one sequence, names interned in it. */
#include "timeline/trace_sink.h"

#include <errno.h>
#include <string.h>

#include "base/utf8.h"
#include "perfetto.pb-c.h"

#define SEQUENCE 1U
#define FIRST_UUID 16U	     /* of threads; a process's has bit 63 */
#define MAX_HEADER_BYTES 11U /* of a packet: a tag, and a length */

enum { CLOCK_ID_REALTIME = 1, CLOCK_ID_MONOTONIC = 3, CLOCK_ID_BOOTTIME = 6 };
enum { STATE_CLEARED = 1, STATE_NEEDED = 2 };
enum { SLICE_BEGIN = 1, SLICE_END, INSTANT };
enum { BY_RANK = 3 };
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
	uint8_t *packet; /* packets that go to the file as one piece */
	size_t packet_size, packet_capacity;
	char *clean[2];
	size_t clean_capacity[2];
};

static void perfetto_free(void *context)
{
	struct perfetto *perfetto = context;

	if (!perfetto)
		return;
	free(perfetto->names.bit);
	free(perfetto->stacks.bit);
	free(perfetto->packet);
	free(perfetto->clean[0]);
	free(perfetto->clean[1]);
	free(perfetto);
}
static void perfetto_free_owned(struct perfetto **perfetto)
{
	perfetto_free(*perfetto);
}

static int reserve(void **memory, size_t *capacity, size_t size)
{
	void *grown;

	if (*capacity >= size)
		return 0;
	grown = realloc(*memory, size * 2);
	if (!grown)
		return -ENOMEM;
	*memory = grown;
	*capacity = size * 2;
	return 0;
}

static size_t put_varint(uint8_t *to, uint64_t value)
{
	size_t size = 0;

	for (; value >= 0x80; value >>= 7)
		to[size++] = (uint8_t)(value | 0x80);
	to[size++] = (uint8_t)value;
	return size;
}

/* Adds one element of Trace.packet after those that wait. */
static int add_packet(struct perfetto *perfetto, Perfetto__TracePacket *packet)
{
	size_t body, at = perfetto->packet_size;
	int err;

	packet->has_trusted_packet_sequence_id = 1;
	packet->trusted_packet_sequence_id = SEQUENCE;
	body = perfetto__trace_packet__get_packed_size(packet);
	err = reserve((void **)&perfetto->packet, &perfetto->packet_capacity,
		      at + body + MAX_HEADER_BYTES);
	if (err)
		return err;
	at += put_varint(perfetto->packet + at, 1 << 3 | 2);
	at += put_varint(perfetto->packet + at, body);
	at += perfetto__trace_packet__pack(packet, perfetto->packet + at);
	perfetto->packet_size = at;
	return 0;
}

/* Writes the packets.  err: the error of adding them. */
static int put_packets(struct perfetto *perfetto, int err)
{
	if (!err)
		err = trace_file_put(perfetto->file, perfetto->packet, perfetto->packet_size);
	perfetto->packet_size = 0;
	return err;
}

/* ---- strings ---- */

static bool is_seen(const struct seen *seen, uint32_t id)
{
	return id / 8 < seen->bytes && seen->bit[id / 8] >> (id & 7) & 1;
}

static int mark_seen(struct seen *seen, uint32_t id)
{
	if (id / 8 >= seen->bytes) {
		size_t bytes = (size_t)id / 8 + 1024;
		uint8_t *grown = realloc(seen->bit, bytes);

		if (!grown)
			return -ENOMEM;
		memset(grown + seen->bytes, 0, bytes - seen->bytes);
		seen->bit = grown;
		seen->bytes = bytes;
	}
	seen->bit[id / 8] |= (uint8_t)(1U << (id & 7));
	return 0;
}

/* Cleans a string, because strings in the file are UTF-8.  `which`: of the two buffers. */
static int clean_text(struct perfetto *perfetto, unsigned int which, const char *text, size_t size,
		      char **ret_clean)
{
	int err = reserve((void **)&perfetto->clean[which], &perfetto->clean_capacity[which],
			  size * UTF8_CLEAN_MAX_GROWTH + 1);

	if (err)
		return err;
	perfetto->clean[which][utf8_clean(text, size, perfetto->clean[which])] = '\0';
	*ret_clean = perfetto->clean[which];
	return 0;
}

/* Interns one of our strings: iid = id + 1. */
static int intern_text(struct perfetto *perfetto, unsigned int which, uint32_t id,
		       Perfetto__InternedText *text)
{
	size_t size;
	const char *string = intern_get(perfetto->strings, id, &size);

	text->has_iid = 1;
	text->iid = (uint64_t)id + 1;
	return clean_text(perfetto, which, string, size, &text->text);
}

/* ---- threads ---- */

static uint64_t track_uuid(const struct trace_thread *thread, enum trace_lane lane)
{
	return FIRST_UUID + (uint64_t)thread->number * TRACE_LANES + lane;
}

static int add_track(struct perfetto *perfetto, Perfetto__TrackDescriptor *track)
{
	Perfetto__TracePacket packet = PERFETTO__TRACE_PACKET__INIT;

	packet.track_descriptor = track;
	return add_packet(perfetto, &packet);
}

static int add_process(struct perfetto *perfetto, const struct trace_thread *thread, char *name)
{
	Perfetto__TrackDescriptor track = PERFETTO__TRACK_DESCRIPTOR__INIT;
	Perfetto__ProcessDescriptor process = PERFETTO__PROCESS_DESCRIPTOR__INIT;

	process.has_pid = 1;
	process.pid = (int32_t)thread->id.tgid;
	process.process_name = name;
	track.has_uuid = 1;
	track.uuid = 1ULL << 63 | thread->id.tgid;
	track.process = &process;
	return add_track(perfetto, &track);
}

static int add_thread(struct perfetto *perfetto, const struct trace_thread *thread, char *name)
{
	Perfetto__TrackDescriptor track = PERFETTO__TRACK_DESCRIPTOR__INIT;
	Perfetto__ThreadDescriptor descriptor = PERFETTO__THREAD_DESCRIPTOR__INIT;

	descriptor.has_pid = descriptor.has_tid = 1;
	descriptor.pid = (int32_t)thread->id.tgid;
	descriptor.tid = (int32_t)thread->tid;
	descriptor.thread_name = name;
	track.has_uuid = 1;
	track.uuid = track_uuid(thread, TRACE_FUNCTION);
	track.thread = &descriptor;
	track.has_child_ordering = 1;
	track.child_ordering = BY_RANK;
	return add_track(perfetto, &track);
}

static int add_lane(struct perfetto *perfetto, const struct trace_thread *thread,
		    enum trace_lane lane, const char *name)
{
	Perfetto__TrackDescriptor track = PERFETTO__TRACK_DESCRIPTOR__INIT;

	track.has_uuid = track.has_parent_uuid = track.has_sibling_order_rank = 1;
	track.uuid = track_uuid(thread, lane);
	track.parent_uuid = track_uuid(thread, TRACE_FUNCTION);
	track.sibling_order_rank = (int32_t)lane;
	track.name = (char *)name;
	return add_track(perfetto, &track);
}

static int perfetto_thread(void *context, const struct trace_thread *thread,
			   const char *process_name, const char *thread_name)
{
	struct perfetto *perfetto = context;
	char *process, *name;
	int err = clean_text(perfetto, 0, process_name, strlen(process_name), &process);

	if (!err)
		err = clean_text(perfetto, 1, thread_name, strlen(thread_name), &name);
	if (!err)
		err = add_process(perfetto, thread, process);
	if (!err)
		err = add_thread(perfetto, thread, name);
	if (!err)
		err = add_lane(perfetto, thread, TRACE_CPU, "CPU");
	if (!err)
		err = add_lane(perfetto, thread, TRACE_GIL, "GIL");
	return put_packets(perfetto, err);
}

/* ---- events ---- */

struct notes {
	Perfetto__DebugAnnotation note[NOTES], *pointer[NOTES];
	size_t count;
};

static Perfetto__DebugAnnotation *add_note(struct notes *notes, uint64_t name)
{
	Perfetto__DebugAnnotation *note = &notes->note[notes->count];

	perfetto__debug_annotation__init(note);
	note->has_name_iid = 1;
	note->name_iid = name;
	notes->pointer[notes->count++] = note;
	return note;
}

static void add_number(struct notes *notes, uint64_t name, uint64_t value)
{
	Perfetto__DebugAnnotation *note = add_note(notes, name);

	note->has_uint_value = 1;
	note->uint_value = value;
}

static void fill_notes(struct notes *notes, const struct trace_slice *slice)
{
	notes->count = 0;
	if (slice->cpu != TRACE_NO_CPU)
		add_number(notes, NOTE_CPU, slice->cpu);
	if (slice->holder_tid)
		add_number(notes, NOTE_HOLDER, slice->holder_tid);
	if (slice->stack) {
		Perfetto__DebugAnnotation *note = add_note(notes, NOTE_STACK);

		note->has_string_value_iid = 1;
		note->string_value_iid = (uint64_t)slice->stack + 1;
	}
}

/* Strings that no event before this one used. */
struct fresh {
	Perfetto__InternedData data;
	Perfetto__InternedText name, stack, *name_pointer, *stack_pointer;
	bool has_name, has_stack;
};

static int fill_fresh(struct perfetto *perfetto, const struct trace_slice *slice,
		      struct fresh *fresh)
{
	int err = 0;

	fresh->has_name = !is_seen(&perfetto->names, slice->name);
	fresh->has_stack = slice->stack && !is_seen(&perfetto->stacks, slice->stack);
	perfetto__interned_data__init(&fresh->data);
	if (fresh->has_name) {
		perfetto__interned_text__init(&fresh->name);
		err = intern_text(perfetto, 0, slice->name, &fresh->name);
		fresh->name_pointer = &fresh->name;
		fresh->data.n_event_names = 1;
		fresh->data.event_names = &fresh->name_pointer;
	}
	if (!err && fresh->has_stack) {
		perfetto__interned_text__init(&fresh->stack);
		err = intern_text(perfetto, 1, slice->stack, &fresh->stack);
		fresh->stack_pointer = &fresh->stack;
		fresh->data.n_debug_annotation_string_values = 1;
		fresh->data.debug_annotation_string_values = &fresh->stack_pointer;
	}
	return err;
}

static int add_end(struct perfetto *perfetto, const struct trace_slice *slice)
{
	Perfetto__TracePacket packet = PERFETTO__TRACE_PACKET__INIT;
	Perfetto__TrackEvent event = PERFETTO__TRACK_EVENT__INIT;

	event.has_type = event.has_track_uuid = 1;
	event.type = SLICE_END;
	event.track_uuid = track_uuid(slice->thread, slice->lane);
	packet.has_timestamp = packet.has_sequence_flags = 1;
	packet.timestamp = slice->end_ns;
	packet.sequence_flags = STATE_NEEDED;
	packet.track_event = &event;
	return add_packet(perfetto, &packet);
}

/* Writes a slice's begin and end together: a slice is whole or not in the file. */
static int put_event(struct perfetto *perfetto, const struct trace_slice *slice, int type,
		     uint64_t category)
{
	Perfetto__TracePacket packet = PERFETTO__TRACE_PACKET__INIT;
	Perfetto__TrackEvent event = PERFETTO__TRACK_EVENT__INIT;
	struct notes notes;
	struct fresh fresh;
	int err = fill_fresh(perfetto, slice, &fresh);

	if (err)
		return err;
	fill_notes(&notes, slice);
	event.has_type = event.has_track_uuid = event.has_name_iid = 1;
	event.type = type;
	event.track_uuid = track_uuid(slice->thread, slice->lane);
	event.name_iid = (uint64_t)slice->name + 1;
	event.n_category_iids = 1;
	event.category_iids = &category;
	event.n_debug_annotations = notes.count;
	event.debug_annotations = notes.pointer;
	packet.has_timestamp = packet.has_sequence_flags = 1;
	packet.timestamp = slice->start_ns;
	packet.sequence_flags = STATE_NEEDED;
	packet.track_event = &event;
	if (fresh.has_name || fresh.has_stack)
		packet.interned_data = &fresh.data;
	err = add_packet(perfetto, &packet);
	if (!err && type == SLICE_BEGIN)
		err = add_end(perfetto, slice);
	err = put_packets(perfetto, err);
	if (!err && fresh.has_name)
		err = mark_seen(&perfetto->names, slice->name);
	if (!err && fresh.has_stack)
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

/* ---- the first packet ---- */

static int add_first(struct perfetto *perfetto, const struct trace_start *start)
{
	static const char *const category[CATEGORIES] = {"function", "cpu", "gil", "sample"};
	static const char *const note[NOTES] = {"cpu", "holder", "stack"};
	Perfetto__TracePacket packet = PERFETTO__TRACE_PACKET__INIT;
	Perfetto__TracePacketDefaults defaults = PERFETTO__TRACE_PACKET_DEFAULTS__INIT;
	Perfetto__InternedData data = PERFETTO__INTERNED_DATA__INIT;
	Perfetto__InternedText text[CATEGORIES + NOTES], *pointer[CATEGORIES + NOTES];

	for (unsigned int i = 0; i < CATEGORIES + NOTES; i++) {
		perfetto__interned_text__init(&text[i]);
		text[i].has_iid = 1;
		text[i].iid = i < CATEGORIES ? i + 1 : i - CATEGORIES + 1;
		text[i].text = (char *)(i < CATEGORIES ? category[i] : note[i - CATEGORIES]);
		pointer[i] = &text[i];
	}
	data.n_event_categories = CATEGORIES;
	data.event_categories = pointer;
	data.n_debug_annotation_names = NOTES;
	data.debug_annotation_names = pointer + CATEGORIES;
	defaults.has_timestamp_clock_id = 1;
	defaults.timestamp_clock_id = CLOCK_ID_MONOTONIC;
	packet.interned_data = &data;
	packet.trace_packet_defaults = &defaults;
	packet.has_sequence_flags = packet.has_timestamp = 1;
	packet.timestamp = start->monotonic_ns;
	packet.sequence_flags = STATE_CLEARED;
	return add_packet(perfetto, &packet);
}

/* Writes how the clocks relate, before any packet with a CLOCK_MONOTONIC time. */
static int add_clocks(struct perfetto *perfetto, const struct trace_start *start)
{
	static const uint32_t id[] = {CLOCK_ID_BOOTTIME, CLOCK_ID_MONOTONIC, CLOCK_ID_REALTIME};
	const uint64_t ns[] = {start->boottime_ns, start->monotonic_ns, start->wall_ns};
	Perfetto__TracePacket packet = PERFETTO__TRACE_PACKET__INIT;
	Perfetto__ClockSnapshot snapshot = PERFETTO__CLOCK_SNAPSHOT__INIT;
	Perfetto__Clock clock[ARRAY_SIZE(id)], *pointer[ARRAY_SIZE(id)];

	for (unsigned int i = 0; i < ARRAY_SIZE(id); i++) {
		perfetto__clock__init(&clock[i]);
		clock[i].has_clock_id = clock[i].has_timestamp = 1;
		clock[i].clock_id = id[i];
		clock[i].timestamp = ns[i];
		pointer[i] = &clock[i];
	}
	snapshot.n_clocks = ARRAY_SIZE(id);
	snapshot.clocks = pointer;
	packet.clock_snapshot = &snapshot;
	return add_packet(perfetto, &packet);
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
	err = add_clocks(perfetto, start);
	if (!err)
		err = add_first(perfetto, start);
	err = put_packets(perfetto, err);
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
