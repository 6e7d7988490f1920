/* SPDX-License-Identifier: BSD-2-Clause */
/* OTLP over HTTP, protobuf: one resource a service, and the chosen labels as attributes of
 * samples. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "export/exports.h"
#include "profile/profile_data.h"
#include "push/request_writer.h"

#define GZIP_WINDOW_BITS (MAX_WBITS + 16) /* zlib writes gzip's header and end */
#define GZIP_MEMORY_LEVEL 8

/* The rows of all series, one after another; a part is a range of them. */
struct otlp_parts {
	struct push_writer *writer;
	struct profile *profile;
	const struct push_division *division;
	struct push_part_facts facts;
};

static void end_deflate(z_stream *stream)
{
	deflateEnd(stream);
}

static int pack(const void *bytes, size_t size, void **ret_packed, size_t *ret_size)
{
	CLEANUP(end_deflate) z_stream stream = {0};
	OWNED_MEM void *packed = NULL;
	uLong bound;

	if (deflateInit2(&stream, Z_BEST_SPEED, Z_DEFLATED, GZIP_WINDOW_BITS, GZIP_MEMORY_LEVEL,
			 Z_DEFAULT_STRATEGY) != Z_OK)
		return -ENOMEM;
	bound = deflateBound(&stream, size);
	packed = malloc(bound);
	if (!packed)
		return -ENOMEM;
	stream.next_in = (Bytef *)(uintptr_t)bytes;
	stream.avail_in = (uInt)size;
	stream.next_out = packed;
	stream.avail_out = (uInt)bound;
	if (deflate(&stream, Z_FINISH) != Z_STREAM_END)
		return -EIO;
	*ret_packed = TAKE(packed);
	*ret_size = stream.total_out;
	return 0;
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
		err = push_part_add(parts->profile, series, first, taken, &parts->facts, &part);
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
	const struct export_services services = {.service_key = parts->facts.label_key[0],
						 .host = parts->writer->encoding->host};
	const struct export_facts facts = {.start_wall_ns = parts->facts.start_wall_ns,
					   .duration_ns = parts->facts.duration_ns};
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
	err = export_otlp_services(part, &facts, &services, out);
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

	if (!parts->writer->encoding->packs_otlp)
		return push_writer_add(parts->writer, TAKE(*body), size, size);
	err = pack(*body, size, &packed, &packed_size);
	return err ? err : push_writer_add(parts->writer, packed, packed_size, size);
}

/* Halves what is too much, at most as often as a number has bits. */
static int put_rows(const struct otlp_parts *parts, uint32_t first, uint32_t count)
{
	OWNED_MEM char *body = NULL;
	size_t size;
	int err;

	if (count <= PUSH_PART_ROWS_MAX) {
		err = encode_part(parts, first, count, &body, &size);
		if (err)
			return err;
		if (size <= PUSH_PART_RAW_MAX_BYTES)
			return put_body(parts, &body, size);
		if (count == 1)
			return -EFBIG;
		free(TAKE(body));
	}
	err = put_rows(parts, first, count / 2);
	return err ? err : put_rows(parts, first + count / 2, count - count / 2);
}

int push_encode_otlp(struct push_writer *writer, struct profile *profile,
		     const struct push_division *division)
{
	const char *key[1 + PUSH_LABELS_MAX] = {"service.name"};
	struct otlp_parts parts = {.writer = writer, .profile = profile, .division = division};
	uint32_t rows = 0;

	for (size_t i = 0; i < writer->encoding->labels.count; i++)
		key[1 + i] = writer->encoding->labels.key[i];
	parts.facts = (struct push_part_facts){.start_wall_ns = writer->window->start_wall_ns,
					       .duration_ns = writer->window->duration_ns,
					       .label_key = key,
					       .label_count = 1 + writer->encoding->labels.count};
	for (uint32_t i = 0; i < division->count; i++)
		rows += division->series[i].row_count;
	return rows ? put_rows(&parts, 0, rows) : 0;
}
