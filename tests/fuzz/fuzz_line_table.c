/* SPDX-License-Identifier: BSD-2-Clause */
/* sources: python/line_table.c */
#include <stdlib.h>
#include <string.h>

#include "python/python_code.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* First line, offset, then the table, which is looked at in all formats. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint32_t head[2], found = 0;
	uint8_t *table;

	if (size < sizeof(head))
		return 0;
	memcpy(head, data, sizeof(head));
	size -= sizeof(head);
	table = malloc(size + 1);
	if (!table)
		return 0;
	memcpy(table, data + sizeof(head), size);
	for (uint32_t offset = 0; offset < 2 * size; offset += 2) {
		found |= line_table_find_lnotab(table, size, head[0], offset, 0);
		found |= line_table_find_lnotab(table, size, head[0], offset, 1);
		found |= line_table_find_310(table, size, head[0], offset);
		found |= line_table_find_311(table, size, head[0], offset);
	}
	found |= line_table_find_lnotab(table, size, head[0], head[1], 0);
	found |= line_table_find_310(table, size, head[0], head[1]);
	found |= line_table_find_311(table, size, head[0], head[1]);
	free(table);
	/* A line is an int in CPython. */
	if (found > INT32_MAX)
		abort();
	return 0;
}
