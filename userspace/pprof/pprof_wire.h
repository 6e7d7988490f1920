/* SPDX-License-Identifier: BSD-2-Clause */
/* Decodes the protobuf wire format field by field, without a copy or an allocation.  protobuf-c
 * builds the whole message as objects first, about six times the file's size; see
 * docs/design/profiles.md. */
#ifndef PPROF_PPROF_WIRE_H
#define PPROF_PPROF_WIRE_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct wire {
	const uint8_t *at, *end;
};

struct wire_field {
	uint32_t number;
	bool is_bytes;	/* else it is a number */
	uint64_t value; /* of a number */
	struct wire bytes;
};

enum { WIRE_VARINT = 0, WIRE_FIXED64 = 1, WIRE_BYTES = 2, WIRE_FIXED32 = 5 };

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

#endif
