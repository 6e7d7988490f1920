/* SPDX-License-Identifier: BSD-2-Clause */
/* OTLP over HTTP, protobuf: one resource a service, and the chosen labels as attributes of samples.
 * The environment: opentelemetry.io, "OTLP Exporter Configuration": a setting of the signal alone
 * counts before the one of all signals, and its endpoint is the whole URL. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collectors/collector.h"
#include "collectors/requests.h"
#include "export/exports.h"
#include "pprof/gzip.h"
#include "profile/profile_data.h"

#define SERVICE_KEY "service.name"

/* The rows of all series, one after another; a part is a range of them. */
struct otlp_parts {
	struct push_writer *writer;
	const struct push_division *division;
};

static int pack(const void *bytes, size_t size, void **ret_packed, size_t *ret_size)
{
	OWNED(gzip_sink) struct gzip_sink *sink = NULL;
	int err = gzip_sink_new(GZIP_FAST, &sink);

	if (!err)
		err = gzip_sink_put(sink, bytes, size);
	return err ? err : gzip_sink_finish(sink, ret_packed, ret_size);
}

static int build_part(const struct otlp_parts *parts, uint32_t first, uint32_t count,
		      struct profile **ret_part)
{
	OWNED(profile) struct profile *part = NULL;
	int err = 0;

	for (uint32_t i = 0; !err && count && i < parts->division->count; i++) {
		const struct push_series *series = &parts->division->series[i];
		uint32_t taken;

		if (first >= series->row_count) {
			first -= series->row_count;
			continue;
		}
		taken = series->row_count - first < count ? series->row_count - first : count;
		err = push_part_add(parts->writer, series, first, taken, SERVICE_KEY, &part);
		count -= taken;
		first = 0;
	}
	if (!err)
		*ret_part = TAKE(part);
	return err;
}

static int encode_part(const struct otlp_parts *parts, uint32_t first, uint32_t count,
		       char **ret_body, size_t *ret_size)
{
	const struct export_services services = {.service_key = SERVICE_KEY,
						 .host = parts->writer->encoding->host};
	const struct export_facts facts = {.start_wall_ns = parts->writer->window->start_wall_ns,
					   .duration_ns = parts->writer->window->duration_ns};
	OWNED(profile) struct profile *part = NULL;
	OWNED_MEM char *body = NULL;
	size_t size;
	FILE *out;
	int err = build_part(parts, first, count, &part);

	if (err)
		return err;
	out = open_memstream(&body, &size);
	if (!out)
		return -ENOMEM;
	err = export_otlp(part, &facts, &services, out);
	if (fclose(out) && !err)
		err = -ENOMEM;
	if (err)
		return err;
	*ret_body = TAKE(body);
	*ret_size = size;
	return 0;
}

static int put_body(const struct otlp_parts *parts, char **body, size_t size)
{
	void *packed;
	size_t packed_size;
	int err;

	if (!parts->writer->encoding->is_packed)
		return push_writer_add(parts->writer, TAKE(*body), size, size);
	err = pack(*body, size, &packed, &packed_size);
	return err ? err : push_writer_add(parts->writer, packed, packed_size, size);
}

static int put_rows(void *context, uint32_t first, uint32_t count)
{
	const struct otlp_parts *parts = context;
	OWNED_MEM char *body = NULL;
	size_t size;
	int err = encode_part(parts, first, count, &body, &size);

	if (err)
		return err;
	return size > PUSH_PART_RAW_MAX_BYTES ? -E2BIG : put_body(parts, &body, size);
}

static int encode(struct push_writer *writer, const struct push_division *division)
{
	struct otlp_parts parts = {.writer = writer, .division = division};
	uint32_t rows = 0;

	for (uint32_t i = 0; i < division->count; i++)
		rows += division->series[i].row_count;
	return rows ? push_halve(0, rows, put_rows, &parts) : 0;
}

/* ---- the environment ---- */

static const char *look(push_environment *environment, const char *name)
{
	const char *value = environment(name);

	return value && *value ? value : NULL;
}

/* Looks for OTEL_EXPORTER_OTLP_PROFILES_`what`, then for OTEL_EXPORTER_OTLP_`what`. */
static const char *look_otlp(push_environment *environment, const char *what, bool *ret_is_own)
{
	char name[64];
	const char *value;

	snprintf(name, sizeof(name), "OTEL_EXPORTER_OTLP_PROFILES_%s", what);
	value = look(environment, name);
	*ret_is_own = value != NULL;
	if (value)
		return value;
	snprintf(name, sizeof(name), "OTEL_EXPORTER_OTLP_%s", what);
	return look(environment, name);
}

/* Adds "key=value,key=value" (W3C Baggage, without properties). */
static int add_otlp_headers(struct push_target *target, const char *text, char *why)
{
	const char *item;
	size_t size;

	while (config_next_item(&text, ',', &item, &size)) {
		const char *equals = memchr(item, '=', size);
		OWNED_MEM char *value = NULL, *header = NULL;
		int err;

		if (!equals || equals == item || memchr(item, ':', (size_t)(equals - item)))
			return push_target_complain(
				target, why, "OTEL_EXPORTER_OTLP_HEADERS is not NAME=VALUE,...");
		value = strndup(equals + 1, size - (size_t)(equals + 1 - item));
		if (!value)
			return -ENOMEM;
		if (!config_url_decode(value, strlen(value), false, value))
			return push_target_complain(target, why,
						    "OTEL_EXPORTER_OTLP_HEADERS has control codes");
		if (asprintf(&header, "%.*s: %s", (int)(equals - item), item, value) < 0) {
			header = NULL;
			return -ENOMEM;
		}
		err = push_target_add_header(target, header, strlen(header), why);
		if (err)
			return err;
	}
	return 0;
}

static int take_timeout(struct push_target *target, const char *text, char *why)
{
	char *end;
	unsigned long milliseconds = strtoul(text, &end, 10);

	if (*end || text[0] < '0' || text[0] > '9')
		return push_target_complain(target, why,
					    "OTEL_EXPORTER_OTLP_TIMEOUT is not milliseconds");
	if (milliseconds < PUSH_TIMEOUT_MIN_MS)
		milliseconds = PUSH_TIMEOUT_MIN_MS;
	if (milliseconds > PUSH_TIMEOUT_MAX_MS)
		milliseconds = PUSH_TIMEOUT_MAX_MS;
	target->timeout_ms = (uint32_t)milliseconds;
	return 0;
}

static int take_endpoint(struct push_target *target, push_environment *environment, char *why)
{
	bool is_own;
	const char *url = look_otlp(environment, "ENDPOINT", &is_own);
	const char *fault = url ? config_url_fault(url) : NULL;

	if (!url)
		return 0;
	if (fault) {
		snprintf(why, CONFIG_WHY_BYTES, "[push %s] OTEL_EXPORTER_OTLP_%sENDPOINT %s",
			 target->name, is_own ? "PROFILES_" : "", fault);
		return -EINVAL;
	}
	return push_target_set_url(target, url, is_own);
}

static int take_environment(struct push_target *target, push_environment *environment, char *why)
{
	bool is_own;
	const char *value;
	int err = target->url ? 0 : take_endpoint(target, environment, why);

	value = look_otlp(environment, "HEADERS", &is_own);
	if (!err && !target->as.header_count && value)
		err = add_otlp_headers(target, value, why);
	value = look_otlp(environment, "CERTIFICATE", &is_own);
	if (!err && !target->as.ca && value)
		err = (target->as.ca = strdup(value)) ? 0 : -ENOMEM;
	value = look_otlp(environment, "COMPRESSION", &is_own);
	if (!err && value && strcmp(value, "gzip") != 0) {
		if (strcmp(value, "none") != 0)
			return push_target_complain(
				target, why, "OTEL_EXPORTER_OTLP_COMPRESSION is not gzip or none");
		target->is_packed = false;
	}
	value = look_otlp(environment, "TIMEOUT", &is_own);
	if (!err && value)
		err = take_timeout(target, value, why);
	return err;
}

static const char *const headers[] = {"Content-Type: application/x-protobuf", NULL};
const struct collector collector_otlp = {.id = COLLECTOR_OTLP,
					 .header = headers,
					 .packs = true,
					 .encode = encode,
					 .take_environment = take_environment,
					 .tells_rejected = true};
