/* SPDX-License-Identifier: BSD-2-Clause */
/* Writes tables: for people as text or Markdown, for programs as CSV, JSON or a script for sqlite3.
 * A view names its columns once and gives the cells of each row in their order.  How a format
 * quotes, aligns and separates stands here alone.
 *
 *	table_open -> { table_begin -> cells of rows -> table_end } -> table_close
 *
 * Cells are written at once; no row is kept. */
#ifndef RENDER_TABLE_H
#define RENDER_TABLE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/json_writer.h"

enum table_format { TABLE_TEXT, TABLE_CSV, TABLE_JSON, TABLE_MARKDOWN, TABLE_SQL };

struct table_column {
	const char *key;   /* the column's name for programs, "self_share"; NULL: for people only */
	const char *title; /* for people, "SELF %"; NULL: for programs only */
	/* Of text: the terminal's columns that a cell takes, with the blanks before it, to the
	 * right; negative: to the left, after two blanks.  0: the last one, not padded, after two
	 * blanks; -1: after one. */
	int width;
};

struct table {
	FILE *out;
	enum table_format format;
	bool color;
	struct json_writer json;
	const char *name, *paint;
	const struct table_column *column;
	unsigned int count, at;
	bool has_head; /* titles, or CSV's and SQL's names, are written */
	bool has_rows; /* of any table: CSV has the first table alone */
	bool is_left_out;
};

/* color: of text, whether it has any. */
void table_open(struct table *table, FILE *out, enum table_format format, bool color);
/* err: of what was written.  Returns err, else 0 or -EIO. */
int table_close(struct table *table, int err);
/* Returns whether a person reads the table: notes between tables and cuts by --top are welcome. */
static inline bool table_is_for_people(const struct table *table)
{
	return table->format == TABLE_TEXT || table->format == TABLE_MARKDOWN;
}

/* A fact about the whole, before the tables; of JSON only. */
void table_fact_string(struct table *table, const char *key, const char *text);
void table_fact_real(struct table *table, const char *key, double number);

/* Begins a table; columns are borrowed until table_end().  name: of JSON's array, and of SQL's
 * table.  Titles stand before the first row: a table without rows has none.  CSV has room for one
 * table: others after it are left out. */
void table_begin(struct table *table, const char *name, const struct table_column *column,
		 unsigned int count);
void table_end(struct table *table);

/* Says to people that so many rows are left out by --top; 0: nothing. */
void table_more_rows(const struct table *table, uint32_t count);

/* Paints the next cell of text with this escape sequence ("" or NULL: not at all). */
void table_paint(struct table *table, const char *sequence);
/* Cells.  shown: what people see; NULL: the number or text itself. */
void table_int(struct table *table, int64_t number, const char *shown);
/* digits: after the point.  NaN: the number is not known, which is empty, null or NULL. */
void table_real(struct table *table, double number, int digits, const char *shown);
void table_string(struct table *table, const char *text, const char *shown);
/* A value with its unit: "1.98 s" for people. */
void table_value(struct table *table, int64_t value, const char *unit);
/* The same of a table_real(). */
void table_measure(struct table *table, double value, int digits, const char *unit);
/* Writes text as a cell of CSV: in quotes, as names are chosen by others.  A spreadsheet computes a
 * cell that begins as a formula, quoted or not, and a formula can send what other cells hold: an
 * apostrophe makes it text.  Sources: RFC 4180; OWASP, "CSV Injection". */
void table_csv_text(const char *text, FILE *out);

#endif
