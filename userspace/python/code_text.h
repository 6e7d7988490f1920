/* SPDX-License-Identifier: BSD-2-Clause */
/* Decodes the names and the line table of a code object.  The child does this; the agent keeps what
 * it says. */
#ifndef PYTHON_CODE_TEXT_H
#define PYTHON_CODE_TEXT_H

#include "python/python_code.h"

/* Lines of more rows are those of the last one; a function of 100,000 lines has as many. */
#define PYTHON_MAX_LINE_ROWS 131072U
/* A byte becomes U+FFFD at most. */
#define PYTHON_MAX_NAME_TEXT (3 * PYTHON_MAX_NAME_BYTES)

struct python_code_text {
	char *name, *filename; /* owned; UTF-8, as python_text_decode() gives them */
	struct line_row *row;  /* owned; as line_table_rows() gives them */
	uint32_t row_count;
};
void python_code_text_release(struct python_code_text *text);
/* Returns how many rows the line table has at most. */
uint32_t python_code_rows_max(const struct python_code_raw *raw);
/* Decodes a sound code object.  Returns 0 or -ENOMEM. */
int python_code_text_decode(const struct python_code_raw *raw, struct python_code_text *ret_text);
/* Gives a code object its texts, which it takes over, for its raw bytes. */
void python_code_set_text(struct python_code *code, struct python_code_text *text);

#endif
