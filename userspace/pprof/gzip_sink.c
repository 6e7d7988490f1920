/* SPDX-License-Identifier: BSD-2-Clause */
#include "pprof/gzip_sink.h"

#include <errno.h>
#include <stdlib.h>
#include <zlib.h>

#define FIRST_OUTPUT_BYTES 16384U
#define GZIP_WINDOW_BITS (15 + 16) /* 16: gzip header and trailer */
#define GZIP_MEMORY_LEVEL 8

struct gzip_sink {
	z_stream stream;
	int is_open;
	uint8_t *output;
	size_t output_capacity; /* of which stream.total_out are used */
};

void gzip_sink_free(struct gzip_sink *sink)
{
	if (!sink)
		return;
	if (sink->is_open)
		deflateEnd(&sink->stream);
	free(sink->output);
	free(sink);
}

int gzip_sink_new(enum gzip_effort effort, struct gzip_sink **ret_sink)
{
	OWNED(gzip_sink) struct gzip_sink *sink = calloc(1, sizeof(*sink));

	if (!sink)
		return -ENOMEM;
	sink->output = malloc(FIRST_OUTPUT_BYTES);
	if (!sink->output)
		return -ENOMEM;
	sink->output_capacity = FIRST_OUTPUT_BYTES;
	if (deflateInit2(&sink->stream, (int)effort, Z_DEFLATED, GZIP_WINDOW_BITS,
			 GZIP_MEMORY_LEVEL, Z_DEFAULT_STRATEGY) != Z_OK)
		return -ENOMEM;
	sink->is_open = 1;
	*ret_sink = TAKE(sink);
	return 0;
}

static int grow_output(struct gzip_sink *sink)
{
	size_t capacity = sink->output_capacity + sink->output_capacity / 2;
	uint8_t *grown = realloc(sink->output, capacity);

	if (!grown)
		return -ENOMEM;
	sink->output = grown;
	sink->output_capacity = capacity;
	return 0;
}

/* Compresses all bytes, or with Z_FINISH goes on until the stream has ended. */
static int compress_bytes(struct gzip_sink *sink, const void *bytes, size_t size, int flush)
{
	z_stream *stream = &sink->stream;
	int result = Z_OK;

	if (size > UINT32_MAX)
		return -ENOMEM;
	stream->next_in = (z_const Bytef *)bytes;
	stream->avail_in = (uInt)size;
	while (stream->avail_in || (flush == Z_FINISH && result != Z_STREAM_END)) {
		size_t left = sink->output_capacity - stream->total_out;

		if (!left) {
			int err = grow_output(sink);

			if (err)
				return err;
			left = sink->output_capacity - stream->total_out;
		}
		stream->next_out = sink->output + stream->total_out;
		stream->avail_out = left > UINT32_MAX ? UINT32_MAX : (uInt)left;
		result = deflate(stream, flush);
		if (result == Z_STREAM_ERROR)
			return -EINVAL;
	}
	return 0;
}

int gzip_sink_put(struct gzip_sink *sink, const void *bytes, size_t size)
{
	return compress_bytes(sink, bytes, size, Z_NO_FLUSH);
}

int gzip_sink_finish(struct gzip_sink *sink, void **ret_bytes, size_t *ret_size)
{
	void *fitted;
	size_t size;
	int err = compress_bytes(sink, "", 0, Z_FINISH);

	if (err)
		return err;
	size = sink->stream.total_out;
	fitted = realloc(sink->output, size);
	*ret_bytes = fitted ? fitted : sink->output;
	*ret_size = size;
	sink->output = NULL;
	return 0;
}
