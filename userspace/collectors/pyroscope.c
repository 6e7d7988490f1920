/* SPDX-License-Identifier: BSD-2-Clause */
/* Pyroscope, by the Connect protocol.  Sources: grafana/pyroscope, api/push/v1/push.proto:
 * PushRequest{1: series}, RawProfileSeries{1: labels{1: name, 2: value}, 2: samples},
 * RawSample{1: raw_profile, 2: ID}; api/querier/v1/querier.proto: SelectMergeProfileRequest{1:
 * profile_typeID, 2: label_selector, 3: start, 4: end}.  Both measured at real servers
 * (docs/collectors.md). */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/kinds.h"
#include "base/proto.h"
#include "collectors/requests.h"
#include "collectors/session.h"

enum { REQUEST_SERIES = 1 };
enum { SERIES_LABELS = 1, SERIES_SAMPLES = 2 };
enum { LABEL_NAME = 1, LABEL_VALUE = 2 };
enum { SAMPLE_RAW_PROFILE = 1, SAMPLE_ID = 2 };
enum { SELECT_TYPE = 1, SELECT_LABELS = 2, SELECT_START = 3, SELECT_END = 4 };
#define MERGE_PATH "/querier.v1.QuerierService/SelectMergeProfile"
#define SAMPLE_TYPE_TAG 0x0a	  /* of google.v1.Profile: field 1, a message */
#define MAX_AGE_MS (50U * 60000U) /* it refuses what is an hour old */
#define UUID_CHARS 37U

/* Returns the name that it knows a kind by. */
static const char *profile_name(const char *kind)
{
	if (kind_is(kind, PP_PROFILE_CPU))
		return "process_cpu";
	if (kind_is(kind, PP_PROFILE_OFFCPU))
		return "off_cpu";
	return kind;
}

/* ---- sending ---- */

struct pyroscope {
	struct push_writer *writer;
	struct proto_writer proto; /* of the request */
};

static void pyroscope_release(struct pyroscope *pyroscope)
{
	proto_release(&pyroscope->proto);
}

/* The burst of a tenant holds for all of a request. */
static int end_request(void *context, uint64_t raw_bytes)
{
	struct pyroscope *pyroscope = context;
	const struct proto_writer done = pyroscope->proto;

	if (done.error)
		return done.error;
	pyroscope->proto = (struct proto_writer){0};
	return push_writer_add(pyroscope->writer, done.byte, done.size, raw_bytes);
}

static void put_labels(struct pyroscope *pyroscope, const struct push_series *series)
{
	struct proto_writer *proto = &pyroscope->proto;
	struct push_labels labels;

	push_labels_of(pyroscope->writer, series, profile_name(pyroscope->writer->window->kind),
		       "hostname", &labels);
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
	return proto->error;
}

static int encode(struct push_writer *writer, const struct push_division *division)
{
	CLEANUP(pyroscope_release) struct pyroscope pyroscope = {.writer = writer};

	return push_bundle(writer, division,
			   &(struct push_bundle){put_part, end_request, &pyroscope});
}

/* ---- reading: it merges a range itself ---- */

static const char *const headers[] = {"Content-Type: application/proto", /* x-protobuf is a 415 */
				      "Connect-Protocol-Version: 1", NULL};

static int post_select(struct session *session, const char *type, const char *selector,
		       const struct proto_writer *proto)
{
	OWNED_MEM char *url = NULL;
	struct session_ask ask = {.header = headers, .body = proto->byte, .size = proto->size};
	int err;

	if (asprintf(&url, "%s" MERGE_PATH, session->address->base) < 0) {
		url = NULL;
		return -ENOMEM;
	}
	ask.url = url;
	err = session_get_file(session, &ask, FETCH_PROFILE_NAME);
	if (err == -ENOENT)
		return session_complain(session, "has no " MERGE_PATH ": is it a Pyroscope?");
	/* Nothing at all is a profile without sample types, which would stand first. */
	if (!err && place_first_byte(session->place, FETCH_PROFILE_NAME) != SAMPLE_TYPE_TAG)
		return session_complain_missing(session, type, selector);
	return err;
}

static int fetch(struct session *session)
{
	CLEANUP(proto_release) struct proto_writer proto = {0};
	OWNED_MEM char *selector = NULL;
	uint64_t since_ms, until_ms;
	char type[SESSION_TYPE_BYTES];
	int err = session_find_type(session, profile_name(session_kind(session)), "", type);

	if (!err)
		err = fetch_address_selector(session->address, &selector);
	if (err)
		return err;
	session_range(session, &since_ms, &until_ms);
	proto_text(&proto, SELECT_TYPE, type);
	proto_text(&proto, SELECT_LABELS, selector);
	proto_uint(&proto, SELECT_START, since_ms);
	proto_uint(&proto, SELECT_END, until_ms);
	if (proto.error)
		return proto.error;
	err = post_select(session, type, selector, &proto);
	if (!err)
		session_tell_limits(session);
	return err;
}

const struct collector collector_pyroscope = {.id = COLLECTOR_PYROSCOPE,
					      .header = headers,
					      .encode = encode,
					      .max_age_ms = MAX_AGE_MS,
					      .fetch = fetch};
