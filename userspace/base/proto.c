/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/proto.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_BYTES 65536U
#define MAX_VARINT_BYTES 10U
/* Bytes that are reserved for a nested message's length before it is known.  Most are below 128;
 * a longer message moves when it is closed. */
#define LENGTH_BYTES 1U

void proto_release(struct proto_writer *proto)
{
	free(proto->byte);
	*proto = (struct proto_writer){0};
}

static uint8_t *reserve(struct proto_writer *proto, size_t size)
{
	size_t capacity = proto->capacity ? proto->capacity : FIRST_BYTES;
	uint8_t *grown;

	if (proto->error)
		return NULL;
	if (proto->capacity - proto->size >= size)
		return proto->byte + proto->size;
	while (capacity - proto->size < size)
		capacity *= 2;
	grown = realloc(proto->byte, capacity);
	if (!grown) {
		proto->error = -ENOMEM;
		return NULL;
	}
	proto->byte = grown;
	proto->capacity = capacity;
	return grown + proto->size;
}

static size_t varint_bytes(uint64_t value)
{
	size_t bytes = 1;

	while (value >>= 7)
		bytes++;
	return bytes;
}

/* Returns the end of what it wrote. */
static uint8_t *put_varint(uint8_t *to, uint64_t value)
{
	for (; value >= 0x80; value >>= 7)
		*to++ = (uint8_t)(value | 0x80);
	*to++ = (uint8_t)value;
	return to;
}

void proto_packed(struct proto_writer *proto, uint64_t value)
{
	uint8_t *to = reserve(proto, MAX_VARINT_BYTES);

	if (to)
		proto->size = (size_t)(put_varint(to, value) - proto->byte);
}

static void put_tag(struct proto_writer *proto, uint32_t field, unsigned int wire)
{
	proto_packed(proto, (uint64_t)field << 3 | wire);
}

void proto_open(struct proto_writer *proto, uint32_t field)
{
	assert(proto->depth < PROTO_MAX_DEPTH);
	put_tag(proto, field, WIRE_BYTES);
	if (!reserve(proto, LENGTH_BYTES))
		return;
	proto->open[proto->depth++] = proto->size;
	proto->size += LENGTH_BYTES;
}

void proto_close(struct proto_writer *proto)
{
	size_t at, length, more;

	if (proto->error)
		return;
	assert(proto->depth);
	at = proto->open[--proto->depth];
	length = proto->size - at - LENGTH_BYTES;
	more = varint_bytes(length) - LENGTH_BYTES;
	if (more) {
		if (!reserve(proto, more))
			return;
		memmove(proto->byte + at + LENGTH_BYTES + more, proto->byte + at + LENGTH_BYTES,
			length);
	}
	put_varint(proto->byte + at, length);
	proto->size += more;
}

void proto_uint_always(struct proto_writer *proto, uint32_t field, uint64_t value)
{
	put_tag(proto, field, WIRE_VARINT);
	proto_packed(proto, value);
}

void proto_uint(struct proto_writer *proto, uint32_t field, uint64_t value)
{
	if (value)
		proto_uint_always(proto, field, value);
}

void proto_fixed64(struct proto_writer *proto, uint32_t field, uint64_t value)
{
	uint8_t *to;

	put_tag(proto, field, WIRE_FIXED64);
	to = reserve(proto, 8);
	if (!to)
		return;
	for (unsigned int i = 0; i < 8; i++)
		to[i] = (uint8_t)(value >> 8 * i);
	proto->size += 8;
}

void proto_bytes(struct proto_writer *proto, uint32_t field, const void *bytes, size_t size)
{
	uint8_t *to;

	put_tag(proto, field, WIRE_BYTES);
	proto_packed(proto, size);
	to = reserve(proto, size);
	if (!to || !size)
		return;
	memcpy(to, bytes, size);
	proto->size += size;
}

void proto_text(struct proto_writer *proto, uint32_t field, const char *text)
{
	proto_bytes(proto, field, text, strlen(text));
}

int proto_flush(struct proto_writer *proto, FILE *out)
{
	if (proto->error)
		return proto->error;
	assert(!proto->depth);
	if (proto->size && fwrite(proto->byte, proto->size, 1, out) != 1)
		return -EIO;
	proto->size = 0;
	return 0;
}
