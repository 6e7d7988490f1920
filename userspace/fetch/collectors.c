/* SPDX-License-Identifier: BSD-2-Clause */
/* Collectors that merge a range themselves.  Sources: grafana/pyroscope,
 * api/querier/v1/querier.proto, SelectMergeProfileRequest{1: profile_typeID, 2: label_selector,
 * 3: start, 4: end}, by the Connect protocol; parca-dev/parca, GET /api/profiles/query, report_type
 * REPORT_TYPE_PPROF.  Both measured at real servers (docs/collectors.md). */
#include <curl/curl.h>
#include <errno.h>
#include <gnutls/gnutls.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/proto.h"
#include "fetch/session.h"
#include "push/requests.h"

enum { SELECT_TYPE = 1, SELECT_LABELS = 2, SELECT_START = 3, SELECT_END = 4 };
#define MERGE_PATH "/querier.v1.QuerierService/SelectMergeProfile"
#define SAMPLE_TYPE_TAG 0x0a /* of google.v1.Profile: field 1, a message */
#define TYPE_BYTES (FETCH_TYPE_BYTES * 6)
#define PARCA_NAME "pyprofd" /* __name__ of what push/encode_parca.c sends */
#define TIME_BYTES 32U

/* Says what no collector keeps. */
static void tell_limits(const struct session *session)
{
	session_note(session,
		     "a collector gives one profile of the whole range: no windows for +-, no "
		     "ledger, no labels of samples; its series are chosen in the URL");
	if (session->is_default_range)
		session_note(session, "without --since it is the last hour");
}

/* Writes NAME:TYPE:UNIT:PERIOD:UNIT and what follows, or what the URL names. */
static int find_type(struct session *session, const char *name, const char *behind,
		     char ret_type[TYPE_BYTES])
{
	char names[FETCH_TYPE_BYTES * 4];
	int err;

	if (session->address->type) {
		snprintf(ret_type, TYPE_BYTES, "%s", session->address->type);
		return 0;
	}
	err = session_value_names(session, names);
	if (!err)
		snprintf(ret_type, TYPE_BYTES, "%s:%s%s", name, names, behind);
	return err;
}

static int complain_missing(struct session *session, const char *type, const char *selector)
{
	session->is_missing = true;
	return session_complain(session, "has no profile of %s%.400s in this range", type,
				selector);
}

/* ---- Pyroscope ---- */

static int post_select(struct session *session, const char *type, const char *selector,
		       const struct proto_writer *proto)
{
	static const char *const headers[] = {"Content-Type: application/proto",
					      "Connect-Protocol-Version: 1", NULL};
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
		return complain_missing(session, type, selector);
	return err;
}

int fetch_pyroscope(struct session *session)
{
	CLEANUP(proto_release) struct proto_writer proto = {0};
	OWNED_MEM char *selector = NULL;
	uint64_t since_ms, until_ms;
	char type[TYPE_BYTES];
	int err = find_type(session, push_pyroscope_name(session_kind(session)), "", type);

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
		tell_limits(session);
	return err;
}

/* ---- Parca ---- */

static void write_time(uint64_t ms, char text[TIME_BYTES])
{
	const time_t seconds = (time_t)(ms / 1000);
	struct tm parts;

	text[0] = '\0';
	if (gmtime_r(&seconds, &parts))
		strftime(text, TIME_BYTES, "%Y-%m-%dT%H:%M:%SZ", &parts);
}

static void free_curl(char **text)
{
	curl_free(*text);
}

static int make_url(struct session *session, const char *query, char **ret_url)
{
	CLEANUP(free_curl) char *escaped = curl_easy_escape(NULL, query, 0);
	char since[TIME_BYTES], until[TIME_BYTES];
	uint64_t since_ms, until_ms;

	if (!escaped)
		return -ENOMEM;
	session_range(session, &since_ms, &until_ms);
	write_time(since_ms, since);
	write_time(until_ms, until);
	if (asprintf(ret_url,
		     "%s/api/profiles/query?mode=MODE_MERGE&merge.query=%s&merge.start=%s&"
		     "merge.end=%s&report_type=REPORT_TYPE_PPROF",
		     session->address->base, escaped, since, until) < 0) {
		*ret_url = NULL;
		return -ENOMEM;
	}
	return 0;
}

/* Writes the profile that the answer has in base64. */
static int write_profile(struct session *session, const char *text, size_t size)
{
	const gnutls_datum_t coded = {(unsigned char *)text, (unsigned int)size};
	gnutls_datum_t bytes = {0};
	int err;

	if (gnutls_base64_decode2(&coded, &bytes))
		return session_complain(session, "its answer is not base64");
	err = place_begin(session->place, FETCH_PROFILE_NAME);
	if (!err)
		err = place_write(session->place, bytes.data, bytes.size);
	if (!err)
		err = place_end(session->place);
	gnutls_free(bytes.data);
	return err && err != -ENOMEM ? session_complain(session, "cannot write below '%.200s': %s",
							place_path(session->place), strerror(-err))
				     : err;
}

static int take_answer(struct session *session, const char *query, const char *text, size_t size)
{
	json_error_t fault;
	json_t *answer = json_loadb(text, size, 0, &fault);
	const json_t *profile = json_object_get(answer, "pprof");
	int err;

	if (!json_is_object(answer))
		err = session_complain(session, "its answer is not JSON: is it a Parca?");
	else if (!json_string_length(profile))
		err = complain_missing(session, query, "");
	else
		err = write_profile(session, json_string_value(profile),
				    json_string_length(profile));
	json_decref(answer);
	return err;
}

int fetch_parca(struct session *session)
{
	OWNED_MEM char *selector = NULL, *query = NULL, *url = NULL, *text = NULL;
	char type[TYPE_BYTES];
	size_t size;
	int err = find_type(session, PARCA_NAME, ":delta", type);

	if (!err)
		err = fetch_address_selector(session->address, &selector);
	if (!err && asprintf(&query, "%s%s", type, selector) < 0) {
		query = NULL;
		err = -ENOMEM;
	}
	if (!err)
		err = make_url(session, query, &url);
	if (!err)
		err = session_get_text(session, &(struct session_ask){.url = url}, &text, &size);
	if (err == -ENOENT)
		return session_complain(session, "status 404: is it a Parca?  If so, it has no "
						 "profile of %.400s in this range", query);
	if (!err)
		err = take_answer(session, query, text, size);
	if (!err)
		tell_limits(session);
	return err;
}

/* ---- any URL ---- */

int fetch_profile(struct session *session)
{
	const struct session_ask ask = {.url = session->address->base};
	int err;

	if (session->settings->since_ms || session->settings->until_ms)
		return session_complain(session,
					"is one profile: --since and --until need a node "
					"(http://HOST:4041), pyroscope+ or parca+");
	err = session_get_file(session, &ask, FETCH_PROFILE_NAME);
	return err == -ENOENT ? session_complain(session, "status 404: there is no such path")
			      : err;
}
