/* SPDX-License-Identifier: BSD-2-Clause */
/* A file that is written while the data comes in and stays below a bound.  Each put is written
 * whole or not at all, so that the file can be read wherever it ends.  A thread of its own packs
 * and writes, so that a slow disk holds up nobody; what waits for it is bounded. */
#ifndef TIMELINE_TRACE_FILE_H
#define TIMELINE_TRACE_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/cleanup.h"

#define TRACE_WAITING_BYTES ((size_t)32 << 20)
#define TRACE_LAST_BYTES 16U

/* ---- the thread that writes ---- */

struct trace_writer;
/* Starts the thread.  fd becomes the writer's in any case.  Returns 0; -ENOMEM; -EAGAIN: there may
 * be no thread. */
int trace_writer_new(int fd, bool gzip, struct trace_writer **ret_writer);
/* Hands bytes over.  flush: Z_NO_FLUSH, Z_SYNC_FLUSH, Z_FINISH; the last is always taken.  Returns
 * 0; -errno of bytes before; -ENOBUFS: too many wait already; -ENOMEM. */
int trace_writer_put(struct trace_writer *writer, const void *bytes, size_t size, int flush);
/* Waits until all is written and the file is closed, and does nothing else from now on: see
 * background_hurry().  Gives up when the thread has slept for limit_ns, and at
 * BACKGROUND_LIMITS_MAX times that.  Returns 0; -errno; -ETIMEDOUT.  Nothing can be put after
 * that. */
int trace_writer_end(struct trace_writer *writer, uint64_t limit_ns);
/* Drops what waits still.  Does not wait for a write that has begun. */
void trace_writer_free(struct trace_writer *writer);

/* ---- the file ---- */

struct trace_file;

struct trace_file_options {
	const char *path;   /* created or truncated; links are not followed */
	uint64_t max_bytes; /* before compression: what a viewer has to load */
	bool gzip;
	uid_t uid; /* its owner; -1: the user who runs this */
	gid_t gid;
};

/* Opens the file.  Returns 0; -EINVAL: the path is not a regular file; -EEXIST: it is another
 * user's in a sticky directory; -ENOMEM; -errno. */
int trace_file_open(const struct trace_file_options *options, struct trace_file **ret_file);
/* Closes the file as it is, without an end. */
void trace_file_free(struct trace_file *file);
DEFINE_OWNED(struct trace_file, trace_file)

/* Appends bytes.  Returns 0; -EFBIG: no room (a 16th of it is reserved for the end), and nothing
 * was written; -ENOBUFS: the disk is too slow; -ENOMEM; -errno of bytes before. */
int trace_file_put(struct trace_file *file, const void *bytes, size_t size);
/* Has all bytes written soon, so that a reader sees them.  Returns as trace_file_put(). */
int trace_file_flush(struct trace_file *file);
/* Releases the 16th that was reserved for the end. */
void trace_file_end(struct trace_file *file);
/* Writes the format's last bytes: up to TRACE_LAST_BYTES always have room. */
int trace_file_put_last(struct trace_file *file, const void *bytes, size_t size);
/* Closes the file; nothing can be put after that.  Returns 0; -errno; -ETIMEDOUT: the disk does not
 * answer for 30 s. */
int trace_file_close(struct trace_file *file);
uint64_t trace_file_bytes(const struct trace_file *file); /* before compression */

#endif
