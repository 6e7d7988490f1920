/* SPDX-License-Identifier: BSD-2-Clause */
#include "timeline/trace_file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <zlib.h>

#include "base/clock.h"
#include "base/safe_file.h"
#include "timeline/trace_writer.h"

#define FILE_MODE 0640
#define PENDING_BYTES (256U << 10)
#define END_SHARE 16U
/* As DRAIN_NS of store/output.c. */
#define CLOSE_NS (30 * NS_PER_SEC)

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
