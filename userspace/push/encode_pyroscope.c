/* SPDX-License-Identifier: BSD-2-Clause */
/* Source: grafana/pyroscope api/push/v1/push.proto.  PushRequest{1: series}, RawProfileSeries{1:
 * labels{1: name, 2: value}, 2: samples}, RawSample{1: raw_profile, 2: ID}. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/kinds.h"
#include "base/proto.h"
#include "profile/profile_data.h"
#include "push/request_writer.h"
#include "push/service_name.h"

enum { REQUEST_SERIES = 1 };
enum { SERIES_LABELS = 1, SERIES_SAMPLES = 2 };
enum { LABEL_NAME = 1, LABEL_VALUE = 2 };
enum { SAMPLE_RAW_PROFILE = 1, SAMPLE_ID = 2 };
#define UUID_CHARS 37U

struct pyroscope {
	struct push_writer *writer;
	const struct profile *profile;
	struct proto_writer proto;
	uint64_t raw_bytes;
};

static void pyroscope_release(struct pyroscope *pyroscope)
{
	proto_release(&pyroscope->proto);
}

const char *push_pyroscope_name(const char *kind)
{
	if (kind_is(kind, PP_PROFILE_CPU))
		return "process_cpu";
	if (kind_is(kind, PP_PROFILE_OFFCPU))
		return "off_cpu";
	return kind;
}

/* Ends a request.  The burst of a tenant holds for all of it. */
static int end_request(struct pyroscope *pyroscope)
{
	struct proto_writer *proto = &pyroscope->proto;
	void *body;
	int err;

	if (proto->error)
		return proto->error;
	if (!proto->size)
		return 0;
	body = malloc(proto->size);
	if (!body)
		return -ENOMEM;
	memcpy(body, proto->byte, proto->size);
	err = push_writer_add(pyroscope->writer, body, proto->size, pyroscope->raw_bytes);
	proto->size = 0;
	pyroscope->raw_bytes = 0;
	return err;
}

static void put_labels(struct pyroscope *pyroscope, const struct push_series *series)
{
	const char *service =
		series->value[0] ? intern_get(pyroscope->profile->strings, series->value[0], NULL)
				 : PUSH_SERVICE_UNKNOWN;
	const char *const own[][2] = {{"__name__",
				       push_pyroscope_name(pyroscope->writer->window->kind)},
				      {"service_name", service},
				      {"hostname", pyroscope->writer->encoding->host}};
	struct proto_writer *proto = &pyroscope->proto;
	struct push_labels labels;

	push_labels_of(pyroscope->profile, &pyroscope->writer->encoding->labels, series, own,
		       ARRAY_SIZE(own), &labels);
	for (size_t i = 0; i < labels.count; i++) {
		proto_open(proto, SERIES_LABELS);
		proto_text(proto, LABEL_NAME, labels.label[i].name);
		proto_bytes(proto, LABEL_VALUE, labels.label[i].value, labels.label[i].value_size);
		proto_close(proto);
	}
}

/* The same profile of the same series has the same id at each try.  labels: of the series, as they
 * are sent: two services that did the same, or two hosts, have equal profiles. */
static void put_id(struct proto_writer *proto, uint64_t labels, const struct push_packed *packed)
{
	XXH128_hash_t hash = XXH3_128bits_withSeed(packed->bytes, packed->size, labels);
	char id[UUID_CHARS];

	snprintf(id, sizeof(id), "%08x-%04x-8%03x-8%03x-%012" PRIx64,
		 (unsigned int)(hash.high64 >> 32), (unsigned int)(hash.high64 >> 16 & 0xffff),
		 (unsigned int)(hash.high64 & 0xfff), (unsigned int)(hash.low64 >> 48 & 0xfff),
		 hash.low64 & 0xffffffffffff);
	proto_text(proto, SAMPLE_ID, id);
}

static int put_part(void *context, const struct push_series *series,
		    const struct push_packed *packed)
{
	struct pyroscope *pyroscope = context;
	struct proto_writer *proto = &pyroscope->proto;
	uint64_t labels = 0;
	size_t begin;

	if (pyroscope->raw_bytes + packed->raw_bytes > PUSH_PART_RAW_MAX_BYTES) {
		int err = end_request(pyroscope);

		if (err)
			return err;
	}
	proto_open(proto, REQUEST_SERIES);
	begin = proto->size;
	put_labels(pyroscope, series);
	if (!proto->error)
		labels = XXH3_64bits(proto->byte + begin, proto->size - begin);
	proto_open(proto, SERIES_SAMPLES);
	proto_bytes(proto, SAMPLE_RAW_PROFILE, packed->bytes, packed->size);
	put_id(proto, labels, packed);
	proto_close(proto);
	proto_close(proto);
	pyroscope->raw_bytes += packed->raw_bytes;
	return proto->error;
}

int push_encode_pyroscope(struct push_writer *writer, struct profile *profile,
			  const struct push_division *division)
{
	CLEANUP(pyroscope_release) struct pyroscope pyroscope = {.writer = writer,
								 .profile = profile};
	int err = 0;

	for (uint32_t i = 0; !err && i < division->count; i++)
		err = push_pack_series(profile, &division->series[i], writer->window, put_part,
				       &pyroscope);
	return err ? err : end_request(&pyroscope);
}
