/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads a file, gzip'd or not, into one buffer that is reused for the next file.  Compresses a
 * stream into one gzip buffer: only the compressed bytes are in memory. */
#ifndef PPROF_GZIP_H
#define PPROF_GZIP_H

#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"

/* A zeroed buffer is empty. */
struct unpacked {
	uint8_t *byte;
	size_t size, capacity;
	uint64_t packed_size;
	const char *error; /* in words; a literal */
};

/* Reads a file from its beginning to its end, with all gzip members in it.
 * Returns 0; -ENODATA: empty; -EFBIG: more than max_bytes, packed or unpacked, or more than 64 MiB
 * that unpack to more than 256 times their size; -EBADMSG: the gzip data is truncated or corrupt,
 * or another compression; -ENOMEM; -errno of reading. */
int unpack_file(struct unpacked *unpacked, int fd, size_t max_bytes);
void unpack_release(struct unpacked *unpacked);

struct gzip_sink;

/* How much time a file is worth. */
enum gzip_effort {
	GZIP_FAST = 1,	/* level 6 saves 15 % of the bytes for twice the time */
	GZIP_SMALL = 9, /* for what is kept for long */
};
int gzip_sink_new(enum gzip_effort effort, struct gzip_sink **ret_sink);
void gzip_sink_free(struct gzip_sink *sink);
DEFINE_OWNED(struct gzip_sink, gzip_sink)

/* Returns 0 or -ENOMEM. */
int gzip_sink_put(struct gzip_sink *sink, const void *bytes, size_t size);
/* Ends the stream; after that the sink can only be freed.  The bytes are on the heap. */
int gzip_sink_finish(struct gzip_sink *sink, void **ret_bytes, size_t *ret_size);

#endif
