/* SPDX-License-Identifier: BSD-2-Clause */
#include "timeline/trace_writer.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "base/background.h"
#include "base/cleanup.h"
#include "base/io.h"

#define PACKED_BYTES (256U << 10)
#define GZIP_WINDOW_BITS (15 + 16) /* 16: gzip header and trailer */
#define GZIP_MEMORY_LEVEL 8
#define GZIP_LEVEL 1

struct block {
	struct block *next;
	size_t size;
	int flush;
	uint8_t bytes[];
};

struct trace_writer {
	/* The thread's, from its start to its end. */
	int fd;
	bool is_gzip;
	z_stream stream;
	uint8_t *packed; /* for gzip */

	struct background background; /* its mutex guards what follows */
	struct block *first, **end;
	size_t bytes; /* of all blocks */
	int err;      /* the first that a block gave */
};

static void release(struct trace_writer *writer)
{
	if (writer->is_gzip)
		deflateEnd(&writer->stream);
	close_owned_fd(&writer->fd);
	free(writer->packed);
	background_destroy(&writer->background);
	free(writer);
}

/* ---- the thread ---- */

static int write_packed(struct trace_writer *writer, const struct block *block)
{
	z_stream *stream = &writer->stream;
	int err = 0;

	stream->next_in = (z_const Bytef *)block->bytes;
	stream->avail_in = (uInt)block->size;
	do {
		stream->next_out = writer->packed;
		stream->avail_out = PACKED_BYTES;
		if (deflate(stream, block->flush) == Z_STREAM_ERROR)
			return -EINVAL;
		err = write_full(writer->fd, writer->packed, PACKED_BYTES - stream->avail_out);
	} while (!err && !stream->avail_out);
	return err;
}

/* After an error nothing is written: the file ends where it can be read. */
static void write_first(struct trace_writer *writer)
{
	OWNED_MEM struct block *block = writer->first;
	int err = writer->err;

	writer->first = block->next;
	if (!writer->first)
		writer->end = &writer->first;
	pthread_mutex_unlock(&writer->background.mutex);
	if (!err)
		err = writer->is_gzip ? write_packed(writer, block)
				      : write_full(writer->fd, block->bytes, block->size);
	pthread_mutex_lock(&writer->background.mutex);
	writer->bytes -= block->size;
	writer->err = err;
}

static void *run(void *context)
{
	struct trace_writer *writer = context;
	int fd, err;

	background_begin(&writer->background);
	while (writer->first || !writer->background.is_ending) {
		if (writer->first)
			write_first(writer);
		else
			pthread_cond_wait(&writer->background.has_changed,
					  &writer->background.mutex);
	}
	/* A network file system writes at close(): the loop needs the mutex to give up. */
	fd = TAKE_FD(writer->fd);
	pthread_mutex_unlock(&writer->background.mutex);
	err = close(fd) ? -errno : 0;
	pthread_mutex_lock(&writer->background.mutex);
	if (!writer->err)
		writer->err = err;
	if (background_end(&writer->background))
		release(writer);
	return NULL;
}

/* ---- the loop's side ---- */

static int open_gzip(struct trace_writer *writer)
{
	writer->packed = malloc(PACKED_BYTES);
	if (!writer->packed ||
	    deflateInit2(&writer->stream, GZIP_LEVEL, Z_DEFLATED, GZIP_WINDOW_BITS,
			 GZIP_MEMORY_LEVEL, Z_DEFAULT_STRATEGY) != Z_OK)
		return -ENOMEM;
	writer->is_gzip = true;
	return 0;
}

int trace_writer_new(int fd, bool gzip, struct trace_writer **ret_writer)
{
	struct trace_writer *writer = calloc(1, sizeof(*writer));
	int err;

	if (!writer) {
		close(fd);
		return -ENOMEM;
	}
	writer->fd = fd;
	writer->end = &writer->first;
	background_init(&writer->background);
	err = gzip ? open_gzip(writer) : 0;
	if (!err)
		err = background_start(&writer->background, run, writer);
	if (err) {
		release(writer);
		return err;
	}
	*ret_writer = writer;
	return 0;
}

int trace_writer_put(struct trace_writer *writer, const void *bytes, size_t size, int flush)
{
	struct block *block = malloc(sizeof(*block) + size);
	int err;

	if (!block)
		return -ENOMEM;
	*block = (struct block){.size = size, .flush = flush};
	memcpy(block->bytes, bytes, size);
	pthread_mutex_lock(&writer->background.mutex);
	err = writer->err;
	if (!err && flush != Z_FINISH && writer->bytes + size > TRACE_WAITING_BYTES)
		err = -ENOBUFS;
	if (!err) {
		writer->bytes += size;
		*writer->end = block;
		writer->end = &block->next;
		pthread_cond_broadcast(&writer->background.has_changed);
	}
	pthread_mutex_unlock(&writer->background.mutex);
	if (err)
		free(block);
	return err;
}

int trace_writer_end(struct trace_writer *writer, uint64_t limit_ns)
{
	/* Once it has ended, nobody else changes it. */
	return background_finish(&writer->background, limit_ns) ? writer->err : -ETIMEDOUT;
}

static void drop_blocks(struct trace_writer *writer)
{
	struct block *next;

	for (struct block *block = writer->first; block; block = next) {
		next = block->next;
		free(block);
	}
	writer->first = NULL;
	writer->end = &writer->first;
}

void trace_writer_free(struct trace_writer *writer)
{
	if (!writer)
		return;
	pthread_mutex_lock(&writer->background.mutex);
	drop_blocks(writer);
	pthread_mutex_unlock(&writer->background.mutex);
	if (background_join(&writer->background))
		release(writer);
}
