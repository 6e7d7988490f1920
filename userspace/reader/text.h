/* SPDX-License-Identifier: BSD-2-Clause */
/* What the views in the terminal share: colours, the head line, names of code. */
#ifndef READER_TEXT_H
#define READER_TEXT_H

#include <stdbool.h>
#include <stdio.h>

#include "reader/input.h"
#include "render/code_table.h"

enum text_color { TEXT_PLAIN, TEXT_BOLD, TEXT_DIM, TEXT_RED, TEXT_YELLOW, TEXT_GREEN, TEXT_BLUE };

/* Standard output is a terminal, NO_COLOR is not set, and --no-color not given. */
bool text_wants_color(bool no_color);
/* The escape sequence, or "" without colours. */
const char *text_color(bool color, enum text_color which);
/* By how much of all a line takes. */
enum text_color text_color_of_share(double share);

/* "cpu of P.pb.gz: 1.98 s in 198 samples, 10.0 s recorded", and a line about what is not there. */
void text_head(FILE *out, const struct input *input);
/* "w.py:12", "libc.so.6"; the buffer is the caller's. */
#define TEXT_PLACE_BYTES 512U
const char *text_place(const struct code_table *table, const struct code *code,
		       char buffer[TEXT_PLACE_BYTES]);
/* Prints "NAME  PLACE" on standard output, both cut so that they take `room` columns at most, but no less than
 * TEXT_MIN_ROOM; room 0: as many as they need. */
#define TEXT_MIN_ROOM 24U
void text_code(const struct code_table *table, const struct code *code, const char *name,
	       unsigned int room, bool color);
/* Columns that are left in a line of the terminal of which so many are taken; 0: standard output is none. */
unsigned int text_room(unsigned int taken);
/* Columns of the terminal, 0: standard output is none. */
unsigned int text_columns(void);

#endif
