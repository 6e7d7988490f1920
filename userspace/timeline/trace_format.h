/* SPDX-License-Identifier: BSD-2-Clause */
/* Writes what every trace consists of, in the two formats that viewers read: packets of Perfetto
 * and events of Chrome.  What happens in the packets and events is the callers' part: lanes of
 * threads (timeline/), or a profile's samples (export/).  Sources: google/perfetto,
 * protos/perfetto/trace/: trace_packet.proto, the .proto files of track_event/,
 * profiling/profile_packet.proto (PerfSample), profiling/profile_common.proto (InternedData's
 * tables), ps/process_tree.proto; "Trace Event Format" of the Chromium project. */
#ifndef TIMELINE_TRACE_FORMAT_H
#define TIMELINE_TRACE_FORMAT_H

#include "base/json_writer.h"
#include "base/proto.h"

/* Room for a text that has been cleaned: what is in a trace is UTF-8.  Zeroed it is empty; release
 * with trace_text_release(). */
struct trace_text {
	char *text; /* NUL-terminated */
	size_t size, capacity;
};
/* Cleans a text (base/utf8.h), which replaces the one before.  Returns 0 or -ENOMEM. */
int trace_text_clean(struct trace_text *text, const char *bytes, size_t size);
void trace_text_release(struct trace_text *text);

/* ---- Perfetto: protobuf, packets of one sequence ---- */

enum perfetto_packet_field {
	PACKET_PROCESS_TREE = 2,
	PACKET_CLOCK_SNAPSHOT = 6,
	PACKET_TIMESTAMP = 8,
	PACKET_SEQUENCE_ID = 10,
	PACKET_TRACK_EVENT = 11,
	PACKET_INTERNED_DATA = 12,
	PACKET_SEQUENCE_FLAGS = 13,
	PACKET_DEFAULTS = 59,
	PACKET_TRACK_DESCRIPTOR = 60,
	PACKET_PERF_SAMPLE = 66,
};

/* CLEARED: the interned data begin anew.  NEEDED: the packet refers to them. */
enum perfetto_sequence { PERFETTO_CLEARED = 1, PERFETTO_NEEDED = 2 };

/* Tables of InternedData.  Numbers of their entries count from 1. */
enum perfetto_interned {
	INTERNED_CATEGORIES = 1,
	INTERNED_EVENT_NAMES = 2,
	INTERNED_NOTE_NAMES = 3, /* of debug annotations */
	INTERNED_FUNCTION_NAMES = 5,
	INTERNED_FRAMES = 6,
	INTERNED_CALLSTACKS = 7,
	INTERNED_MAPPING_PATHS = 17,
	INTERNED_SOURCE_PATHS = 18,
	INTERNED_MAPPINGS = 19,
	INTERNED_NOTE_TEXTS = 29,
};

/* Opens a packet, which proto_close() closes.  flags: of enum perfetto_sequence; 0: none. */
void perfetto_open_packet(struct proto_writer *proto, unsigned int flags);
/* Writes an entry of a table of texts. */
void perfetto_put_text(struct proto_writer *proto, enum perfetto_interned table, uint64_t id,
		       const char *text, size_t size);

/* ---- Chrome: JSON, a line an event ---- */

struct chrome_track {
	int64_t pid, tid;
};

/* Opens an event, which json_close('}') closes.  phase: "X": a slice, with its duration; "i": an
 * instant; "M": metadata. */
void chrome_open_event(struct json_writer *json, const char *phase, const char *name,
		       const struct chrome_track *track);
/* Names a process or a thread.  what: "process_name" or "thread_name". */
void chrome_put_name(struct json_writer *json, const char *what, const struct chrome_track *track,
		     const char *name);
/* Writes a number of microseconds with three digits after the point. */
void chrome_put_us(struct json_writer *json, const char *key, uint64_t ns);

#endif
