/* SPDX-License-Identifier: BSD-2-Clause */
#include "timeline/trace_file.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "base/background.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/safe_file.h"

#define GZIP_MODE "wb1" /* of gzdopen(3): the fastest level; T: as it is */
#define PLAIN_MODE "wbT"
#define FILE_MODE 0640
#define PENDING_BYTES (256U << 10)
#define END_SHARE 16U
/* As DRAIN_NS of store/output.c. */
#define CLOSE_NS (30 * NS_PER_SEC)

struct block {
	struct block *next;
	size_t size;
	int flush;
	uint8_t bytes[];
};

struct trace_writer {
	/* The thread's, from its start to its end. */
	gzFile file; /* NULL: closed */
	bool is_gzip;

	struct background background; /* its mutex guards what follows */
	struct block *first, **end;
	size_t bytes; /* of all blocks */
	int err;      /* the first that a block gave */
};

static void release(struct trace_writer *writer)
{
	if (writer->file)
		gzclose(writer->file);
	background_destroy(&writer->background);
	free(writer);
}

/* ---- the thread ---- */

/* Text as it is does not wait here for more of it. */
static int write_block(struct trace_writer *writer, const struct block *block)
{
	const int flush = writer->is_gzip ? block->flush : Z_SYNC_FLUSH;

	errno = 0;
	if ((block->size && !gzwrite(writer->file, block->bytes, (unsigned int)block->size)) ||
	    (flush != Z_NO_FLUSH && gzflush(writer->file, flush)))
		return errno ? -errno : -ENOMEM;
	return 0;
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
		err = write_block(writer, block);
	pthread_mutex_lock(&writer->background.mutex);
	writer->bytes -= block->size;
	writer->err = err;
}

static void *run(void *context)
{
	struct trace_writer *writer = context;
	gzFile file;
	int err;

	background_begin(&writer->background);
	while (writer->first || !writer->background.is_ending) {
		if (writer->first)
			write_first(writer);
		else
			pthread_cond_wait(&writer->background.has_changed,
					  &writer->background.mutex);
	}
	/* A network file system writes at close(): the loop needs the mutex to give up. */
	file = TAKE(writer->file);
	pthread_mutex_unlock(&writer->background.mutex);
	err = gzclose(file) ? -errno : 0;
	pthread_mutex_lock(&writer->background.mutex);
	if (!writer->err)
		writer->err = err;
	if (background_end(&writer->background))
		release(writer);
	return NULL;
}

/* ---- the loop's side ---- */

int trace_writer_new(int fd, bool gzip, struct trace_writer **ret_writer)
{
	struct trace_writer *writer = calloc(1, sizeof(*writer));
	gzFile file = writer ? gzdopen(fd, gzip ? GZIP_MODE : PLAIN_MODE) : NULL;
	int err;

	if (!file) {
		close(fd);
		free(writer);
		return -ENOMEM;
	}
	writer->file = file;
	writer->is_gzip = gzip;
	writer->end = &writer->first;
	background_init(&writer->background);
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

/* ---- the file ---- */

struct trace_file {
	struct trace_writer *writer;
	uint64_t bytes, max_bytes, end_bytes;
	uint8_t *pending;
	size_t pending_size;
};

void trace_file_free(struct trace_file *file)
{
	if (!file)
		return;
	trace_writer_free(file->writer);
	free(file->pending);
	free(file);
}

static int open_path(const struct trace_file_options *options, int *ret_fd)
{
	OWNED_FD int fd = -1;
	int err = safe_file_open(options->path, SAFE_FILE_REGULAR, FILE_MODE, &fd);

	if (err)
		return err;
	if (ftruncate(fd, 0) || fchmod(fd, FILE_MODE))
		return -errno;
	/* Without CAP_CHOWN the file stays ours, which is better than no file. */
	if ((options->uid != (uid_t)-1 || options->gid != (gid_t)-1) &&
	    fchown(fd, options->uid, options->gid) && errno != EPERM)
		return -errno;
	*ret_fd = TAKE_FD(fd);
	return 0;
}

int trace_file_open(const struct trace_file_options *options, struct trace_file **ret_file)
{
	OWNED(trace_file) struct trace_file *file = calloc(1, sizeof(*file));
	int err, fd = -1;

	if (!file)
		return -ENOMEM;
	file->max_bytes = options->max_bytes - TRACE_LAST_BYTES;
	file->end_bytes = file->max_bytes / END_SHARE;
	file->max_bytes -= file->end_bytes;
	file->pending = malloc(PENDING_BYTES);
	if (!file->pending)
		return -ENOMEM;
	err = open_path(options, &fd);
	if (!err)
		err = trace_writer_new(fd, options->gzip, &file->writer);
	if (err)
		return err;
	*ret_file = TAKE(file);
	return 0;
}

static int write_pending(struct trace_file *file, int flush)
{
	size_t size = file->pending_size;

	file->pending_size = 0;
	return trace_writer_put(file->writer, file->pending, size, flush);
}

int trace_file_put(struct trace_file *file, const void *bytes, size_t size)
{
	int err = 0;

	if (size > file->max_bytes - file->bytes)
		return -EFBIG;
	file->bytes += size;
	if (file->pending_size + size > PENDING_BYTES)
		err = write_pending(file, Z_NO_FLUSH);
	if (err)
		return err;
	if (size > PENDING_BYTES)
		return trace_writer_put(file->writer, bytes, size, Z_NO_FLUSH);
	memcpy(file->pending + file->pending_size, bytes, size);
	file->pending_size += size;
	return 0;
}

int trace_file_flush(struct trace_file *file)
{
	return file->pending_size ? write_pending(file, Z_SYNC_FLUSH) : 0;
}

void trace_file_end(struct trace_file *file)
{
	file->max_bytes += file->end_bytes;
	file->end_bytes = 0;
}

int trace_file_put_last(struct trace_file *file, const void *bytes, size_t size)
{
	trace_file_end(file);
	file->max_bytes += TRACE_LAST_BYTES;
	return trace_file_put(file, bytes, size);
}

int trace_file_close(struct trace_file *file)
{
	int err = write_pending(file, Z_FINISH), ended;

	ended = trace_writer_end(file->writer, CLOSE_NS);
	return err ? err : ended;
}

uint64_t trace_file_bytes(const struct trace_file *file)
{
	return file->bytes;
}
