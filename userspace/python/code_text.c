/* SPDX-License-Identifier: BSD-2-Clause */
#include "python/code_text.h"

#include <errno.h>
#include <stdlib.h>

#include "python/python_objects.h"

void python_code_text_release(struct python_code_text *text)
{
	free(text->name);
	free(text->filename);
	free(text->row);
}

uint32_t python_code_rows_max(const struct python_code_raw *raw)
{
	/* An entry takes a byte at least, and the table begins and ends with a row. */
	const uint32_t rows = raw->line_table_bytes + 2;

	return rows < PYTHON_MAX_LINE_ROWS ? rows : PYTHON_MAX_LINE_ROWS;
}

static int decode_lines(const struct python_code_raw *raw, struct python_code_text *text)
{
	const uint8_t *table = raw->part + raw->name_bytes + raw->filename_bytes;
	const uint32_t max = python_code_rows_max(raw);
	struct line_row *smaller;

	text->row = malloc(max * sizeof(*text->row));
	if (!text->row)
		return -ENOMEM;
	text->row_count = (uint32_t)line_table_rows((enum line_table_format)raw->format, table,
						    raw->line_table_bytes, raw->first_line,
						    text->row, max);
	smaller = realloc(text->row, text->row_count * sizeof(*smaller));
	if (smaller)
		text->row = smaller;
	return 0;
}

int python_code_text_decode(const struct python_code_raw *raw, struct python_code_text *ret_text)
{
	CLEANUP(python_code_text_release) struct python_code_text text = {0};
	int err = python_text_decode(raw->part, raw->name_bytes, raw->name_kind, raw->is_bytes,
				     &text.name);

	if (!err)
		err = python_text_decode(raw->part + raw->name_bytes, raw->filename_bytes,
					 raw->filename_kind, raw->is_bytes, &text.filename);
	if (!err)
		err = decode_lines(raw, &text);
	if (err)
		return err;
	*ret_text = text;
	text = (struct python_code_text){0};
	return 0;
}

void python_code_set_text(struct python_code *code, struct python_code_text *text)
{
	free(code->raw);
	code->raw = NULL;
	code->name = text->name;
	code->filename = text->filename;
	code->row = text->row;
	code->row_count = text->row_count;
	*text = (struct python_code_text){0};
}
