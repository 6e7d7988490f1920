/* SPDX-License-Identifier: BSD-2-Clause */
#include <limits.h>

#include "python/python_code.h"

#define LNOTAB_ENTRY_BYTES 2U
#define NO_LINE_310 (-128)   /* the delta that means "this range has no line" */
#define CODE_UNIT_BYTES 2U   /* 3.11+: lengths count code units */
/* six bits a byte; CPython does not write more bytes than an int needs */
#define MAX_VARINT_SHIFT 30U

/* Kinds of an entry of a location table (Objects/locations.md); those below are "short forms". */
enum location_kind {
	LOCATION_ONE_LINE = 10, /* 10, 11, 12: adds 0, 1, 2 to the line */
	LOCATION_NO_COLUMNS = 13,
	LOCATION_LONG = 14,
	LOCATION_NONE = 15,
};

/* Tables may be hostile: sums wrap as unsigned, and a line that CPython cannot have becomes 0. */
static uint32_t checked_line(uint32_t line)
{
	return line <= INT_MAX ? line : 0;
}

uint32_t line_table_find_lnotab(const uint8_t *table, size_t size, uint32_t first_line,
				uint32_t offset, int is_python2)
{
	uint32_t line = first_line;
	uint64_t start = 0;

	for (size_t at = 0; at + LNOTAB_ENTRY_BYTES <= size; at += LNOTAB_ENTRY_BYTES) {
		start += table[at];
		if (start > offset)
			break;
		/* Deltas are unsigned until 3.5, signed from 3.6 on. */
		line += is_python2 ? table[at + 1] : (uint32_t)(int8_t)table[at + 1];
	}
	return checked_line(line);
}

uint32_t line_table_find_310(const uint8_t *table, size_t size, uint32_t first_line,
			     uint32_t offset)
{
	uint32_t line = first_line;
	uint64_t end = 0;

	for (size_t at = 0; at + LNOTAB_ENTRY_BYTES <= size; at += LNOTAB_ENTRY_BYTES) {
		int8_t delta = (int8_t)table[at + 1];

		end += table[at];
		if (delta != NO_LINE_310)
			line += (uint32_t)delta;
		if (offset < end)
			return delta == NO_LINE_310 ? 0 : checked_line(line);
	}
	return checked_line(line);
}

/* A cursor over a location table; a read past the end sets is_cut and gives 0. */
struct location_cursor {
	const uint8_t *at, *end;
	int is_cut;
};

static uint8_t read_byte(struct location_cursor *cursor)
{
	if (cursor->at >= cursor->end) {
		cursor->is_cut = 1;
		return 0;
	}
	return *cursor->at++;
}

/* Six bits a byte, least significant first; bit 6: more follows. */
static uint32_t read_varint(struct location_cursor *cursor)
{
	uint32_t value = 0;

	for (uint32_t shift = 0;; shift += 6) {
		uint8_t byte = read_byte(cursor);

		if (shift <= MAX_VARINT_SHIFT)
			value |= (uint32_t)(byte & 63) << shift;
		if (!(byte & 64))
			return value;
	}
}

static uint32_t read_signed_varint(struct location_cursor *cursor)
{
	uint32_t value = read_varint(cursor);

	return value & 1 ? 0U - (value >> 1) : value >> 1;
}

/* Reads what follows an entry's first byte; returns what is added to the line. */
static uint32_t read_line_delta(struct location_cursor *cursor, unsigned int kind)
{
	uint32_t delta;

	switch (kind) {
	case LOCATION_NONE:
		return 0;
	case LOCATION_LONG:
		delta = read_signed_varint(cursor);
		read_varint(cursor); /* end line */
		read_varint(cursor); /* column */
		read_varint(cursor); /* end column */
		return delta;
	case LOCATION_NO_COLUMNS:
		return read_signed_varint(cursor);
	default:
		read_byte(cursor);
		if (kind < LOCATION_ONE_LINE)
			return 0;
		read_byte(cursor);
		return kind - LOCATION_ONE_LINE;
	}
}

uint32_t line_table_find_311(const uint8_t *table, size_t size, uint32_t first_line,
			     uint32_t offset)
{
	struct location_cursor cursor = {.at = table, .end = table + size};
	uint32_t line = first_line;
	uint64_t end = 0;

	while (cursor.at < cursor.end) {
		uint8_t head = read_byte(&cursor);
		unsigned int kind = (head >> 3) & 15;
		uint32_t delta = read_line_delta(&cursor, kind);

		/* An entry that is cut says nothing. */
		if (cursor.is_cut)
			break;
		line += delta;
		end += ((head & 7) + 1) * CODE_UNIT_BYTES;
		if (offset < end)
			return kind == LOCATION_NONE ? 0 : checked_line(line);
	}
	return checked_line(line);
}
