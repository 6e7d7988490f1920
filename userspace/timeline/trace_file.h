/* SPDX-License-Identifier: BSD-2-Clause */
/* A file that is written as it comes and stays below a bound.  What is put is whole or not there, so
 * that the file can be read wherever it ends.  One thread. */
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
	const char *path;   /* created, or cut to nothing; no link is followed */
	uint64_t max_bytes; /* before compression: what a viewer has to load */
	bool gzip;
	uid_t uid; /* its owner; -1: who runs this */
	gid_t gid;
};

/* 0; -EEXIST: there is something that is no regular file; -ENOMEM; -errno. */
int trace_file_open(const struct trace_file_options *options, struct trace_file **ret_file);
/* Closes it as it is. */
void trace_file_free(struct trace_file *file);
DEFINE_OWNED(struct trace_file, trace_file)

/* 0; -EFBIG: no room, and nothing was written: a 16th is kept for the end; -ENOMEM; -errno. */
int trace_file_put(struct trace_file *file, const void *bytes, size_t size);
/* What was put is in the file; a reader sees it.  0; -errno. */
int trace_file_flush(struct trace_file *file);
/* From now on the 16th may be used. */
void trace_file_end(struct trace_file *file);
/* The format's last bytes: TRACE_LAST_BYTES at most have room in any case. */
int trace_file_put_last(struct trace_file *file, const void *bytes, size_t size);
/* Nothing can be put any more.  0; -errno. */
int trace_file_close(struct trace_file *file);
uint64_t trace_file_bytes(const struct trace_file *file); /* before compression */

#endif
