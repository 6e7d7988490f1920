/* SPDX-License-Identifier: BSD-2-Clause */
#include "timeline/trace_file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <zlib.h>

#include "base/io.h"
#include "base/safe_file.h"

#define FILE_MODE 0640
#define PENDING_BYTES (256U << 10)
#define GZIP_WINDOW_BITS (15 + 16) /* 16: gzip header and trailer */
#define GZIP_MEMORY_LEVEL 8
#define GZIP_LEVEL 1
#define END_SHARE 16U

struct trace_file {
	int fd;
	uint64_t bytes, max_bytes, end_bytes;
	uint8_t *pending;
	size_t pending_size;
	z_stream stream;
	bool is_gzip;
	uint8_t *packed; /* for gzip */
};

void trace_file_free(struct trace_file *file)
{
	if (!file)
		return;
	if (file->is_gzip)
		deflateEnd(&file->stream);
	if (file->fd >= 0)
		close(file->fd);
	free(file->pending);
	free(file->packed);
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
	int err;

	if (!file)
		return -ENOMEM;
	file->fd = -1;
	file->max_bytes = options->max_bytes - TRACE_LAST_BYTES;
	file->end_bytes = file->max_bytes / END_SHARE;
	file->max_bytes -= file->end_bytes;
	file->pending = malloc(PENDING_BYTES);
	file->packed = options->gzip ? malloc(PENDING_BYTES) : NULL;
	if (!file->pending || (options->gzip && !file->packed))
		return -ENOMEM;
	if (options->gzip && deflateInit2(&file->stream, GZIP_LEVEL, Z_DEFLATED, GZIP_WINDOW_BITS,
					  GZIP_MEMORY_LEVEL, Z_DEFAULT_STRATEGY) != Z_OK)
		return -ENOMEM;
	file->is_gzip = options->gzip;
	err = open_path(options, &file->fd);
	if (err)
		return err;
	*ret_file = TAKE(file);
	return 0;
}

static int write_packed(struct trace_file *file, const uint8_t *bytes, size_t size, int flush)
{
	z_stream *stream = &file->stream;
	int err = 0;

	stream->next_in = (z_const Bytef *)bytes;
	stream->avail_in = (uInt)size;
	do {
		stream->next_out = file->packed;
		stream->avail_out = PENDING_BYTES;
		if (deflate(stream, flush) == Z_STREAM_ERROR)
			return -EINVAL;
		err = write_full(file->fd, file->packed, PENDING_BYTES - stream->avail_out);
	} while (!err && !stream->avail_out);
	return err;
}

static int write_out(struct trace_file *file, const uint8_t *bytes, size_t size, int flush)
{
	if (file->is_gzip)
		return write_packed(file, bytes, size, flush);
	return write_full(file->fd, bytes, size);
}

static int write_pending(struct trace_file *file, int flush)
{
	size_t size = file->pending_size;

	file->pending_size = 0;
	return write_out(file, file->pending, size, flush);
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
		return write_out(file, bytes, size, Z_NO_FLUSH);
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
	int err = write_pending(file, Z_FINISH);

	if (close(TAKE_FD(file->fd)) && !err)
		err = -errno;
	return err;
}

uint64_t trace_file_bytes(const struct trace_file *file)
{
	return file->bytes;
}
