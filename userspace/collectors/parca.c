/* SPDX-License-Identifier: BSD-2-Clause */
/* Parca.  Sources: parca-dev/parca, parca/profilestore/v1alpha1/profilestore.proto:
 * WriteRawRequest as JSON, where the labels of samples are dropped: what a series is to show are
 * its own labels; GET /api/profiles/query, report_type REPORT_TYPE_PPROF; parca.dev, parca-
 * agent's PARCA_BEARER_TOKEN. Both measured at real servers (docs/collectors.md). */
#include <curl/curl.h>
#include <errno.h>
#include <gnutls/gnutls.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/json_writer.h"
#include "collectors/collector.h"
#include "collectors/requests.h"
#include "collectors/session.h"

#define PRODUCER "pyprofd"
#define TOKEN_MAX_BYTES 16384U
#define TIME_BYTES 32U

/* ---- sending ---- */

struct parca {
	struct push_writer *writer;
	char *text; /* owned, as FILE has it */
	size_t size;
	FILE *out; /* owned; NULL: no request is open */
	struct json_writer json;
};

static void parca_release(struct parca *parca)
{
	if (parca->out)
		fclose(parca->out);
	free(parca->text);
}

static int begin_request(struct parca *parca)
{
	parca->out = open_memstream(&parca->text, &parca->size);
	if (!parca->out)
		return -ENOMEM;
	parca->json = json_writer_to(parca->out);
	json_open(&parca->json, '{');
	json_put_open(&parca->json, "series", '[');
	return 0;
}

static int end_request(void *context, uint64_t raw_bytes)
{
	struct parca *parca = context;
	int err;

	json_close(&parca->json, ']');
	json_key(&parca->json, "normalized");
	fputs("false", parca->out);
	json_close(&parca->json, '}');
	err = json_finish(&parca->json);
	if (fclose(TAKE(parca->out)) || err)
		return -ENOMEM;
	return push_writer_add(parca->writer, TAKE(parca->text), parca->size, raw_bytes);
}

static void put_labels(struct parca *parca, const struct push_series *series)
{
	struct json_writer *json = &parca->json;
	struct push_labels labels;

	push_labels_of(parca->writer, series, PRODUCER, "node", &labels);
	json_put_open(json, "labels", '{');
	json_put_open(json, "labels", '[');
	for (size_t i = 0; i < labels.count; i++) {
		char value[PUSH_LABEL_VALUE_MAX_BYTES + 1];

		memcpy(value, labels.label[i].value, labels.label[i].value_size);
		value[labels.label[i].value_size] = '\0';
		json_open(json, '{');
		json_put_string(json, "name", labels.label[i].name);
		json_put_string(json, "value", value);
		json_close(json, '}');
	}
	json_close(json, ']');
	json_close(json, '}');
}

static int put_part(void *context, const struct push_series *series,
		    const struct push_packed *packed)
{
	struct parca *parca = context;
	const gnutls_datum_t bytes = {(unsigned char *)packed->bytes, (unsigned int)packed->size};
	gnutls_datum_t coded;
	int err = parca->out ? 0 : begin_request(parca);

	if (err)
		return err;
	if (gnutls_base64_encode2(&bytes, &coded))
		return -ENOMEM;
	json_open(&parca->json, '{');
	put_labels(parca, series);
	json_put_open(&parca->json, "samples", '[');
	json_open(&parca->json, '{');
	json_put_string(&parca->json, "rawProfile", (const char *)coded.data);
	gnutls_free(coded.data);
	json_close(&parca->json, '}');
	json_close(&parca->json, ']');
	json_close(&parca->json, '}');
	return 0;
}

static int encode(struct push_writer *writer, const struct push_division *division)
{
	CLEANUP(parca_release) struct parca parca = {.writer = writer};

	return push_bundle(writer, division, &(struct push_bundle){put_part, end_request, &parca});
}

static int take_environment(struct push_target *target, push_environment *environment, char *why)
{
	const char *token = target->as.token_file ? NULL : environment("PARCA_BEARER_TOKEN");

	if (!token || !*token)
		return 0;
	if (strlen(token) > TOKEN_MAX_BYTES)
		return push_target_complain(target, why, "PARCA_BEARER_TOKEN is too long");
	for (const char *c = token; *c; c++)
		if ((unsigned char)*c <= ' ' || *c == 0x7f)
			return push_target_complain(target, why, "PARCA_BEARER_TOKEN has blanks");
	target->as.token = strdup(token);
	return target->as.token ? 0 : -ENOMEM;
}

/* ---- reading: it merges a range itself ---- */

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

static int fetch(struct session *session)
{
	OWNED_MEM char *selector = NULL, *query = NULL, *url = NULL, *text = NULL;
	char type[SESSION_TYPE_BYTES];
	size_t size;
	int err = session_find_type(session, PRODUCER, ":delta", type);

	if (!err)
		err = fetch_address_selector(session->address, &selector);
	if (!err && asprintf(&query, "%s%s", type, selector) < 0) {
		query = NULL;
		err = -ENOMEM;
	}
	if (!err)
		err = make_url(session, query, &url);
	if (!err)
		err = session_get_member(session, &(struct session_ask){.url = url}, "pprof", &text,
					 &size);
	if (err == -ENOENT)
		return session_complain(session,
					"status 404: is it a Parca?  If so, it has no "
					"profile of %.400s in this range",
					query);
	if (!err)
		err = size ? write_profile(session, text, size)
			   : session_complain_missing(session, query, "");
	if (!err)
		session_tell_limits(session);
	return err;
}

static const char *const headers[] = {"Content-Type: application/json", NULL};
const struct collector collector_parca = {.id = COLLECTOR_PARCA,
					  .header = headers,
					  .encode = encode,
					  .take_environment = take_environment,
					  .answers_json = true,
					  .fetch = fetch};
