/* SPDX-License-Identifier: BSD-2-Clause */
#include "pprof/gzip.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "base/cleanup.h"

/* ---- packing ---- */

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

/* ---- unpacking ---- */

#define INPUT_BYTES 65536U
#define FIRST_BYTES 262144U
/* Profiles unpack to 3 to 30 times their size, a bomb to 1,032 times, the most that deflate can. */
#define RATIO_MAX 256U
#define RATIO_FREE_BYTES (64U << 20)

struct input {
	int fd;
	bool is_end;
	size_t size;
	uint8_t byte[INPUT_BYTES];
};

static int fail(struct unpacked *unpacked, int err, const char *why)
{
	unpacked->error = why;
	return err;
}

void unpack_release(struct unpacked *unpacked)
{
	free(unpacked->byte);
	*unpacked = (struct unpacked){0};
}

static int fill(struct unpacked *unpacked, struct input *input)
{
	ssize_t got;

	do
		got = read(input->fd, input->byte, sizeof(input->byte));
	while (got < 0 && errno == EINTR);
	if (got < 0)
		return fail(unpacked, -errno, "cannot be read");
	input->is_end = !got;
	input->size = (size_t)got;
	unpacked->packed_size += (size_t)got;
	return 0;
}

/* Makes room for at least one more byte. */
static int grow(struct unpacked *unpacked, size_t max_bytes)
{
	size_t capacity = unpacked->capacity ? unpacked->capacity * 2 : FIRST_BYTES;
	uint8_t *grown;

	if (unpacked->size < unpacked->capacity)
		return 0;
	if (unpacked->size >= RATIO_FREE_BYTES &&
	    unpacked->size / RATIO_MAX > unpacked->packed_size)
		return fail(unpacked, -EFBIG, "too big: unpacks to more than 256 times its size");
	if (unpacked->size >= max_bytes)
		return fail(unpacked, -EFBIG, "too big: more than 512 MiB unpacked");
	if (capacity > max_bytes)
		capacity = max_bytes;
	grown = realloc(unpacked->byte, capacity);
	if (!grown)
		return fail(unpacked, -ENOMEM, "not enough memory");
	unpacked->byte = grown;
	unpacked->capacity = capacity;
	return 0;
}

static int copy_plain(struct unpacked *unpacked, struct input *input, size_t max_bytes)
{
	while (!input->is_end) {
		size_t done = 0;
		int err;

		while (done < input->size) {
			size_t part = input->size - done;

			err = grow(unpacked, max_bytes);
			if (err)
				return err;
			if (part > unpacked->capacity - unpacked->size)
				part = unpacked->capacity - unpacked->size;
			memcpy(unpacked->byte + unpacked->size, input->byte + done, part);
			unpacked->size += part;
			done += part;
		}
		err = fill(unpacked, input);
		if (err)
			return err;
	}
	return 0;
}

/* Calls inflate() once.  *ended: the member is complete. */
static int inflate_some(struct unpacked *unpacked, z_stream *stream, size_t max_bytes, bool *ended)
{
	int err = grow(unpacked, max_bytes), result;
	size_t room;

	if (err)
		return err;
	room = unpacked->capacity - unpacked->size;
	stream->next_out = unpacked->byte + unpacked->size;
	stream->avail_out = (uInt)room;
	result = inflate(stream, Z_NO_FLUSH);
	unpacked->size += room - stream->avail_out;
	*ended = result == Z_STREAM_END;
	if (result == Z_MEM_ERROR)
		return fail(unpacked, -ENOMEM, "not enough memory");
	if (result != Z_OK && result != Z_STREAM_END && result != Z_BUF_ERROR)
		return fail(unpacked, -EBADMSG, "broken: the gzip data does not unpack");
	return 0;
}

static int inflate_all(struct unpacked *unpacked, struct input *input, z_stream *stream,
		       size_t max_bytes)
{
	bool ended = false;

	for (;;) {
		int err;

		if (!stream->avail_in) {
			if (input->size) {
				err = fill(unpacked, input);
				if (err)
					return err;
			}
			if (input->is_end)
				break;
			stream->next_in = input->byte;
			stream->avail_in = (uInt)input->size;
		}
		if (ended && inflateReset(stream) != Z_OK)
			return fail(unpacked, -EBADMSG, "broken: the gzip data does not unpack");
		err = inflate_some(unpacked, stream, max_bytes, &ended);
		if (err)
			return err;
	}
	return ended ? 0 : fail(unpacked, -EBADMSG, "cut off: the gzip data ends early");
}

static int inflate_file(struct unpacked *unpacked, struct input *input, size_t max_bytes)
{
	z_stream stream = {.next_in = input->byte, .avail_in = (uInt)input->size};
	int err;

	if (inflateInit2(&stream, GZIP_WINDOW_BITS) != Z_OK)
		return fail(unpacked, -ENOMEM, "not enough memory");
	err = inflate_all(unpacked, input, &stream, max_bytes);
	inflateEnd(&stream);
	return err;
}

/* Names the format of files that are not protobuf, but that people pass nevertheless. */
static const char *foreign_format(const struct input *input)
{
	static const struct {
		const char *magic;
		size_t size;
		const char *why;
	} format[] = {
		{"\x28\xb5\x2f\xfd", 4, "zstd data: pprof files are gzip'd; unpack it first"},
		{"\xfd"
		 "7zXZ",
		 5, "xz data: pprof files are gzip'd; unpack it first"},
		{"BZh", 3, "bzip2 data: pprof files are gzip'd; unpack it first"},
		{"PK\x03\x04", 4, "a zip archive, not a profile"},
		{"\x7f"
		 "ELF",
		 4, "a program (ELF), not a profile"},
		{"PERFILE2", 8, "perf.data, not a pprof file"},
		{"{", 1, "JSON, not a pprof file"},
	};

	for (size_t i = 0; i < sizeof(format) / sizeof(format[0]); i++)
		if (input->size >= format[i].size &&
		    !memcmp(input->byte, format[i].magic, format[i].size))
			return format[i].why;
	return NULL;
}

static int unpack_input(struct unpacked *unpacked, struct input *input, size_t max_bytes)
{
	const char *foreign;
	int err = fill(unpacked, input);

	if (err)
		return err;
	if (input->is_end)
		return fail(unpacked, -ENODATA, "empty: no profile in it");
	if (input->size >= 2 && input->byte[0] == 0x1f && input->byte[1] == 0x8b)
		return inflate_file(unpacked, input, max_bytes);
	foreign = foreign_format(input);
	if (foreign)
		return fail(unpacked, -EBADMSG, foreign);
	return copy_plain(unpacked, input, max_bytes);
}

int unpack_file(struct unpacked *unpacked, int fd, size_t max_bytes)
{
	struct stat status;
	struct input *input;
	int err;

	unpacked->size = 0;
	unpacked->packed_size = 0;
	unpacked->error = "";
	if (fstat(fd, &status))
		return fail(unpacked, -errno, "cannot be read");
	if (S_ISDIR(status.st_mode))
		return fail(unpacked, -EISDIR, "a directory, not a profile");
	if (status.st_size > 0 && (uint64_t)status.st_size > max_bytes)
		return fail(unpacked, -EFBIG, "too big: more than 512 MiB");
	input = calloc(1, sizeof(*input));
	if (!input)
		return fail(unpacked, -ENOMEM, "not enough memory");
	input->fd = fd;
	err = unpack_input(unpacked, input, max_bytes);
	free(input);
	return err;
}
