/* SPDX-License-Identifier: BSD-2-Clause */
/* Writes protobuf messages into a growing buffer, field by field.  A nested message is opened and
 * closed, and its length inserted when it is closed.  A failed allocation is reported at the end,
 * by proto_flush(). */
#ifndef EXPORT_PROTO_WRITER_H
#define EXPORT_PROTO_WRITER_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define PROTO_MAX_DEPTH 16U

/* A zeroed writer is empty; release with proto_release(). */
struct proto_writer {
	uint8_t *byte;
	size_t size, capacity;
	size_t open[PROTO_MAX_DEPTH]; /* offsets of the lengths of open messages */
	unsigned int depth;
	int error; /* 0 or -ENOMEM */
};

void proto_release(struct proto_writer *proto);
void proto_open(struct proto_writer *proto, uint32_t field);
void proto_close(struct proto_writer *proto);
/* Writes a number; leaves out 0, which is what a missing field means. */
void proto_uint(struct proto_writer *proto, uint32_t field, uint64_t value);
/* Writes a number even when it is 0: for a member of a oneof, or an index in a list. */
void proto_uint_always(struct proto_writer *proto, uint32_t field, uint64_t value);
void proto_fixed64(struct proto_writer *proto, uint32_t field, uint64_t value);
void proto_bytes(struct proto_writer *proto, uint32_t field, const void *bytes, size_t size);
void proto_text(struct proto_writer *proto, uint32_t field, const char *text);
/* Writes an element of a packed list that proto_open() opened. */
void proto_packed(struct proto_writer *proto, uint64_t value);
/* Writes the buffer to `out` and empties it.  Returns 0, an earlier -ENOMEM, -EIO. */
int proto_flush(struct proto_writer *proto, FILE *out);

#endif
