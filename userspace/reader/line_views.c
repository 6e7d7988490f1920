/* SPDX-License-Identifier: BSD-2-Clause */
#include "reader/line_views.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "reader/complain.h"
#include "reader/text.h"
#include "reader/verb.h"
#include "render/format.h"
#include "render/markup.h"

static int explain(const struct lines_view *view, const struct line_file *file, int err)
{
	if (err != -ENOENT)
		return err;
	return complain("%s: no %s in a function '%s' of this file", file->path,
			view->is_exact ? "line was counted" : "sample is", view->function);
}

/* ---- text ---- */

#define WIDE_COLUMNS 120U
#define LINE_COLUMNS 6
#define EXACT_COLUMNS 43

/* A narrow terminal has no room for errors and times beside the source. */
static bool is_narrow(void)
{
	return text_columns() && text_columns() < WIDE_COLUMNS;
}

static void print_share(const struct lines_view *view, const struct totals_sum *sum)
{
	double share, error;

	if (!sum || !sum->value) {
		printf("%*s", is_narrow() ? 9 : 16, "");
		return;
	}
	share = totals_share(view->ran, sum);
	error = totals_share_error(view->ran, sum);
	printf("%s%7.1f %%%s", text_color(view->color, text_color_of_share(share)), share * 100,
	       text_color(view->color, TEXT_PLAIN));
	if (is_narrow())
		return;
	if (error < 0)
		printf("%7s", "?");
	else
		printf("%7.1f", error * 100);
}

static void print_wait(const struct lines_view *view, const struct line_row *row)
{
	char text[FORMAT_BYTES], both[2 * FORMAT_BYTES] = "";

	if (!view->has_waits)
		return;
	if (row && row->wait)
		snprintf(both, sizeof(both), "%s %.12s",
			 format_value(row->wait, "nanoseconds", text),
			 row->reason ? row->reason : "");
	printf(" %18s", both);
}

/* Prints a source line up to the terminal's edge; a tab goes to the next multiple of 8. */
static void print_source(const char *text, unsigned int room)
{
	unsigned int column = 0;

	for (; *text; text++) {
		unsigned int columns = *text == '\t'			       ? 8 - column % 8
				       : ((unsigned char)*text & 0xc0) != 0x80 ? 1
									       : 0;

		if (column + columns > room - 1 && text_columns_of(text) + column > room) {
			printf("…");
			return;
		}
		column += columns;
		if (*text == '\t')
			printf("%*s", (int)columns, "");
		else
			putchar(*text);
	}
}

/* Of the time of all lines of its function. */
static double exact_share(const struct line_file *file, const struct line_row *row)
{
	const int64_t all = file->function_count ? file->function[row->function].time : 0;

	return all > 0 ? (double)row->time / (double)all : 0;
}

static void print_exact(const struct lines_view *view, const struct line_file *file,
			const struct line_row *row)
{
	char time[FORMAT_BYTES], each[FORMAT_BYTES] = "-";
	const double share = row ? exact_share(file, row) : 0;

	if (!row) {
		printf("%*s", EXACT_COLUMNS, "");
		return;
	}
	if (row->hits)
		format_value(row->time / row->hits, "nanoseconds", each);
	printf("%12" PRId64 " %10s %10s  %s%5.1f %%%s", row->hits,
	       format_value(row->time, "nanoseconds", time), each,
	       text_color(view->color, text_color_of_share(share)), share * 100,
	       text_color(view->color, TEXT_PLAIN));
}

static unsigned int figures_columns(const struct lines_view *view)
{
	if (view->is_exact)
		return LINE_COLUMNS + EXACT_COLUMNS;
	return (is_narrow() ? 24 : 48) + (view->has_waits ? 19 : 0);
}

static void print_sampled(const struct lines_view *view, const struct line_row *row)
{
	char self[FORMAT_BYTES];

	print_share(view, row ? row->self : NULL);
	print_share(view, row ? row->total : NULL);
	if (!is_narrow())
		printf(" %9s", row && row->self && row->self->value
				       ? format_value(row->self->value, view->unit, self)
				       : "");
	print_wait(view, row);
}

static void print_line(const struct lines_view *view, const struct line_file *file,
		       const struct source *source, uint32_t line)
{
	const struct line_row *row = line_file_find(file, line);
	const char *text = source_line(source, line);
	unsigned int room = text_room(figures_columns(view) + 2);

	printf("%*" PRIu32, LINE_COLUMNS, line);
	if (view->is_exact)
		print_exact(view, file, row);
	else
		print_sampled(view, row);
	printf("  ");
	if (room)
		print_source(text ? text : "", room);
	else
		printf("%s", text ? text : "");
	printf("\n");
}

static void print_head(const struct lines_view *view)
{
	if (view->is_exact)
		printf("%s%*s%12s %10s %10s  %7s", text_color(view->color, TEXT_BOLD), LINE_COLUMNS,
		       "LINE", "HITS", "TIME", "PER HIT", "TIME %");
	else if (is_narrow())
		printf("%s%6s%9s%9s", text_color(view->color, TEXT_BOLD), "LINE", "SELF %",
		       "TOTAL %");
	else
		printf("%s%6s%9s%7s%9s%7s %9s", text_color(view->color, TEXT_BOLD), "LINE",
		       "SELF %", "+-", "TOTAL %", "+-", "SELF");
	if (view->has_waits)
		printf(" %18s", "WAIT");
	printf("  SOURCE%s\n", text_color(view->color, TEXT_PLAIN));
}

int lines_print_text(const struct lines_view *view, const struct line_file *file)
{
	CLEANUP(lines_page_release) struct lines_page page = {0};
	int err = lines_page_make(view, file, &page);

	if (err)
		return explain(view, file, err);
	printf("\n%s%s%s\n", text_color(view->color, TEXT_BLUE), file->path,
	       text_color(view->color, TEXT_PLAIN));
	if (page.note[0])
		printf("Note: %s\n", page.note);
	print_head(view);
	for (uint32_t i = 0; i < page.count; i++) {
		if (i)
			printf("   ...\n");
		for (uint32_t line = page.span[i].first; line <= page.span[i].last; line++)
			print_line(view, file, &page.source, line);
	}
	return 0;
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

static void html_share(const struct lines_view *view, const struct totals_sum *sum)
{
	double share, error;

	if (!sum || !sum->value) {
		printf("<td></td><td></td>");
		return;
	}
	share = totals_share(view->ran, sum);
	error = totals_share_error(view->ran, sum);
	printf("<td style=\"background:rgb(var(--heat)/%.2f)\">%.1f %%</td>",
	       share > 0.7 ? 0.7 : share, share * 100);
	if (error < 0)
		printf("<td class=\"e\">?</td>");
	else
		printf("<td class=\"e\">&plusmn;%.1f</td>", error * 100);
}

static void html_exact(const struct line_file *file, const struct line_row *row)
{
	char time[FORMAT_BYTES], each[FORMAT_BYTES] = "";
	double share;

	if (!row) {
		printf("<td></td><td></td><td></td><td></td>");
		return;
	}
	share = exact_share(file, row);
	if (row->hits)
		format_value(row->time / row->hits, "nanoseconds", each);
	printf("<td>%" PRId64 "</td><td>%s</td><td>%s</td>"
	       "<td style=\"background:rgb(var(--heat)/%.2f)\">%.1f %%</td>",
	       row->hits, format_value(row->time, "nanoseconds", time), each,
	       share > 0.7 ? 0.7 : share, share * 100);
}

static void html_sampled(const struct lines_view *view, const struct line_row *row)
{
	char value[FORMAT_BYTES];

	html_share(view, row ? row->self : NULL);
	html_share(view, row ? row->total : NULL);
	if (view->has_waits) {
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
	const struct line_row *row = line_file_find(file, line);
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

int lines_print_html(const struct lines_view *view, const struct line_file *file)
{
	CLEANUP(lines_page_release) struct lines_page page = {0};
	int err = lines_page_make(view, file, &page);

	if (err)
		return explain(view, file, err);
	printf("<h2>");
	html_text(file->path);
	printf("</h2>\n");
	if (page.note[0]) {
		printf("<p class=\"note\">");
		html_text(page.note);
		printf("</p>\n");
	}
	printf("<table><thead><tr><th>line</th>%s%s<th "
	       "class=\"s\">source</th></tr></thead><tbody>\n",
	       view->is_exact ? "<th>hits</th><th>time</th><th>per hit</th><th>time %</th>"
			      : "<th>self</th><th></th><th>total</th><th></th>",
	       view->has_waits ? "<th>wait</th>" : "");
	for (uint32_t i = 0; i < page.count; i++) {
		if (i)
			printf("<tr class=\"gap\"><td>...</td></tr>\n");
		for (uint32_t line = page.span[i].first; line <= page.span[i].last; line++)
			html_line(view, file, &page.source, line);
	}
	printf("</tbody></table>\n");
	return 0;
}
