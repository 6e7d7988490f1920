/* SPDX-License-Identifier: BSD-2-Clause */
#include "reader/mem_view.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "base/json_writer.h"
#include "export/exports.h"
#include "reader/text.h"
#include "render/format.h"

#define PROCESSES_SHOWN 10U
#define TOUCHED_COLUMNS 49U
#define ALLOC_COLUMNS 53U
#define LEAK_COLUMNS 46U

/* Writes a number of bytes, or "-" for one that is not known. */
static const char *bytes_text(double bytes, char buffer[FORMAT_BYTES])
{
	if (isnan(bytes))
		return "-";
	return format_value((int64_t)bytes, "bytes", buffer);
}

static int64_t as_int64(uint64_t bytes)
{
	return bytes > INT64_MAX ? INT64_MAX : (int64_t)bytes;
}

/* Returns a line's part of what memory grew by. */
static double share_of(const struct mem_table *table, const struct mem_row *row)
{
	const double all = (double)table->all[MEM_TOUCHED] + (double)table->all[MEM_COPIED];

	return all > 0 ? ((double)row->value[MEM_TOUCHED] + (double)row->value[MEM_COPIED]) / all
		       : 0;
}

/* Returns whether a row is shown: all its figures may be 0. */
static bool is_shown(const struct mem_view *view, const struct mem_row *row)
{
	if (view->leaks)
		return row->value[MEM_HELD] > 0;
	for (unsigned int i = 0; i < MEM_COLUMNS; i++)
		if (row->value[i])
			return true;
	return row->at_peak;
}

/* ---- text: processes ---- */

static void print_process(const struct process_memory *process, bool color)
{
	const struct memory_line *last = &process->last;
	const uint64_t figure[] = {memory_line_bytes(last), last->anonymous_bytes, last->file_bytes,
				   last->shared_bytes};
	char text[FORMAT_BYTES];

	for (size_t i = 0; i < sizeof(figure) / sizeof(figure[0]); i++)
		printf("%11s", format_value(as_int64(figure[i]), "bytes", text));
	printf("%13s", bytes_text(process_memory_growth(process), text));
	printf("%11s", format_value(as_int64(process->peak_bytes), "bytes", text));
	printf("  %s%" PRIu64 " %s%s\n", text_color(color, TEXT_BOLD), last->pid, last->comm,
	       text_color(color, TEXT_PLAIN));
}

static void print_processes(const struct mem_view *view)
{
	const struct process_memories *processes = view->processes;
	struct memory_line rest = processes->others;
	char text[FORMAT_BYTES];

	if (!processes->count)
		return;
	printf("%s%11s%11s%11s%11s%13s%11s  %s%s\n", text_color(view->color, TEXT_BOLD), "RESIDENT",
	       "ANONYMOUS", "FILE", "SHARED", "GROWTH/MIN", "PEAK", "PROCESS",
	       text_color(view->color, TEXT_PLAIN));
	for (uint32_t i = 0; i < processes->count; i++) {
		if (i < PROCESSES_SHOWN)
			print_process(&processes->process[i], view->color);
		else
			memory_line_add(&rest, &processes->process[i].last);
	}
	if (rest.others || rest.unread)
		printf("%11s  of %" PRIu64 " more processes",
		       format_value(as_int64(memory_line_bytes(&rest)), "bytes", text),
		       rest.others);
	if (rest.unread)
		printf("; %" PRIu64 " were not read", rest.unread);
	printf("%s\n", rest.others || rest.unread ? "\n" : "");
}

/* ---- text: lines ---- */

static void print_code(const struct mem_view *view, const struct mem_row *row, unsigned int taken)
{
	const struct code_table *table = &view->table->code;
	const struct code *code = &table->code[row->code];

	printf("  ");
	text_code(table, code, code->name ? code_text(table, code->name) : "[unknown]",
		  text_room(taken), view->color);
	printf("\n");
}

static void print_touched(const struct mem_view *view, const struct mem_row *row)
{
	const double share = share_of(view->table, row);
	char text[FORMAT_BYTES];

	printf("%s%9s%s", text_color(view->color, text_color_of_share(share)),
	       format_share(share, text), text_color(view->color, TEXT_PLAIN));
	printf("%12s", format_value(row->value[MEM_TOUCHED], "bytes", text));
	printf("%12s", format_value(row->value[MEM_COPIED], "bytes", text));
	printf("%12" PRId64, row->value[MEM_FAULTS]);
	print_code(view, row, TOUCHED_COLUMNS);
}

static void print_alloc(const struct mem_view *view, const struct mem_row *row)
{
	char text[FORMAT_BYTES];

	printf("%11s", format_value(row->value[MEM_ALLOCATED], "bytes", text));
	printf("%9" PRId64, row->value[MEM_OBJECTS]);
	printf("%11s", format_value(row->value[MEM_HELD], "bytes", text));
	printf("%9" PRId64, row->value[MEM_HELD_OBJECTS]);
	printf("%11s", format_value(row->at_peak, "bytes", text));
	print_code(view, row, ALLOC_COLUMNS);
}

static void print_leak(const struct mem_view *view, const struct mem_row *row)
{
	const bool leaks = mem_row_leaks(row);
	char text[FORMAT_BYTES], grew[FORMAT_BYTES];

	printf("%11s", format_value(row->value[MEM_HELD], "bytes", text));
	printf("%11s", view->held->windows > 1 ? format_value(row->for_long, "bytes", text) : "-");
	printf("%s%12s", text_color(view->color, leaks ? TEXT_RED : TEXT_PLAIN),
	       bytes_text(row->intervals ? row->growth : NAN, text));
	snprintf(grew, sizeof(grew), "%u/%u", row->grew, row->intervals);
	printf("%8s%s%s", row->intervals ? grew : "-", leaks ? " *" : "  ",
	       text_color(view->color, TEXT_PLAIN));
	print_code(view, row, LEAK_COLUMNS);
}

static void print_titles(const struct mem_view *view)
{
	char title[FORMAT_BYTES], span[FORMAT_BYTES];

	printf("%s", text_color(view->color, TEXT_BOLD));
	if (view->leaks) {
		snprintf(title, sizeof(title), ">%.36s",
			 format_span(held_long_ns(view->held), span));
		printf("%11s%11s%12s%8s    %s", "HELD", view->held->windows > 1 ? title : "-",
		       "GROWTH/MIN", "GREW", "LINE");
	} else if (view->table->is_alloc) {
		printf("%11s%9s%11s%9s%11s  %s", "ALLOCATED", "OBJECTS", "HELD", "OBJECTS",
		       "AT PEAK", "LINE");
	} else {
		printf("%9s%12s%12s%12s  %s", "SHARE", "TOUCHED", "COPIED", "FAULTS", "LINE");
	}
	printf("%s\n", text_color(view->color, TEXT_PLAIN));
}

static void print_foot(const struct mem_view *view)
{
	if (view->leaks && view->held->windows < 2)
		printf("There is one window only: what is held for long, and what grows, shows "
		       "with several.\n");
	else if (view->leaks)
		printf("* grew in most of the intervals of the range.\n");
	if (view->held && view->held->left_out)
		printf("%" PRIu64 " values of further stacks are left out of the columns of time\n",
		       view->held->left_out);
}

void mem_print_text(const struct mem_view *view)
{
	const struct mem_table *table = view->table;
	uint32_t shown = 0, left = 0;

	print_processes(view);
	if (!table->count)
		return;
	print_titles(view);
	for (uint32_t i = 0; i < table->count; i++) {
		const struct mem_row *row = &table->row[i];

		if (!is_shown(view, row))
			continue;
		if (view->rows && shown == view->rows) {
			left++;
			continue;
		}
		shown++;
		if (view->leaks)
			print_leak(view, row);
		else if (table->is_alloc)
			print_alloc(view, row);
		else
			print_touched(view, row);
	}
	if (left)
		printf("... %" PRIu32 " more rows; --top 0 shows all\n", left);
	print_foot(view);
}

/* ---- CSV ---- */

int mem_print_csv(const struct mem_view *view, FILE *out)
{
	const struct mem_table *table = view->table;

	fputs(table->is_alloc ? "name,file,line,alloc_space,alloc_objects,inuse_space,"
				"inuse_objects,at_peak,held_long,growth_per_minute,grew,intervals"
			      : "name,file,line,first_touch,cow,faults,share",
	      out);
	fputs("\r\n", out);
	for (uint32_t i = 0; i < table->count; i++) {
		const struct mem_row *row = &table->row[i];
		const struct code *code = &table->code.code[row->code];

		if (!is_shown(view, row))
			continue;
		export_csv_text(code_text(&table->code, code->name), out);
		putc(',', out);
		export_csv_text(code_text(&table->code, code->file), out);
		fprintf(out, ",%" PRIu32, code_line(code));
		for (unsigned int k = 0; k < (table->is_alloc ? MEM_ALLOC_TYPES : MEM_TYPES); k++)
			fprintf(out, ",%" PRId64, row->value[k]);
		if (table->is_alloc)
			fprintf(out, ",%" PRId64 ",%" PRId64 ",%.0f,%u,%u", row->at_peak,
				row->for_long, row->growth, row->grew, row->intervals);
		else
			fprintf(out, ",%.6f", share_of(table, row));
		fputs("\r\n", out);
	}
	return ferror(out) ? -EIO : 0;
}

/* ---- JSON ---- */

static void put_process(struct json_writer *json, const struct process_memory *process)
{
	const struct memory_line *last = &process->last;

	json_newline(json);
	json_open(json, '{');
	json_put_int(json, "pid", as_int64(last->pid));
	json_put_string(json, "comm", last->comm);
	json_put_int(json, "resident", as_int64(memory_line_bytes(last)));
	json_put_int(json, "anonymous", as_int64(last->anonymous_bytes));
	json_put_int(json, "file", as_int64(last->file_bytes));
	json_put_int(json, "shared", as_int64(last->shared_bytes));
	json_put_int(json, "peak", as_int64(process->peak_bytes));
	json_put_double(json, "growth_per_minute", process_memory_growth(process));
	json_close(json, '}');
}

static void put_line(struct json_writer *json, const struct mem_table *table,
		     const struct mem_row *row)
{
	static const char *const touched[] = {"first_touch", "cow", "faults"};
	static const char *const alloc[] = {"alloc_space", "alloc_objects", "inuse_space",
					    "inuse_objects"};
	const struct code *code = &table->code.code[row->code];

	json_newline(json);
	json_open(json, '{');
	json_put_string(json, "name", code_text(&table->code, code->name));
	json_put_string(json, "file", code_text(&table->code, code->file));
	json_put_int(json, "line", code_line(code));
	for (unsigned int i = 0; i < (table->is_alloc ? MEM_ALLOC_TYPES : MEM_TYPES); i++)
		json_put_int(json, table->is_alloc ? alloc[i] : touched[i], row->value[i]);
	if (table->is_alloc) {
		json_put_int(json, "at_peak", row->at_peak);
		json_put_int(json, "held_long", row->for_long);
		json_put_double(json, "growth_per_minute", row->intervals ? row->growth : NAN);
		json_put_int(json, "grew", row->grew);
		json_put_int(json, "intervals", row->intervals);
		json_key(json, "leaks");
		json_bool(json, mem_row_leaks(row));
	} else {
		json_put_double(json, "share", share_of(table, row));
	}
	json_close(json, '}');
}

int mem_print_json(const struct mem_view *view, FILE *out)
{
	const struct mem_table *table = view->table;
	struct json_writer json = json_writer_to(out);

	json_open(&json, '{');
	json_put_string(&json, "kind", table->is_alloc ? "alloc" : "mem");
	json_put_string(&json, "profile", view->title);
	json_put_double(&json, "seconds", (double)view->duration_ns / NS_PER_SEC);
	if (table->is_alloc)
		json_put_double(&json, "held_long_seconds",
				(double)held_long_ns(view->held) / NS_PER_SEC);
	json_key(&json, "processes");
	json_open(&json, '[');
	for (uint32_t i = 0; i < view->processes->count; i++)
		put_process(&json, &view->processes->process[i]);
	json_close(&json, ']');
	json_key(&json, "lines");
	json_open(&json, '[');
	for (uint32_t i = 0; i < table->count; i++)
		if (is_shown(view, &table->row[i]))
			put_line(&json, table, &table->row[i]);
	json_close(&json, ']');
	json_close(&json, '}');
	putc('\n', out);
	return json_finish(&json);
}
