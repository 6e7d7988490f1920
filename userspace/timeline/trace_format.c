/* SPDX-License-Identifier: BSD-2-Clause */
#include "timeline/trace_format.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "base/utf8.h"

#define SEQUENCE 1U
#define NS_PER_US 1000U

enum { TRACE_PACKET = 1 };
enum { TEXT_ID = 1, TEXT_BYTES = 2 };

int trace_text_clean(struct trace_text *text, const char *bytes, size_t size)
{
	const size_t wanted = size * UTF8_CLEAN_MAX_GROWTH + 1;

	if (text->capacity < wanted) {
		char *grown = realloc(text->text, wanted);

		if (!grown)
			return -ENOMEM;
		text->text = grown;
		text->capacity = wanted;
	}
	text->size = utf8_clean(bytes, size, text->text);
	text->text[text->size] = '\0';
	return 0;
}

void trace_text_release(struct trace_text *text)
{
	free(text->text);
	*text = (struct trace_text){0};
}

/* ---- Perfetto ---- */

void perfetto_open_packet(struct proto_writer *proto, unsigned int flags)
{
	proto_open(proto, TRACE_PACKET);
	proto_uint(proto, PACKET_SEQUENCE_ID, SEQUENCE);
	proto_uint(proto, PACKET_SEQUENCE_FLAGS, flags);
}

void perfetto_put_text(struct proto_writer *proto, enum perfetto_interned table, uint64_t id,
		       const char *text, size_t size)
{
	proto_open(proto, table);
	proto_uint(proto, TEXT_ID, id);
	proto_bytes(proto, TEXT_BYTES, text, size);
	proto_close(proto);
}

/* ---- Chrome ---- */

void chrome_open_event(struct json_writer *json, const char *phase, const char *name,
		       const struct chrome_track *track)
{
	json_newline(json);
	json_open(json, '{');
	json_put_string(json, "ph", phase);
	json_put_string(json, "name", name);
	json_put_int(json, "pid", track->pid);
	json_put_int(json, "tid", track->tid);
}

void chrome_put_name(struct json_writer *json, const char *what, const struct chrome_track *track,
		     const char *name)
{
	chrome_open_event(json, "M", what, track);
	json_put_open(json, "args", '{');
	json_put_string(json, "name", name);
	json_close(json, '}');
	json_close(json, '}');
}

void chrome_put_us(struct json_writer *json, const char *key, uint64_t ns)
{
	json_key(json, key);
	fprintf(json->out, "%" PRIu64 ".%03u", ns / NS_PER_US, (unsigned int)(ns % NS_PER_US));
	json->needs_comma = true;
}
