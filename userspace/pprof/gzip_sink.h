/* SPDX-License-Identifier: BSD-2-Clause */
/* Writes protobuf-c messages into one gzip buffer.  The uncompressed form (megabytes a window) is
 * never in memory: only the input of the next deflate() call is, and the compressed bytes. */
#ifndef PPROF_GZIP_SINK_H
#define PPROF_GZIP_SINK_H

#include <protobuf-c/protobuf-c.h>
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

/* Write one element of a message's field: tag, length, bytes.  Return 0 or -ENOMEM. */
int gzip_sink_put_bytes(struct gzip_sink *sink, uint32_t field, const void *bytes, size_t size);
int gzip_sink_put_message(struct gzip_sink *sink, uint32_t field, const ProtobufCMessage *message);
/* Writes the fields of a message without a tag in front of them, as part of the outermost
 * message. */
int gzip_sink_put_fields(struct gzip_sink *sink, const ProtobufCMessage *message);
/* Ends the stream; after that the sink can only be freed.  The bytes are on the heap. */
int gzip_sink_finish(struct gzip_sink *sink, void **ret_bytes, size_t *ret_size);

#endif
