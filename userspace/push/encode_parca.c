/* SPDX-License-Identifier: BSD-2-Clause */
/* Source: parca-dev/parca, parca/profilestore/v1alpha1/profilestore.proto, WriteRawRequest as JSON.
 * The labels of samples are dropped there: what a series is to show are its own labels. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_writer.h"
#include "profile/profile_data.h"
#include "push/request_writer.h"
#include "push/service_name.h"

#define PRODUCER "pyprofd"
#define TRIPLE 3U /* bytes that are four characters */

struct parca {
	struct push_writer *writer;
	const struct profile *profile;
	char *text; /* owned, as FILE has it */
	size_t size;
	FILE *out; /* owned; NULL: no request is open */
	struct json_writer json;
	uint64_t raw_bytes;
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
	json_key(&parca->json, "series");
	json_open(&parca->json, '[');
	return 0;
}

static int end_request(struct parca *parca)
{
	int err;

	if (!parca->out)
		return 0;
	json_close(&parca->json, ']');
	json_key(&parca->json, "normalized");
	fputs("false", parca->out);
	json_close(&parca->json, '}');
	err = json_finish(&parca->json);
	if (fclose(TAKE(parca->out)) || err)
		return -ENOMEM;
	err = push_writer_add(parca->writer, TAKE(parca->text), parca->size, parca->raw_bytes);
	parca->raw_bytes = 0;
	return err;
}

/* Writes a string of base64: RFC 4648, section 4. */
static void put_base64(FILE *out, const uint8_t *bytes, size_t size)
{
	static const char digits[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

	putc('"', out);
	for (size_t i = 0; i < size; i += TRIPLE) {
		size_t left = size - i;
		uint32_t bits = (uint32_t)bytes[i] << 16 |
				(left > 1 ? (uint32_t)bytes[i + 1] << 8 : 0) |
				(left > 2 ? bytes[i + 2] : 0);

		putc(digits[bits >> 18], out);
		putc(digits[bits >> 12 & 63], out);
		putc(left > 1 ? digits[bits >> 6 & 63] : '=', out);
		putc(left > 2 ? digits[bits & 63] : '=', out);
	}
	putc('"', out);
}

static void put_labels(struct parca *parca, const struct push_series *series)
{
	const char *service = series->value[0]
				      ? intern_get(parca->profile->strings, series->value[0], NULL)
				      : PUSH_SERVICE_UNKNOWN;
	const char *const own[][2] = {{"__name__", PRODUCER},
				      {"service_name", service},
				      {"node", parca->writer->encoding->host}};
	struct json_writer *json = &parca->json;
	struct push_labels labels;

	push_labels_of(parca->profile, &parca->writer->encoding->labels, series, own,
		       ARRAY_SIZE(own), &labels);
	json_key(json, "labels");
	json_open(json, '{');
	json_key(json, "labels");
	json_open(json, '[');
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
	int err = 0;

	if (parca->raw_bytes + packed->raw_bytes > PUSH_PART_RAW_MAX_BYTES)
		err = end_request(parca);
	if (!err && !parca->out)
		err = begin_request(parca);
	if (err)
		return err;
	json_open(&parca->json, '{');
	put_labels(parca, series);
	json_key(&parca->json, "samples");
	json_open(&parca->json, '[');
	json_open(&parca->json, '{');
	json_key(&parca->json, "rawProfile");
	put_base64(parca->out, packed->bytes, packed->size);
	json_close(&parca->json, '}');
	json_close(&parca->json, ']');
	json_close(&parca->json, '}');
	parca->raw_bytes += packed->raw_bytes;
	return 0;
}

int push_encode_parca(struct push_writer *writer, struct profile *profile,
		      const struct push_division *division)
{
	CLEANUP(parca_release) struct parca parca = {.writer = writer, .profile = profile};
	int err = 0;

	for (uint32_t i = 0; !err && i < division->count; i++)
		err = push_pack_series(profile, &division->series[i], writer->window, put_part,
				       &parca);
	return err ? err : end_request(&parca);
}
