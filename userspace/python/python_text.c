/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "python/python_objects.h"

#define REPLACEMENT 0xfffdU
#define MAX_UTF8_BYTES 4U
#define MAX_CODE_POINT 0x10ffffU

static uint32_t checked_character(uint32_t character)
{
	bool is_surrogate = character >= 0xd800 && character <= 0xdfff;

	return !character || is_surrogate || character > MAX_CODE_POINT ? REPLACEMENT : character;
}

static size_t put_utf8(char *to, uint32_t character)
{
	if (character < 0x80) {
		to[0] = (char)character;
		return 1;
	}
	if (character < 0x800) {
		to[0] = (char)(0xc0 | character >> 6);
		to[1] = (char)(0x80 | (character & 63));
		return 2;
	}
	if (character < 0x10000) {
		to[0] = (char)(0xe0 | character >> 12);
		to[1] = (char)(0x80 | (character >> 6 & 63));
		to[2] = (char)(0x80 | (character & 63));
		return 3;
	}
	to[0] = (char)(0xf0 | character >> 18);
	to[1] = (char)(0x80 | (character >> 12 & 63));
	to[2] = (char)(0x80 | (character >> 6 & 63));
	to[3] = (char)(0x80 | (character & 63));
	return 4;
}

/* Reads one UTF-8 character of at most `size` bytes; a byte that starts none becomes a
 * replacement. */
static uint32_t take_utf8(const uint8_t *bytes, size_t size, size_t *ret_taken)
{
	static const uint32_t lowest[] = {0, 0, 0x80, 0x800, 0x10000};
	size_t length = bytes[0] < 0x80		? 1
			: bytes[0] >> 5 == 0x06 ? 2
			: bytes[0] >> 4 == 0x0e ? 3
			: bytes[0] >> 3 == 0x1e ? 4
						: 0;
	uint32_t character;

	*ret_taken = 1;
	if (length == 1)
		return checked_character(bytes[0]);
	if (!length || length > size)
		return REPLACEMENT;
	character = bytes[0] & (0x7fU >> length);
	for (size_t at = 1; at < length; at++) {
		if (bytes[at] >> 6 != 2)
			return REPLACEMENT;
		character = character << 6 | (bytes[at] & 63);
	}
	if (character < lowest[length] || checked_character(character) != character)
		return REPLACEMENT;
	*ret_taken = length;
	return character;
}

static uint32_t take_character(const uint8_t *bytes, size_t size, unsigned int kind, bool is_bytes,
			       size_t *ret_taken)
{
	uint16_t unit;

	if (is_bytes)
		return take_utf8(bytes, size, ret_taken);
	*ret_taken = kind;
	if (kind == 1)
		return checked_character(bytes[0]);
	if (kind == 2) {
		memcpy(&unit, bytes, sizeof(unit));
		return checked_character(unit);
	}
	return checked_character(load_u32(bytes));
}

static char *shrunk(char *text, size_t size)
{
	char *smaller = realloc(text, size);

	return smaller ? smaller : text;
}

int python_text_decode(const uint8_t *bytes, size_t size, unsigned int kind, bool is_bytes,
		       char **ret_text)
{
	/* Each byte gives at most two bytes (Latin-1), or three as a replacement. */
	size_t capacity = size * 3 + MAX_UTF8_BYTES + 1, used = 0, taken = 0;
	char *text;

	if (size && kind != 1 && kind != 2 && kind != 4)
		return -EBADMSG;
	text = malloc(capacity);
	if (!text)
		return -ENOMEM;
	for (size_t at = 0; size && at + kind <= size; at += taken)
		used += put_utf8(text + used,
				 take_character(bytes + at, size - at, kind, is_bytes, &taken));
	text[used] = '\0';
	*ret_text = shrunk(text, used + 1);
	return 0;
}

size_t python_text_cut(const char *text, size_t max_bytes)
{
	size_t size = strnlen(text, max_bytes + 1);

	if (size <= max_bytes)
		return size;
	size = max_bytes;
	while (size && ((uint8_t)text[size] & 0xc0) == 0x80)
		size--;
	return size;
}
