/* SPDX-License-Identifier: BSD-2-Clause */
/* sources: python/python_code.c base/io.c python/python_objects.c python/python_text.c */
#include <stdlib.h>
#include <string.h>

#include "python/python_code.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_rows(const struct line_row *row, size_t count, size_t max)
{
	if (count > max || !count != !max || (count && row[0].start))
		abort();
	for (size_t i = 0; i < count; i++) {
		/* A line is an int in CPython. */
		if (row[i].line > INT32_MAX || (i && row[i].start <= row[i - 1].start))
			abort();
		if (line_rows_find(row, count, row[i].start) != row[i].line)
			abort();
	}
}

/* First line, how much room there is, then the table, which is looked at in all formats. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct line_row *row;
	uint32_t head[2];
	uint8_t *table;

	if (size < sizeof(head))
		return 0;
	memcpy(head, data, sizeof(head));
	size -= sizeof(head);
	table = malloc(size + 1);
	for (size_t max = size + 2;; max = head[1] % (size + 2)) {
		row = malloc(max * sizeof(*row));
		if (!table || (max && !row))
			abort();
		memcpy(table, data + sizeof(head), size);
		for (unsigned int format = 0; format < LINE_TABLE_FORMATS; format++)
			check_rows(row,
				   line_table_rows((enum line_table_format)format, table, size,
						   head[0], row, max),
				   max);
		free(row);
		if (max != size + 2)
			break;
	}
	free(table);
	return 0;
}
