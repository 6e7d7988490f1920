/* SPDX-License-Identifier: BSD-2-Clause */
/* protobuf-c messages -> one gzip buffer.  A window's raw form (megabytes) is never held: only what
 * waits for the next deflate() call is, and the compressed bytes. */
#ifndef PPROF_GZIP_SINK_H
#define PPROF_GZIP_SINK_H

#include <protobuf-c/protobuf-c.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"

struct gzip_sink;

int gzip_sink_new(struct gzip_sink **ret_sink);
void gzip_sink_free(struct gzip_sink *sink);
DEFINE_OWNED(struct gzip_sink, gzip_sink)

/* One element of a message's field: tag, length, bytes.  0 or -ENOMEM. */
int gzip_sink_put_bytes(struct gzip_sink *sink, uint32_t field, const void *bytes, size_t size);
int gzip_sink_put_message(struct gzip_sink *sink, uint32_t field, const ProtobufCMessage *message);
/* The fields of a message themselves, with no tag in front: a part of the outermost message. */
int gzip_sink_put_fields(struct gzip_sink *sink, const ProtobufCMessage *message);
/* Ends the stream; the sink can only be freed then.  Bytes on the heap. */
int gzip_sink_finish(struct gzip_sink *sink, void **ret_bytes, size_t *ret_size);

#endif
