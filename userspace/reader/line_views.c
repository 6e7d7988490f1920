/* SPDX-License-Identifier: BSD-2-Clause */
#include "reader/line_views.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/kinds.h"
#include "base/saturating.h"
#include "reader/source.h"
#include "reader/text.h"
#include "reader/verb.h"
#include "render/flame_html.h"
#include "render/format.h"

/* ---- the figures of a file's lines ---- */

struct line_row {
	uint32_t line;
	const struct totals_sum *self, *total; /* NULL: never seen on the CPU */
	int64_t wait;			       /* in ns */
	const char *reason;		       /* the reason of most of it; NULL: unknown */
	int64_t reason_wait;
	/* of exact lines */
	int64_t hits, time; /* time in ns */
	uint32_t function;  /* in function[] of struct line_file */
};

struct line_function {
	const char *name;
	uint32_t start_line, last_line; /* last_line: the last one with a sample */
	int64_t time;			/* of exact lines: of all its lines */
};

/* Release with line_file_release(). */
struct line_file {
	const char *path;
	uint32_t path_string;
	struct line_row *row; /* sorted by line */
	uint32_t count;
	struct line_function *function; /* sorted by start_line */
	uint32_t function_count;
};

/* Returns whether text is `end`, or ends with it behind the separator. */
static bool ends_with(const char *text, const char *end, char separator)
{
	size_t text_size = strlen(text), size = strlen(end);

	if (text_size < size || strcmp(text + text_size - size, end))
		return false;
	return text_size == size || text[text_size - size - 1] == separator;
}

bool line_path_matches(const char *path, const char *wanted)
{
	while (!strncmp(wanted, "./", 2))
		wanted += 2;
	return wanted[0] && ends_with(path, wanted, '/');
}

static void line_file_release(struct line_file *file)
{
	free(file->row);
	free(file->function);
}

static int compare_rows(const void *a, const void *b)
{
	return ORDER(((const struct line_row *)a)->line, ((const struct line_row *)b)->line);
}

static struct line_row *find_row(const struct line_file *file, uint32_t line)
{
	const struct line_row key = {.line = line};

	return file->count ? bsearch(&key, file->row, file->count, sizeof(key), compare_rows)
			   : NULL;
}

/* ---- rows ---- */

static const struct code *code_of(const struct totals *totals, uint32_t row)
{
	return &totals->code.code[totals->row[row].code];
}

/* Compares by text, because the two profiles have different tables of strings. */
static bool is_of_file(const struct totals *totals, uint32_t row, const char *path)
{
	const struct code *code = code_of(totals, row);

	return code->line && !strcmp(code_text(&totals->code, code->file), path);
}

static void add_ran(struct line_file *file, const struct totals *ran)
{
	for (uint32_t i = 0; i < ran->count; i++)
		if (is_of_file(ran, i, file->path) && ran->row[i].total.value)
			file->row[file->count++] = (struct line_row){.line = code_of(ran, i)->line,
								     .self = &ran->row[i].self,
								     .total = &ran->row[i].total};
}

static void add_waited(struct line_file *file, const struct totals *waited, bool has_cpu)
{
	for (uint32_t i = 0; waited && i < waited->count; i++) {
		const uint32_t wait = waited->groups.group[waited->row[i].group].wait;
		const int64_t value = waited->row[i].self.value;

		if ((has_cpu && !wait) || !value || !is_of_file(waited, i, file->path))
			continue;
		file->row[file->count++] =
			(struct line_row){.line = code_of(waited, i)->line,
					  .wait = value,
					  .reason = wait ? code_text(&waited->code, wait) : NULL,
					  .reason_wait = value};
	}
}

static uint32_t rows_at_most(const struct line_file *file, const struct lines_view *view)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < view->ran->count; i++)
		count += is_of_file(view->ran, i, file->path);
	for (uint32_t i = 0; view->waited && i < view->waited->count; i++)
		count += is_of_file(view->waited, i, file->path);
	return count;
}

/* ---- functions ---- */

static int compare_functions(const void *a, const void *b)
{
	const struct line_function *left = a, *right = b;

	return ORDER(left->start_line, right->start_line) ?: strcmp(left->name, right->name);
}

/* Merges equal functions, which differ only in their lines. */
static void merge_functions(struct line_file *file)
{
	uint32_t kept = 0;

	qsort(file->function, file->function_count, sizeof(file->function[0]), compare_functions);
	for (uint32_t i = 0; i < file->function_count; i++) {
		struct line_function *last = kept ? &file->function[kept - 1] : NULL;

		if (!last || compare_functions(last, &file->function[i]))
			file->function[kept++] = file->function[i];
		else if (file->function[i].last_line > last->last_line)
			last->last_line = file->function[i].last_line;
	}
	file->function_count = kept;
}

static int list_functions(struct line_file *file, const struct profile *profile)
{
	const struct stack_table *stacks = &profile->stacks;
	uint32_t count = 0;

	for (uint32_t i = 0; i < stacks->location_count; i++)
		count += stacks->location[i].file == file->path_string;
	file->function = calloc((size_t)count + 1, sizeof(file->function[0]));
	if (!file->function)
		return -ENOMEM;
	for (uint32_t i = 0; i < stacks->location_count; i++) {
		const struct frame *frame = &stacks->location[i];

		if (frame->file != file->path_string)
			continue;
		file->function[file->function_count++] =
			(struct line_function){.name = frame_name(profile, frame),
					       .start_line = frame->start_line,
					       .last_line = frame->line};
	}
	merge_functions(file);
	return 0;
}

/* Adds what another row has of the same line: what runs and each wait have their own, and of exact
 * lines each process. */
static void merge_row(struct line_row *row, const struct line_row *more)
{
	if (!row->total) {
		row->self = more->self;
		row->total = more->total;
	}
	row->wait += more->wait;
	if (more->reason_wait > row->reason_wait) {
		row->reason_wait = more->reason_wait;
		row->reason = more->reason;
	}
	row->hits = add_saturating(row->hits, more->hits);
	row->time = add_saturating(row->time, more->time);
}

/* Makes one row of those of a line. */
static void merge_rows(struct line_file *file)
{
	uint32_t kept = 0;

	qsort(file->row, file->count, sizeof(file->row[0]), compare_rows);
	for (uint32_t i = 0; i < file->count; i++) {
		if (kept && file->row[kept - 1].line == file->row[i].line)
			merge_row(&file->row[kept - 1], &file->row[i]);
		else
			file->row[kept++] = file->row[i];
	}
	file->count = kept;
}

static int fill_sampled(struct line_file *file, const struct lines_view *view)
{
	bool has_cpu =
		view->waited && kind_is(view->waited->code.profile->options.kind, PP_PROFILE_WALL);

	file->row = calloc((size_t)rows_at_most(file, view) + 1, sizeof(file->row[0]));
	if (!file->row)
		return -ENOMEM;
	add_ran(file, view->ran);
	add_waited(file, view->waited, has_cpu);
	merge_rows(file);
	return list_functions(file, view->profile);
}

/* ---- exact lines ---- */

/* As include/pyprofd/kinds.h names the values of LINES. */
void lines_find_exact(struct lines_view *view, const struct profile *profile)
{
	const int hits = profile_find_value(&profile->options, "hits", "count");
	const int time = profile_find_value(&profile->options, "time", "nanoseconds");

	view->is_exact = hits >= 0 && time >= 0;
	view->hits_value = (unsigned int)hits;
	view->time_value = (unsigned int)time;
}

static uint32_t function_of(const struct line_file *file, const struct profile *profile,
			    const struct frame *frame)
{
	const struct line_function key = {.name = frame_name(profile, frame),
					  .start_line = frame->start_line};
	const struct line_function *found =
		bsearch(&key, file->function, file->function_count, sizeof(key), compare_functions);

	return found ? (uint32_t)(found - file->function) : 0;
}

/* Rows have `hits` and `time` alone. */
static int fill_exact(struct line_file *file, const struct lines_view *view)
{
	const struct profile *profile = view->profile;
	int err = list_functions(file, profile);

	file->row = calloc((size_t)profile->row_count + 1, sizeof(file->row[0]));
	if (err || !file->row)
		return -ENOMEM;
	for (uint32_t i = 0; i < profile->row_count; i++) {
		const struct stack *stack = &profile->stacks.stack[profile->row[i].stack];
		const int64_t *value = profile_row_values(profile, i);
		const struct frame *frame;
		struct line_row *row;

		if (!stack->count)
			continue;
		frame = &profile->stacks.location[stack->location[0]];
		if (frame->file != file->path_string || !frame->line)
			continue;
		row = &file->row[file->count++];
		*row = (struct line_row){.line = frame->line,
					 .hits = value[view->hits_value],
					 .time = value[view->time_value],
					 .function = function_of(file, profile, frame)};
		file->function[row->function].time =
			add_saturating(file->function[row->function].time, row->time);
	}
	merge_rows(file);
	return 0;
}

/* ---- which lines are shown ---- */

#define CONTEXT_LINES 2U
#define NOTE_BYTES 256U

/* Lines [first, last] that are shown as one block. */
struct span {
	uint32_t first, last;
};

/* What is shown of a file.  Release with page_release(). */
struct page {
	struct source source;
	char note[NOTE_BYTES]; /* about the source; "": it has not changed */
	struct span *span;     /* ascending, without overlaps */
	uint32_t count, capacity;
};

static void page_release(struct page *page)
{
	source_release(&page->source);
	free(page->span);
}

/* Adds a span; spans come in ascending order of their first lines, and those that touch become
 * one. */
static int add_span(struct page *page, uint32_t first, uint32_t last)
{
	struct span *before = page->count ? &page->span[page->count - 1] : NULL;
	int err;

	if (!first)
		first = 1;
	if (page->source.count && last > page->source.count)
		last = last > page->source.count + CONTEXT_LINES ? last : page->source.count;
	if (before && first <= before->last + 1) {
		if (last > before->last)
			before->last = last;
		return 0;
	}
	err = ARRAY_RESERVE(page->span, page->count, page->capacity);
	if (!err)
		page->span[page->count++] = (struct span){first, last};
	return err;
}

/* Adds the functions of a name, or also methods that end with it.  Returns 0; -ENOENT: there is
 * none; -ENOMEM. */
static int add_named(const char *wanted, bool or_methods, const struct line_file *file,
		     struct page *page)
{
	bool found = false;
	int err = 0;

	for (uint32_t i = 0; !err && i < file->function_count; i++) {
		const struct line_function *function = &file->function[i];
		uint32_t last = function->last_line, end;

		if (or_methods ? !ends_with(function->name, wanted, '.')
			       : strcmp(function->name, wanted) != 0)
			continue;
		found = true;
		end = source_block_end(&page->source, function->start_line);
		err = add_span(page, function->start_line, end > last ? end : last);
	}
	return err ? err : found ? 0 : -ENOENT;
}

/* Before 3.11 CPython does not tell a method's class: where "Model.step" is not there, "step"
 * is. */
static int add_functions(const struct lines_view *view, const struct line_file *file,
			 struct page *page)
{
	const char *dot = strrchr(view->function, '.');
	int err = add_named(view->function, true, file, page);

	if (err != -ENOENT || !dot)
		return err;
	err = add_named(dot + 1, false, file, page);
	if (!err && !page->note[0])
		snprintf(
			page->note, sizeof(page->note),
			"this CPython does not tell what a function is inside of: every '%.64s' of "
			"the file",
			dot + 1);
	return err;
}

static int add_surroundings(const struct line_file *file, struct page *page)
{
	int err = 0;

	for (uint32_t i = 0; !err && i < file->count; i++) {
		uint32_t line = file->row[i].line;

		if (page->source.line)
			err = add_span(page, line > CONTEXT_LINES ? line - CONTEXT_LINES : 1,
				       line + CONTEXT_LINES);
		else
			err = add_span(page, line, line);
	}
	return err;
}

static void note_source(const struct lines_view *view, const struct line_file *file,
			struct page *page)
{
	const struct source *source = &page->source;
	uint32_t last = file->count ? file->row[file->count - 1].line : 0;

	if (source->error) {
		snprintf(page->note, sizeof(page->note),
			 "the source %s: only line numbers (--source PATH reads another file)",
			 source->error);
		return;
	}
	if (last > source->count) {
		snprintf(page->note, sizeof(page->note),
			 "the source has changed: it has %" PRIu32 " lines, line %" PRIu32 " ran",
			 source->count, last);
		return;
	}
	for (uint32_t i = 0; view->is_python && i < file->function_count; i++) {
		const struct line_function *function = &file->function[i];

		if (!function->start_line ||
		    source_defines(source, function->start_line, function->name))
			continue;
		snprintf(page->note, sizeof(page->note),
			 "the source has changed: '%s' does not begin at line %" PRIu32 " any more",
			 function->name, function->start_line);
		return;
	}
	if (view->end_wall_ns && (uint64_t)source->modified_s > view->end_wall_ns / NS_PER_SEC)
		snprintf(page->note, sizeof(page->note),
			 "the source was written after the profile: lines may have moved");
}

/* Reads a file's figures and its source, and chooses what is shown of it.  Returns 0, -ENOMEM, or
 * pyprof's exit code. */
static int make_page(const struct lines_view *view, struct line_file *file, struct page *page)
{
	int err = view->is_exact ? fill_exact(file, view) : fill_sampled(file, view);

	if (!err)
		err = view->source_path
			      ? source_read(view->source_path, SOURCE_NAMED_BY_USER, &page->source)
			      : source_read(file->path, SOURCE_NAMED_BY_PROFILE, &page->source);
	if (err)
		return err;
	note_source(view, file, page);
	if (view->function)
		err = add_functions(view, file, page);
	else if (view->all && page->source.count)
		err = add_span(page, 1, page->source.count);
	else
		err = add_surroundings(file, page);
	return err != -ENOENT ? err
			      : complain("%s: no %s in a function '%s' of this file", file->path,
					 view->is_exact ? "line was counted" : "sample is",
					 view->function);
}

/* ---- tables ---- */

#define WIDE_COLUMNS 120U
#define WAIT_COLUMNS 19
#define SOURCE_BYTES 4096U
#define SOURCE_MAX_COLUMNS 1000U /* of a terminal; each takes 4 bytes at most */

/* A narrow terminal has no room for errors and times beside the source. */
static bool is_narrow(void)
{
	return text_columns() && text_columns() < WIDE_COLUMNS;
}

static void put_share(const struct lines_view *view, const struct totals_sum *sum,
		      struct table *table)
{
	const bool is_known = sum && sum->value;
	double share = is_known ? totals_share(view->ran, sum) : NAN;
	double error = is_known ? totals_share_error(view->ran, sum) : NAN;
	char text[FORMAT_BYTES] = "", error_text[FORMAT_BYTES] = "";

	if (is_known)
		format_share(share, text);
	if (error >= 0)
		snprintf(error_text, sizeof(error_text), "%.1f", error * 100);
	table_paint(table, is_known ? text_color(table->color, text_color_of_share(share)) : NULL);
	table_real(table, share, 6, text);
	table_real(table, error < 0 ? NAN : error, 6, error < 0 ? "?" : error_text);
}

static void put_wait(const struct line_row *row, struct table *table)
{
	const char *reason = row && row->wait && row->reason ? row->reason : "";
	char text[FORMAT_BYTES], both[2 * FORMAT_BYTES] = "";

	if (row && row->wait)
		snprintf(both, sizeof(both), "%s %.12s",
			 format_value(row->wait, "nanoseconds", text), reason);
	table_int(table, row ? row->wait : 0, both);
	table_string(table, reason, NULL);
}

/* Writes a source line up to the terminal's edge; a tab goes to the next multiple of 8. */
static const char *fit_source(const char *text, unsigned int room, char buffer[SOURCE_BYTES])
{
	unsigned int column = 0;
	size_t used = 0;

	if (room > SOURCE_MAX_COLUMNS)
		room = SOURCE_MAX_COLUMNS;
	for (; *text; text++) {
		unsigned int columns = *text == '\t'			       ? 8 - column % 8
				       : ((unsigned char)*text & 0xc0) != 0x80 ? 1
									       : 0;

		if (column + columns > room - 1 && text_columns_of(text) + column > room) {
			snprintf(buffer + used, SOURCE_BYTES - used, "…");
			return buffer;
		}
		column += columns;
		for (unsigned int i = 0; *text == '\t' && i < columns; i++)
			buffer[used++] = ' ';
		if (*text != '\t')
			buffer[used++] = *text;
		if (used + 16 > SOURCE_BYTES)
			break;
	}
	buffer[used] = '\0';
	return buffer;
}

/* Of the time of all lines of its function. */
static double exact_share(const struct line_file *file, const struct line_row *row)
{
	const int64_t all = file->function_count ? file->function[row->function].time : 0;

	return all > 0 ? (double)row->time / (double)all : 0;
}

static void put_exact(const struct line_file *file, const struct line_row *row, struct table *table)
{
	char text[FORMAT_BYTES], each[FORMAT_BYTES] = "-";
	const double share = row ? exact_share(file, row) : 0;

	if (row && row->hits)
		format_value(row->time / row->hits, "nanoseconds", each);
	table_int(table, row ? row->hits : 0, row ? NULL : "");
	table_int(table, row ? row->time : 0,
		  row ? format_value(row->time, "nanoseconds", text) : "");
	table_real(table, row && row->hits ? (double)row->time / (double)row->hits : NAN, 1,
		   row ? each : "");
	table_paint(table, row ? text_color(table->color, text_color_of_share(share)) : NULL);
	table_real(table, share, 6, row ? format_share(share, text) : "");
}

static void put_sampled(const struct lines_view *view, const struct line_row *row,
			struct table *table)
{
	const int64_t self = row && row->self ? row->self->value : 0;
	char text[FORMAT_BYTES];

	put_share(view, row ? row->self : NULL, table);
	put_share(view, row ? row->total : NULL, table);
	table_int(table, self, self ? format_value(self, view->unit, text) : "");
	put_wait(row, table);
}

static void put_line(const struct lines_view *view, const struct line_file *file,
		     const struct source *source, uint32_t line, struct table *table)
{
	const struct line_row *row = find_row(file, line);
	const char *text = source_line(source, line) ? source_line(source, line) : "";
	char fitted[SOURCE_BYTES];
	unsigned int room;

	/* A program wants figures; context is for people. */
	if (!row && !table_is_for_people(table))
		return;
	room = table->format == TABLE_TEXT ? text_room(text_taken(table)) : 0;
	table_int(table, line, NULL);
	if (view->is_exact)
		put_exact(file, row, table);
	else
		put_sampled(view, row, table);
	table_string(table, file->path, NULL);
	table_string(table, text, room ? fit_source(text, room, fitted) : text);
}

void lines_begin(struct lines_view *view, struct table *table)
{
	static const struct table_column exact[] = {
		{"line", "LINE", 6},	{"hits", "HITS", 12},
		{"time", "TIME", 11},	{"time_per_hit", "PER HIT", 11},
		{"share", "TIME %", 9}, {"file", NULL, 0},
		{"source", "SOURCE", 0}};
	static const struct table_column sampled[LINES_MAX_TABLE_COLUMNS] = {
		{"line", "LINE", 6},
		{"self_share", "SELF %", 9},
		{"self_error", "+-", 7},
		{"total_share", "TOTAL %", 9},
		{"total_error", "+-", 7},
		{"self", "SELF", 10},
		{"wait", "WAIT", WAIT_COLUMNS},
		{"wait_reason", NULL, 0},
		{"file", NULL, 0},
		{"source", "SOURCE", 0}};
	struct table_column *column = view->column;

	if (view->is_exact) {
		table_begin(table, "rows", exact, ARRAY_SIZE(exact));
		return;
	}
	memcpy(column, sampled, sizeof(sampled));
	if (is_narrow())
		column[2].title = column[4].title = column[5].title = NULL;
	if (!view->waited)
		column[6].title = NULL;
	table_begin(table, "rows", column, LINES_MAX_TABLE_COLUMNS);
}

static void put_table(struct lines_view *view, const struct line_file *file,
		      const struct page *page, struct table *table)
{
	const bool is_for_people = table_is_for_people(table);

	if (is_for_people) {
		fprintf(table->out, "\n%s%s%s\n", text_color(table->color, TEXT_BLUE), file->path,
			text_color(table->color, TEXT_PLAIN));
		if (page->note[0])
			fprintf(table->out, "Note: %s\n", page->note);
		if (table->format == TABLE_MARKDOWN)
			fputs("\n", table->out);
		lines_begin(view, table);
	}
	for (uint32_t i = 0; i < page->count; i++) {
		if (i && table->format == TABLE_TEXT)
			fputs("   ...\n", table->out);
		for (uint32_t line = page->span[i].first; line <= page->span[i].last; line++)
			put_line(view, file, &page->source, line, table);
	}
	if (is_for_people)
		table_end(table);
}

/* ---- HTML ---- */

static void html_text(const char *text)
{
	if (markup_write(stdout, text, strlen(text)))
		fputs("\xEF\xBF\xBD", stdout); /* U+FFFD: no memory to clean it */
}

void lines_begin_html(const struct lines_view *view)
{
	printf("<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
	       "<meta name=\"viewport\" content=\"width=device-width\">\n<title>");
	html_text(view->file);
	printf("</title>\n<style>\n"
	       ":root{color-scheme:light dark;--heat:200 40 20}\n"
	       "body{font:14px/1.4 system-ui,sans-serif;margin:1rem}\n"
	       "table{border-collapse:collapse;font:13px/1.45 ui-monospace,monospace}\n"
	       "th{text-align:right;padding:0 .6rem;position:sticky;top:0;background:Canvas}\n"
	       "td{text-align:right;padding:0 .6rem;white-space:pre}\n"
	       "td.s,th.s{text-align:left;tab-size:8}\n"
	       "td.e{opacity:.7}tr.gap td{opacity:.5}\n"
	       ".note{border-left:4px solid rgb(var(--heat));padding-left:.6rem}\n"
	       "</style></head><body>\n<h1>");
	html_text(view->file);
	printf("</h1>\n<p>");
	html_text(view->title);
	printf("</p>\n");
}

void lines_end_html(void)
{
	printf("</body></html>\n");
}

static void html_heat(double share)
{
	printf("<td style=\"background:rgb(var(--heat)/%.2f)\">%.1f %%</td>",
	       share > 0.7 ? 0.7 : share, share * 100);
}

static void html_share(const struct lines_view *view, const struct totals_sum *sum)
{
	double error;

	if (!sum || !sum->value) {
		printf("<td></td><td></td>");
		return;
	}
	html_heat(totals_share(view->ran, sum));
	error = totals_share_error(view->ran, sum);
	if (error < 0)
		printf("<td class=\"e\">?</td>");
	else
		printf("<td class=\"e\">&plusmn;%.1f</td>", error * 100);
}

static void html_exact(const struct line_file *file, const struct line_row *row)
{
	char time[FORMAT_BYTES], each[FORMAT_BYTES] = "";

	if (!row) {
		printf("<td></td><td></td><td></td><td></td>");
		return;
	}
	if (row->hits)
		format_value(row->time / row->hits, "nanoseconds", each);
	printf("<td>%" PRId64 "</td><td>%s</td><td>%s</td>", row->hits,
	       format_value(row->time, "nanoseconds", time), each);
	html_heat(exact_share(file, row));
}

static void html_sampled(const struct lines_view *view, const struct line_row *row)
{
	char value[FORMAT_BYTES];

	html_share(view, row ? row->self : NULL);
	html_share(view, row ? row->total : NULL);
	if (view->waited) {
		printf("<td>");
		if (row && row->wait) {
			printf("%s ", format_value(row->wait, "nanoseconds", value));
			html_text(row->reason ? row->reason : "");
		}
		printf("</td>");
	}
}

static void html_line(const struct lines_view *view, const struct line_file *file,
		      const struct source *source, uint32_t line)
{
	const struct line_row *row = find_row(file, line);
	const char *text = source_line(source, line);

	printf("<tr><td>%" PRIu32 "</td>", line);
	if (view->is_exact)
		html_exact(file, row);
	else
		html_sampled(view, row);
	printf("<td class=\"s\">");
	html_text(text ? text : "");
	printf("</td></tr>\n");
}

static void put_html(const struct lines_view *view, const struct line_file *file,
		     const struct page *page)
{
	printf("<h2>");
	html_text(file->path);
	printf("</h2>\n");
	if (page->note[0]) {
		printf("<p class=\"note\">");
		html_text(page->note);
		printf("</p>\n");
	}
	printf("<table><thead><tr><th>line</th>%s%s<th "
	       "class=\"s\">source</th></tr></thead><tbody>\n",
	       view->is_exact ? "<th>hits</th><th>time</th><th>per hit</th><th>time %</th>"
			      : "<th>self</th><th></th><th>total</th><th></th>",
	       view->waited ? "<th>wait</th>" : "");
	for (uint32_t i = 0; i < page->count; i++) {
		if (i)
			printf("<tr class=\"gap\"><td>...</td></tr>\n");
		for (uint32_t line = page->span[i].first; line <= page->span[i].last; line++)
			html_line(view, file, &page->source, line);
	}
	printf("</tbody></table>\n");
}

int lines_put(struct lines_view *view, uint32_t path_string, struct table *table)
{
	CLEANUP(line_file_release) struct line_file file = {
		.path = intern_get(view->profile->strings, path_string, NULL),
		.path_string = path_string};
	CLEANUP(page_release) struct page page = {0};
	int err = make_page(view, &file, &page);

	if (err)
		return err;
	if (table)
		put_table(view, &file, &page, table);
	else
		put_html(view, &file, &page);
	return 0;
}
