/* SPDX-License-Identifier: BSD-2-Clause */
/* Compresses a stream into one gzip buffer: only the compressed bytes are in memory. */
#ifndef PPROF_GZIP_SINK_H
#define PPROF_GZIP_SINK_H

#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"

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
