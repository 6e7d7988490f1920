/* SPDX-License-Identifier: BSD-2-Clause */
#include "render/table.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "render/format.h"
#include "render/short_paths.h"

#define LEFT_BLANKS 2
#define NUMBER_BYTES 400U /* of the largest double, with its digits */

/* A number or a text, as programs read it. */
struct value {
	enum { VALUE_NONE, VALUE_NUMBER, VALUE_TEXT } is;
	const char *text;
};

void table_open(struct table *table, FILE *out, enum table_format format, bool color)
{
	*table = (struct table){.out = out,
				.format = format,
				.color = color && format == TABLE_TEXT,
				.json = json_writer_to(out)};
	if (format == TABLE_JSON)
		json_open(&table->json, '{');
	if (format == TABLE_SQL)
		fputs("BEGIN;\n", out);
}

int table_close(struct table *table, int err)
{
	if (table->format == TABLE_JSON) {
		json_close(&table->json, '}');
		putc('\n', table->out);
	}
	if (table->format == TABLE_SQL)
		fputs("COMMIT;\n", table->out);
	return err ? err : ferror(table->out) ? -EIO : 0;
}

void table_fact_string(struct table *table, const char *key, const char *text)
{
	if (table->format == TABLE_JSON)
		json_put_string(&table->json, key, text);
}

void table_fact_real(struct table *table, const char *key, double number)
{
	if (table->format == TABLE_JSON)
		json_put_double(&table->json, key, number);
}

/* ---- quoting ---- */

void table_csv_text(const char *text, FILE *out)
{
	putc('"', out);
	if (text[0] && strchr("=+-@\t\r", text[0]))
		putc('\'', out);
	for (; *text; text++) {
		if (*text == '"')
			putc('"', out);
		putc(*text, out);
	}
	putc('"', out);
}

static void put_sql_text(const char *text, FILE *out)
{
	putc('\'', out);
	for (; *text; text++) {
		if (*text == '\'')
			putc('\'', out);
		/* An end of a line could begin a command of the sqlite3 shell. */
		putc(*text == '\n' || *text == '\r' ? ' ' : *text, out);
	}
	putc('\'', out);
}

/* Source: CommonMark 0.31.2, "Backslash escapes". */
static void put_markdown_text(const char *text, FILE *out)
{
	while (*text == ' ')
		text++;
	for (; *text; text++) {
		if (strchr("\\`*_[]<>|~&#$", *text))
			putc('\\', out);
		putc(*text == '\n' || *text == '\r' ? ' ' : *text, out);
	}
}

/* ---- text ---- */

static void put_blanks(int columns, FILE *out)
{
	if (columns > 0)
		fprintf(out, "%*s", columns, "");
}

/* printf() counts bytes; this counts the terminal's columns. */
static void put_padded(const char *text, int width, FILE *out)
{
	const int taken = (int)text_columns_of(text);

	if (width > 0) {
		put_blanks(width > taken ? width - taken : 1, out);
		fputs(text, out);
	} else {
		put_blanks(width == -1 ? 1 : LEFT_BLANKS, out);
		fputs(text, out);
		put_blanks(width ? -width - LEFT_BLANKS - taken : 0, out);
	}
}

/* ---- heads ---- */

static void put_titles(const struct table *table)
{
	if (table->color)
		fputs("\033[1m", table->out);
	for (unsigned int i = 0; i < table->count; i++)
		if (table->column[i].title)
			put_padded(table->column[i].title, table->column[i].width, table->out);
	fputs(table->color ? "\033[0m\n" : "\n", table->out);
}

static void put_markdown_titles(const struct table *table)
{
	for (unsigned int i = 0; i < table->count; i++) {
		if (!table->column[i].title)
			continue;
		fputs("| ", table->out);
		put_markdown_text(table->column[i].title, table->out);
		putc(' ', table->out);
	}
	fputs("|\n", table->out);
	for (unsigned int i = 0; i < table->count; i++)
		if (table->column[i].title)
			fputs(table->column[i].width > 0 ? "| ---: " : "| --- ", table->out);
	fputs("|\n", table->out);
}

static void put_keys(const struct table *table, const char *quote)
{
	const char *separator = "";

	for (unsigned int i = 0; i < table->count; i++) {
		if (!table->column[i].key)
			continue;
		fprintf(table->out, "%s%s%s%s", separator, quote, table->column[i].key, quote);
		separator = ",";
	}
}

static void put_head(struct table *table)
{
	table->has_head = true;
	switch (table->format) {
	case TABLE_TEXT:
		put_titles(table);
		return;
	case TABLE_MARKDOWN:
		put_markdown_titles(table);
		return;
	case TABLE_CSV:
		put_keys(table, "");
		fputs("\r\n", table->out);
		return;
	case TABLE_SQL:
		fprintf(table->out, "CREATE TABLE \"%s\" (", table->name);
		put_keys(table, "\"");
		fputs(");\n", table->out);
		return;
	case TABLE_JSON:
	default:
		return;
	}
}

void table_begin(struct table *table, const char *name, const struct table_column *column,
		 unsigned int count)
{
	table->name = name;
	table->column = column;
	table->count = count;
	table->at = 0;
	table->is_left_out = table->format == TABLE_CSV && table->has_rows;
	table->has_rows = true;
	table->has_head = false;
	if (table->format == TABLE_JSON)
		json_put_open(&table->json, name, '[');
	if (!table_is_for_people(table) && !table->is_left_out)
		put_head(table);
}

void table_end(struct table *table)
{
	if (table->format == TABLE_JSON)
		json_close(&table->json, ']');
	if (table->format == TABLE_MARKDOWN && table->has_head)
		putc('\n', table->out);
}

void table_more_rows(const struct table *table, uint32_t count)
{
	if (count && table_is_for_people(table))
		fprintf(table->out, "... %" PRIu32 " more rows; --top 0 shows all\n", count);
}

/* ---- cells ---- */

static bool is_first(const struct table *table)
{
	for (unsigned int i = 0; i < table->at; i++)
		if (table->column[i].key)
			return false;
	return true;
}

static void put_shown(struct table *table, const struct table_column *column, const char *shown)
{
	const char *paint = table->color && table->paint ? table->paint : "";

	if (table->format == TABLE_MARKDOWN) {
		fputs("| ", table->out);
		put_markdown_text(shown, table->out);
		putc(' ', table->out);
		return;
	}
	fputs(paint, table->out);
	put_padded(shown, column->width, table->out);
	if (paint[0])
		fputs("\033[0m", table->out);
}

static void put_json(struct table *table, const char *key, struct value value)
{
	json_key(&table->json, key);
	if (value.is == VALUE_TEXT) {
		json_string(&table->json, value.text);
		return;
	}
	fputs(value.is == VALUE_NONE ? "null" : value.text, table->out);
	table->json.needs_comma = true;
}

static void put_raw(struct table *table, const char *key, struct value value)
{
	FILE *out = table->out;

	if (table->format == TABLE_JSON) {
		put_json(table, key, value);
		return;
	}
	if (!is_first(table))
		putc(',', out);
	if (value.is == VALUE_TEXT && table->format == TABLE_CSV)
		table_csv_text(value.text, out);
	else if (value.is == VALUE_TEXT)
		put_sql_text(value.text, out);
	else if (value.is == VALUE_NUMBER)
		fputs(value.text, out);
	else if (table->format == TABLE_SQL)
		fputs("NULL", out);
}

static void begin_row(struct table *table)
{
	if (!table->has_head)
		put_head(table);
	if (table->format == TABLE_JSON) {
		json_newline(&table->json);
		json_open(&table->json, '{');
	}
	if (table->format == TABLE_SQL)
		fprintf(table->out, "INSERT INTO \"%s\" VALUES(", table->name);
}

static void end_row(struct table *table)
{
	static const char *const ends[] = {[TABLE_TEXT] = "\n",
					   [TABLE_CSV] = "\r\n",
					   [TABLE_JSON] = "",
					   [TABLE_MARKDOWN] = "|\n",
					   [TABLE_SQL] = ");\n"};

	if (table->format == TABLE_JSON)
		json_close(&table->json, '}');
	fputs(ends[table->format], table->out);
	table->at = 0;
}

static void cell(struct table *table, struct value value, const char *shown)
{
	const struct table_column *column = &table->column[table->at];

	if (table->is_left_out)
		return;
	if (!table->at)
		begin_row(table);
	if (table_is_for_people(table) && column->title)
		put_shown(table, column, shown);
	else if (!table_is_for_people(table) && column->key)
		put_raw(table, column->key, value);
	table->paint = NULL;
	if (++table->at == table->count)
		end_row(table);
}

void table_paint(struct table *table, const char *sequence)
{
	table->paint = sequence && sequence[0] ? sequence : NULL;
}

void table_int(struct table *table, int64_t number, const char *shown)
{
	char text[NUMBER_BYTES];

	snprintf(text, sizeof(text), "%" PRId64, number);
	cell(table, (struct value){VALUE_NUMBER, text}, shown ? shown : text);
}

void table_real(struct table *table, double number, int digits, const char *shown)
{
	char text[NUMBER_BYTES];

	if (!isfinite(number)) {
		cell(table, (struct value){VALUE_NONE, NULL}, shown ? shown : "-");
		return;
	}
	snprintf(text, sizeof(text), "%.*f", digits, number);
	cell(table, (struct value){VALUE_NUMBER, text}, shown ? shown : text);
}

void table_string(struct table *table, const char *text, const char *shown)
{
	cell(table, (struct value){VALUE_TEXT, text}, shown ? shown : text);
}

void table_value(struct table *table, int64_t value, const char *unit)
{
	char text[FORMAT_BYTES];

	table_int(table, value, format_value(value, unit, text));
}

void table_measure(struct table *table, double value, int digits, const char *unit)
{
	char text[FORMAT_BYTES];

	table_real(table, value, digits,
		   isfinite(value) ? format_value((int64_t)value, unit, text) : NULL);
}
