/* SPDX-License-Identifier: BSD-2-Clause */
#include "python/line_table.h"

#include <limits.h>
#include <stdbool.h>

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

enum line_table_format line_table_format(unsigned int major, unsigned int minor)
{
	if (major < 3)
		return LINE_TABLE_LNOTAB_2;
	if (minor < 10)
		return LINE_TABLE_LNOTAB_3;
	return minor == 10 ? LINE_TABLE_310 : LINE_TABLE_311;
}

struct rows {
	struct line_row *row;
	size_t count, max;
};

/* Adds the line of what begins at `start`, which never goes back.  Returns false when there is no
 * room, or no instruction can be there. */
static bool put(struct rows *rows, uint64_t start, uint32_t line)
{
	struct line_row *last = rows->count ? &rows->row[rows->count - 1] : NULL;

	line = checked_line(line);
	if (start > UINT32_MAX)
		return false;
	if (last && last->start == start) {
		last->line = line;
		return true;
	}
	if (last && last->line == line)
		return true;
	if (rows->count == rows->max)
		return false;
	rows->row[rows->count++] = (struct line_row){.start = (uint32_t)start, .line = line};
	return true;
}

static void rows_of_lnotab(const uint8_t *table, size_t size, uint32_t line, bool only_grows,
			   struct rows *rows)
{
	uint64_t start = 0;
	bool goes_on = put(rows, 0, line);

	for (size_t at = 0; goes_on && at + LNOTAB_ENTRY_BYTES <= size; at += LNOTAB_ENTRY_BYTES) {
		start += table[at];
		/* Deltas are unsigned until 3.5, signed from 3.6 on. */
		line += only_grows ? table[at + 1] : (uint32_t)(int8_t)table[at + 1];
		goes_on = put(rows, start, line);
	}
}

static void rows_of_310(const uint8_t *table, size_t size, uint32_t line, struct rows *rows)
{
	uint64_t end = 0;
	bool goes_on = true;

	for (size_t at = 0; goes_on && at + LNOTAB_ENTRY_BYTES <= size; at += LNOTAB_ENTRY_BYTES) {
		const int8_t delta = (int8_t)table[at + 1];

		if (delta != NO_LINE_310)
			line += (uint32_t)delta;
		goes_on = put(rows, end, delta == NO_LINE_310 ? 0 : line);
		end += table[at];
	}
	if (goes_on)
		(void)put(rows, end, line);
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

static void rows_of_311(const uint8_t *table, size_t size, uint32_t line, struct rows *rows)
{
	struct location_cursor cursor = {.at = table, .end = table + size};
	uint64_t end = 0;
	bool goes_on = true;

	while (goes_on && cursor.at < cursor.end) {
		const uint8_t head = read_byte(&cursor);
		const unsigned int kind = (head >> 3) & 15;
		const uint32_t delta = read_line_delta(&cursor, kind);

		/* An entry that is cut says nothing. */
		if (cursor.is_cut)
			break;
		line += delta;
		goes_on = put(rows, end, kind == LOCATION_NONE ? 0 : line);
		end += ((head & 7) + 1) * CODE_UNIT_BYTES;
	}
	if (goes_on)
		(void)put(rows, end, line);
}

size_t line_table_rows(enum line_table_format format, const uint8_t *table, size_t size,
		       uint32_t first_line, struct line_row *ret_rows, size_t max)
{
	struct rows rows = {.row = ret_rows, .max = max};

	if (format == LINE_TABLE_311)
		rows_of_311(table, size, first_line, &rows);
	else if (format == LINE_TABLE_310)
		rows_of_310(table, size, first_line, &rows);
	else
		rows_of_lnotab(table, size, first_line, format == LINE_TABLE_LNOTAB_2, &rows);
	return rows.count;
}

uint32_t line_rows_find(const struct line_row *rows, size_t count, uint32_t offset)
{
	size_t low = 0, high = count;

	while (low < high) {
		const size_t middle = low + (high - low) / 2;

		if (rows[middle].start <= offset)
			low = middle + 1;
		else
			high = middle;
	}
	return low ? rows[low - 1].line : 0;
}
