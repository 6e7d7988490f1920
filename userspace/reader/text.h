/* SPDX-License-Identifier: BSD-2-Clause */
/* Shared by the views in the terminal: colours, the head line, names of code. */
#ifndef READER_TEXT_H
#define READER_TEXT_H

#include <stdbool.h>
#include <stdio.h>

#include "query/input.h"
#include "render/code_table.h"
#include "render/table.h"

enum text_color { TEXT_PLAIN, TEXT_BOLD, TEXT_DIM, TEXT_RED, TEXT_YELLOW, TEXT_GREEN, TEXT_BLUE };

/* Returns true when standard output is a terminal that has colours, and NO_COLOR is not set. */
bool text_wants_color(void);
/* Returns the escape sequence, or "" without colours. */
const char *text_color(bool color, enum text_color which);
/* Returns the colour for a line's share of the total. */
enum text_color text_color_of_share(double share);

/* Returns the sum of one of the values, as far as int64_t holds it; index < 0: there is none, 0. */
int64_t text_sum(const struct input *input, int index);
/* Prints "cpu of P.pb.gz: 1.98 s in 198 samples, 10.0 s recorded", and a line about what is
 * missing. */
void text_head(FILE *out, const struct input *input);
/* Returns whether a comment is of a probe that was on for a part of the time
 * (probes/probe_bounds.c), and says that there was one. */
bool text_tells_scaled_probe(const char *comment);
void text_scaled(FILE *out);
/* Returns "w.py:12", "libc.so.6", in the caller's buffer. */
#define TEXT_PLACE_BYTES 4128U /* a path and a line number */
const char *text_place(const struct code_table *table, const struct code *code,
		       char buffer[TEXT_PLACE_BYTES]);
/* Cuts a name and a place so that "NAME  PLACE" takes `room` columns, but not less than
 * TEXT_MIN_ROOM; room 0: no limit.  What is cut lies in `cut`. */
#define TEXT_MIN_ROOM 24U
struct text_cut {
	char name[TEXT_PLACE_BYTES], place[TEXT_PLACE_BYTES];
};
void text_fit(unsigned int room, const char **name, const char **place, struct text_cut *cut);
/* Prints "NAME  PLACE" of a piece of code, both cut by text_fit(). */
void text_code(FILE *out, const struct code_table *table, const struct code *code,
	       unsigned int room, bool color);
/* Gives the cells of a piece of code: the last column of text is its name and place, cut as
 * text_code() does; for programs these are three columns, the name, the whole path and the line. */
#define TEXT_CODE_CELLS(title) {"name", title, 0}, {"file", NULL, 0}, {"line", NULL, 0}
void text_code_cells(struct table *table, const struct code_table *codes, const struct code *code,
		     unsigned int taken);
/* text_head() where a person reads the table, else facts of JSON: "profile", "type", "unit" and
 * "seconds". */
void text_table_head(struct table *table, const struct input *input);
/* Returns the numbers from 0, that with the largest value first; heap.  NULL: no memory. */
uint32_t *text_order(const int64_t *value, uint32_t count);
/* Prints lines to `out`, broken at blanks where they are longer than `columns`; what goes on is
 * indented.  columns 0: no limit. */
void text_wrap(FILE *out, const char *text, unsigned int indent, unsigned int columns);
/* Returns the columns left in a line of the terminal of which `taken` are used; 0: standard output
 * is not a terminal. */
unsigned int text_room(unsigned int taken);
/* Returns the columns that a table of text takes before its last one. */
unsigned int text_taken(const struct table *table);
/* Returns the columns of the terminal; 0: standard output is not a terminal. */
unsigned int text_columns(void);

#endif
