/* SPDX-License-Identifier: BSD-2-Clause */
/* Turns the line table of a code object into rows that are looked up.  Any bytes are a table.
 * Sources: CPython Objects/lnotab_notes.txt (<= 3.9, 3.10), Objects/locations.md (3.11+). */
#ifndef PYTHON_LINE_TABLE_H
#define PYTHON_LINE_TABLE_H

#include <stddef.h>
#include <stdint.h>

enum line_table_format {
	LINE_TABLE_LNOTAB_2, /* 2.7: lines only grow */
	LINE_TABLE_LNOTAB_3, /* 3.6 to 3.9 */
	LINE_TABLE_310,
	LINE_TABLE_311,
	LINE_TABLE_FORMATS
};
enum line_table_format line_table_format(unsigned int major, unsigned int minor);

/* The instructions from an offset on, up to the next row's, are of a line. */
struct line_row {
	uint32_t start; /* in bytes of bytecode */
	uint32_t line;	/* at most INT32_MAX; 0: none */
};
/* Writes rows, ascending, of which the first has the offset 0, and returns how many: at least one
 * if max is not 0, and at most max, behind which the table is not looked at.  Offsets after the end
 * of the table (which a truncated table has) have the last line in it. */
size_t line_table_rows(enum line_table_format format, const uint8_t *table, size_t size,
		       uint32_t first_line, struct line_row *rows, size_t max);
/* Returns the line at an offset, or 0 for "no line". */
uint32_t line_rows_find(const struct line_row *rows, size_t count, uint32_t offset);

#endif
