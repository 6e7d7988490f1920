/* SPDX-License-Identifier: BSD-2-Clause */
/* Protobuf messages into a growing buffer, field by field: nested ones are opened and closed, their
 * lengths put in afterwards.  No allocation can fail unseen: proto_error() says so at the end. */
#ifndef EXPORT_PROTO_WRITER_H
#define EXPORT_PROTO_WRITER_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define PROTO_MAX_DEPTH 16U

/* All zero is an empty one; release with proto_release(). */
struct proto_writer {
	uint8_t *byte;
	size_t size, capacity;
	size_t open[PROTO_MAX_DEPTH]; /* where the lengths stand */
	unsigned int depth;
	int error; /* 0 or -ENOMEM */
};

void proto_release(struct proto_writer *proto);
void proto_open(struct proto_writer *proto, uint32_t field);
void proto_close(struct proto_writer *proto);
/* 0 is what a missing field means: left out. */
void proto_uint(struct proto_writer *proto, uint32_t field, uint64_t value);
/* Also 0: a member of a oneof, an index in a list. */
void proto_uint_always(struct proto_writer *proto, uint32_t field, uint64_t value);
void proto_fixed64(struct proto_writer *proto, uint32_t field, uint64_t value);
void proto_bytes(struct proto_writer *proto, uint32_t field, const void *bytes, size_t size);
void proto_text(struct proto_writer *proto, uint32_t field, const char *text);
/* An element of a packed list that proto_open() opened. */
void proto_packed(struct proto_writer *proto, uint64_t value);
/* Writes what is there, and empties the buffer.  0, -ENOMEM of before, -EIO. */
int proto_flush(struct proto_writer *proto, FILE *out);

#endif
