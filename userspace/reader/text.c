/* SPDX-License-Identifier: BSD-2-Clause */
#include "reader/text.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/array.h"
#include "base/io.h"
#include "base/saturating.h"
#include "render/format.h"

#define TEXT_SHOWN_BYTES (2U * TEXT_PLACE_BYTES + 64U) /* name, place, colours */

bool text_wants_color(void)
{
	const char *unwanted = getenv("NO_COLOR"), *term = getenv("TERM");

	return !(unwanted && unwanted[0]) && isatty(STDOUT_FILENO) &&
	       !(term && !strcmp(term, "dumb"));
}

const char *text_color(bool color, enum text_color which)
{
	static const char *const sequence[] = {
		[TEXT_PLAIN] = "\033[0m", [TEXT_BOLD] = "\033[1m",    [TEXT_DIM] = "\033[2m",
		[TEXT_RED] = "\033[31m",  [TEXT_YELLOW] = "\033[33m", [TEXT_GREEN] = "\033[32m",
		[TEXT_BLUE] = "\033[34m",
	};

	return color ? sequence[which] : "";
}

enum text_color text_color_of_share(double share)
{
	share = fabs(share);
	return share >= 0.2 ? TEXT_RED : share >= 0.05 ? TEXT_YELLOW : TEXT_PLAIN;
}

int64_t text_sum(const struct input *input, int index)
{
	const struct profile *profile = input_profile(input);
	int64_t sum = 0;

	for (uint32_t i = 0; index >= 0 && i < profile->row_count; i++)
		sum = add_saturating(sum, profile_row_values(profile, i)[index]);
	return sum;
}

void text_head(FILE *out, const struct input *input)
{
	const struct profile_reader *reader = input_reader(input);
	const struct profile *profile = input_profile(input);
	unsigned int value_index = profile_reader_value_index(reader);
	int count_index = profile_reader_count_index(reader);
	const struct profile_value_type *type = input_value_type(input);
	const struct profile_read_totals totals = input_totals(input);
	char text[FORMAT_BYTES], missing[COVERAGE_BYTES];
	OWNED_MEM char *line = NULL;
	size_t size;
	FILE *head = open_memstream(&line, &size);

	if (!head)
		return;
	fprintf(head, "%s of %s: %s", type->type, input_title(input),
		format_value(text_sum(input, (int)value_index), type->unit, text));
	if (count_index >= 0 && (unsigned int)count_index != value_index)
		fprintf(head, " in %" PRId64 " %s", text_sum(input, count_index),
			profile->options.value_type[count_index].type);
	if (totals.duration_ns)
		fprintf(head, ", %s recorded",
			format_value((int64_t)totals.duration_ns, "nanoseconds", text));
	if (input_coverage(input, missing)[0])
		fprintf(head, "; %s", missing);
	if (!close_memory_file(head, &line))
		text_wrap(out, line, 2, text_columns());
	if (!profile->row_count)
		fprintf(out, "No samples%s.\n",
			totals.samples_dropped ? " are left: --pid, --comm, --thread, --label, "
						 "--focus or --ignore drop all of them"
					       : " in it");
}

const char *text_place(const struct code_table *table, const struct code *code,
		       char buffer[TEXT_PLACE_BYTES])
{
	const char *place = code_shown_place(table, code);
	uint32_t line = code->file ? code_line(code) : 0;

	if (line)
		snprintf(buffer, TEXT_PLACE_BYTES, "%s:%" PRIu32, place, line);
	else
		snprintf(buffer, TEXT_PLACE_BYTES, "%s", place);
	return buffer;
}

void text_fit(unsigned int room, const char **name, const char **place, struct text_cut *cut)
{
	size_t for_name, for_place = text_columns_of(*place);

	if (!room)
		return;
	/* The name is shortened first, down to half of the room, then the place. */
	room = room > TEXT_MIN_ROOM ? room - 2 : TEXT_MIN_ROOM - 2;
	if (for_place > room / 2)
		for_place = room / 2;
	for_name = room - for_place;
	if (text_columns_of(*name) < for_name)
		for_place = room - text_columns_of(*name);
	*name = name_fit(*name, for_name, cut->name, sizeof(cut->name));
	*place = path_fit(*place, for_place, cut->place, sizeof(cut->place));
}

/* Writes "NAME  PLACE" in colours. */
static void show_code(const struct code_table *table, const struct code *code, unsigned int room,
		      bool color, char shown[TEXT_SHOWN_BYTES])
{
	char buffer[TEXT_PLACE_BYTES];
	const char *name = code_name(table, code);
	const char *place = text_place(table, code, buffer);
	struct text_cut cut;

	text_fit(room, &name, &place, &cut);
	snprintf(shown, TEXT_SHOWN_BYTES, "%s%s%s%s%s%s%s", text_color(color, TEXT_BOLD), name,
		 text_color(color, TEXT_PLAIN), place[0] ? "  " : "",
		 place[0] ? text_color(color, TEXT_DIM) : "", place,
		 place[0] ? text_color(color, TEXT_PLAIN) : "");
}

void text_code(FILE *out, const struct code_table *table, const struct code *code,
	       unsigned int room, bool color)
{
	char shown[TEXT_SHOWN_BYTES];

	show_code(table, code, room, color, shown);
	fputs(shown, out);
}

void text_code_cells(struct table *table, const struct code_table *codes, const struct code *code,
		     unsigned int taken)
{
	char shown[TEXT_SHOWN_BYTES];

	show_code(codes, code, table->format == TABLE_TEXT ? text_room(taken) : 0, table->color,
		  shown);
	table_string(table, code_text(codes, code->name), shown);
	table_string(table, code_text(codes, code->file), NULL);
	table_int(table, code_line(code), NULL);
}

void text_table_head(struct table *table, const struct input *input)
{
	const struct profile_value_type *type = input_value_type(input);

	if (table_is_for_people(table)) {
		text_head(table->out, input);
		if (table->format == TABLE_MARKDOWN)
			fputs("\n", table->out);
		return;
	}
	table_fact_string(table, "profile", input_title(input));
	table_fact_string(table, "type", type->type);
	table_fact_string(table, "unit", type->unit);
	table_fact_real(table, "seconds", (double)input_totals(input).duration_ns / 1e9);
}

static int compare_values(const void *a, const void *b, void *context)
{
	const int64_t *value = context;
	const uint32_t left = *(const uint32_t *)a, right = *(const uint32_t *)b;

	return ORDER(value[right], value[left]) ?: ORDER(left, right);
}

uint32_t *text_order(const int64_t *value, uint32_t count)
{
	uint32_t *order = calloc((size_t)count + 1, sizeof(*order));

	for (uint32_t i = 0; order && i < count; i++)
		order[i] = i;
	if (order)
		qsort_r(order, count, sizeof(*order), compare_values, (void *)value);
	return order;
}

/* Returns where to break a line: at the last blank within `columns`, else at the first one. */
static size_t break_of(const char *line, size_t size, unsigned int columns)
{
	size_t at = 0, column = 0;

	for (size_t i = 0; i < size; i++) {
		column += ((unsigned char)line[i] & 0xc0) != 0x80;
		if (column > columns && at)
			break;
		/* Blanks at the beginning are an indentation, several in turn a
		 * column of a table. */
		if (line[i] == ' ' && i && line[i - 1] != ' ' && i + 1 < size && line[i + 1] != ' ')
			at = i;
	}
	return at && column > columns ? at : size;
}

void text_wrap(FILE *out, const char *text, unsigned int indent, unsigned int columns)
{
	while (*text) {
		size_t left = strcspn(text, "\n");
		unsigned int used = 0;

		for (size_t size; left; used = indent) {
			size = columns > used ? break_of(text, left, columns - used) : left;
			fprintf(out, "%*s%.*s\n", (int)used, "", (int)size, text);
			text += size;
			left -= size;
			if (left && *text == ' ') {
				text++;
				left--;
			}
		}
		if (*text == '\n')
			text++;
	}
}

bool text_tells_scaled_probe(const char *comment)
{
	struct fact fact;

	return facts_find(comment, "probe", &fact) && facts_find(comment, "on", &fact);
}

void text_scaled(FILE *out)
{
	fputs("Probes were on for a part of the time, and sums are scaled: pyprof info says "
	      "which.\n",
	      out);
}

unsigned int text_room(unsigned int taken)
{
	unsigned int columns = text_columns();

	return !columns ? 0 : columns > taken ? columns - taken : 1;
}

unsigned int text_taken(const struct table *table)
{
	unsigned int taken = 2;

	for (unsigned int i = 0; i < table->count; i++)
		taken += table->column[i].title ? (unsigned int)table->column[i].width : 0;
	return taken;
}

unsigned int text_columns(void)
{
	struct winsize size;

	if (!isatty(STDOUT_FILENO) || ioctl(STDOUT_FILENO, TIOCGWINSZ, &size))
		return 0;
	return size.ws_col;
}
