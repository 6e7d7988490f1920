/* SPDX-License-Identifier: BSD-2-Clause */
/* A file that is written while the data comes in and stays below a bound.  Each put is written
 * whole or not at all, so that the file can be read wherever it ends.  One thread, and one that
 * writes (trace_writer.h). */
#ifndef TIMELINE_TRACE_FILE_H
#define TIMELINE_TRACE_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/cleanup.h"

struct trace_file;

#define TRACE_LAST_BYTES 16U

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
