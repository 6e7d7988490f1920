/* SPDX-License-Identifier: BSD-2-Clause */
/* The protobuf wire format, field by field: struct wire reads it without a copy or an
 * allocation, struct proto_writer writes it into a growing buffer.  There are no objects of
 * messages: those of a profile take about six times the file's size (docs/design/profiles.md).  The
 * callers' enums name the fields' numbers. */
#ifndef BASE_PROTO_H
#define BASE_PROTO_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum { WIRE_VARINT = 0, WIRE_FIXED64 = 1, WIRE_BYTES = 2, WIRE_FIXED32 = 5 };

/* ---- reading: no byte is believed, and none behind `end` is read ---- */

struct wire {
	const uint8_t *at, *end;
};

struct wire_field {
	uint32_t number;
	bool is_bytes;	/* else it is a number */
	uint64_t value; /* of a number */
	struct wire bytes;
};

static inline bool wire_varint(struct wire *wire, uint64_t *ret_value)
{
	uint64_t value = 0;

	for (unsigned int shift = 0; shift < 64 && wire->at < wire->end; shift += 7) {
		uint8_t byte = *wire->at++;

		value |= (uint64_t)(byte & 0x7f) << shift;
		if (!(byte & 0x80)) {
			*ret_value = value;
			return true;
		}
	}
	return false;
}

static inline bool wire_fixed(struct wire *wire, unsigned int bytes, uint64_t *ret_value)
{
	uint64_t value = 0;

	if ((size_t)(wire->end - wire->at) < bytes)
		return false;
	for (unsigned int i = 0; i < bytes; i++)
		value |= (uint64_t)wire->at[i] << 8 * i;
	wire->at += bytes;
	*ret_value = value;
	return true;
}

/* Reads the next field.  Returns 1; 0 at the end; -EBADMSG. */
static inline int wire_next(struct wire *wire, struct wire_field *field)
{
	uint64_t tag;

	if (wire->at == wire->end)
		return 0;
	if (!wire_varint(wire, &tag) || tag >> 3 == 0 || tag >> 3 > UINT32_MAX)
		return -EBADMSG;
	field->number = (uint32_t)(tag >> 3);
	field->is_bytes = (tag & 7) == WIRE_BYTES;
	switch (tag & 7) {
	case WIRE_VARINT:
		return wire_varint(wire, &field->value) ? 1 : -EBADMSG;
	case WIRE_FIXED64:
		return wire_fixed(wire, 8, &field->value) ? 1 : -EBADMSG;
	case WIRE_FIXED32:
		return wire_fixed(wire, 4, &field->value) ? 1 : -EBADMSG;
	case WIRE_BYTES:
		if (!wire_varint(wire, &field->value) ||
		    field->value > (size_t)(wire->end - wire->at))
			return -EBADMSG;
		field->bytes = (struct wire){wire->at, wire->at + field->value};
		wire->at += field->value;
		return 1;
	default:
		return -EBADMSG;
	}
}

/* Reads a message that has only numbers: the number of field i goes to *place[i], unless that is
 * NULL or i >= count.  Returns 0; a negative result as wire_next(). */
static inline int wire_numbers(struct wire message, uint64_t *const place[], size_t count)
{
	struct wire_field field;
	int more;

	while ((more = wire_next(&message, &field)) > 0)
		if (!field.is_bytes && field.number < count && place[field.number])
			*place[field.number] = field.value;
	return more;
}

/* ---- writing ---- */

#define PROTO_MAX_DEPTH 16U

/* A zeroed writer is empty; release with proto_release().  After a failed allocation nothing is
 * written any more: callers look at the error once, at the end. */
struct proto_writer {
	uint8_t *byte;
	size_t size, capacity;
	size_t open[PROTO_MAX_DEPTH]; /* offsets of the lengths of open messages */
	unsigned int depth;
	int error; /* 0 or -ENOMEM */
};

void proto_release(struct proto_writer *proto);
/* Open and close a nested message, or a packed list. */
void proto_open(struct proto_writer *proto, uint32_t field);
void proto_close(struct proto_writer *proto);
/* Writes a number; leaves out 0, which is what a missing field means. */
void proto_uint(struct proto_writer *proto, uint32_t field, uint64_t value);
/* Writes a number even when it is 0: for a member of a oneof, or an index in a list. */
void proto_uint_always(struct proto_writer *proto, uint32_t field, uint64_t value);
void proto_fixed64(struct proto_writer *proto, uint32_t field, uint64_t value);
void proto_bytes(struct proto_writer *proto, uint32_t field, const void *bytes, size_t size);
void proto_text(struct proto_writer *proto, uint32_t field, const char *text);
/* Writes an element of a packed list. */
void proto_packed(struct proto_writer *proto, uint64_t value);
/* Writes the buffer to `out` and empties it.  Returns 0, an earlier -ENOMEM, -EIO. */
int proto_flush(struct proto_writer *proto, FILE *out);

#endif
