/* SPDX-License-Identifier: BSD-2-Clause */
#include "reader/mem_view.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/kinds.h"
#include "base/saturating.h"
#include "reader/text.h"
#include "render/format.h"

/* ---- the table ---- */

void mem_table_release(struct mem_table *table)
{
	code_table_release(&table->code);
	free(table->row);
	*table = (struct mem_table){0};
}

static bool find_columns(const struct profile *profile, enum pp_profile kind,
			 unsigned int column[MEM_COLUMNS])
{
	const struct kind *own = kind_get(kind);

	for (unsigned int i = 0; own->value[i].type; i++) {
		const int at = profile_find_value(&profile->options, own->value[i].type, NULL);

		if (at < 0)
			return false;
		column[i] = (unsigned int)at;
	}
	return true;
}

/* ---- filling ---- */

static void add_held(struct mem_row *row, const struct held *held, uint32_t index)
{
	row->at_peak = add_saturating(row->at_peak, held_at_peak(held, index));
	row->for_long = add_saturating(row->for_long, held_for_long(held, index));
	for (uint32_t i = 0; i < held->points; i++)
		row->point[i] = add_saturating(row->point[i], held_at_point(held, index, i));
}

static void find_growth(struct mem_row *row, const struct held *held)
{
	const struct held_window *first = NULL, *last = NULL;
	int64_t first_bytes = 0, last_bytes = 0;

	for (uint32_t i = 0; i < held->points; i++) {
		if (!held_has_point(held, i))
			continue;
		if (!first) {
			first = &held->point[i];
			first_bytes = row->point[i];
		} else {
			row->intervals++;
			row->grew += row->point[i] > last_bytes;
		}
		last = &held->point[i];
		last_bytes = row->point[i];
	}
	if (row->intervals)
		row->growth = ((double)last_bytes - (double)first_bytes) * 60 * NS_PER_SEC /
			      (double)(last->end_ns - first->end_ns);
}

static int leaf_code(struct mem_table *table, const struct profile *profile, uint32_t index,
		     uint32_t *ret_code)
{
	const struct stack *stack = &profile->stacks.stack[profile->row[index].stack];

	return stack->count ? code_table_of_location(&table->code, stack->location[0], ret_code)
			    : code_table_add(&table->code, &(struct code){0}, ret_code);
}

static int add_rows(struct mem_table *table, const struct profile *profile,
		    const unsigned int column[MEM_COLUMNS], const struct held *held)
{
	const unsigned int columns = table->is_alloc ? MEM_ALLOC_TYPES : MEM_TYPES;
	CLEANUP(id_map_release) struct id_map row_of_code = {0};
	int err = 0;

	for (uint32_t i = 0; i < profile->row_count && !err; i++) {
		const int64_t *value = profile_row_values(profile, i);
		uint32_t code, at;

		err = leaf_code(table, profile, i, &code);
		if (!err)
			err = id_map_reserve(&row_of_code, table->code.capacity);
		if (err)
			return err;
		if (!id_map_find(&row_of_code, code, &at)) {
			at = table->count++;
			table->row[at] = (struct mem_row){.code = code};
			id_map_set(&row_of_code, code, at);
		}
		for (unsigned int k = 0; k < columns; k++) {
			int64_t *sum = &table->row[at].value[k];

			*sum = add_saturating(*sum, value[column[k]]);
			table->all[k] = add_saturating(table->all[k], value[column[k]]);
		}
		if (table->is_alloc)
			add_held(&table->row[at], held, i);
	}
	return 0;
}

int mem_table_fill(struct mem_table *table, const struct profile *profile, const struct held *held)
{
	unsigned int column[MEM_COLUMNS];
	int err;

	table->is_alloc = kind_is(profile->options.kind, PP_PROFILE_ALLOC);
	if (!find_columns(profile, table->is_alloc ? PP_PROFILE_ALLOC : PP_PROFILE_MEM, column))
		return -EPROTO;
	code_table_init(&table->code, profile, CODE_BY_LINE);
	table->row = calloc((size_t)profile->row_count + 1, sizeof(*table->row));
	if (!table->row)
		return -ENOMEM;
	err = add_rows(table, profile, column, held);
	for (uint32_t i = 0; i < table->count && table->is_alloc && !err; i++)
		find_growth(&table->row[i], held);
	return err;
}

/* ---- the order ---- */

bool mem_row_leaks(const struct mem_row *row)
{
	return row->growth > 0 && row->grew * 2 > row->intervals;
}

static int compare_touched(const void *left, const void *right)
{
	const struct mem_row *a = left, *b = right;

	return ORDER(add_saturating(b->value[MEM_TOUCHED], b->value[MEM_COPIED]),
		     add_saturating(a->value[MEM_TOUCHED], a->value[MEM_COPIED]))
		       ?: ORDER(a->code, b->code);
}

static int compare_held(const void *left, const void *right)
{
	const struct mem_row *a = left, *b = right;

	return ORDER(b->value[MEM_HELD], a->value[MEM_HELD])
		       ?: ORDER(b->value[MEM_ALLOCATED], a->value[MEM_ALLOCATED])
		       ?: ORDER(a->code, b->code);
}

static int compare_leaks(const void *left, const void *right)
{
	const struct mem_row *a = left, *b = right;
	const bool leaks = mem_row_leaks(a);

	return ORDER(mem_row_leaks(b), leaks)
		       ?: (leaks ? ORDER(b->growth, a->growth) : 0)
		       ?: ORDER(b->for_long, a->for_long) ?: compare_held(left, right);
}

void mem_table_sort(struct mem_table *table, bool by_leak)
{
	if (table->count)
		qsort(table->row, table->count, sizeof(*table->row),
		      by_leak		? compare_leaks
		      : table->is_alloc ? compare_held
					: compare_touched);
}

#define PROCESSES_SHOWN 10U
#define TITLE_BYTES 48U
#define PROCESS_BYTES 160U /* pid, comm and colours */
#define ALLOC_AT_PEAK 4U   /* a column; those of time come after it */

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

/* ---- processes ---- */

static void put_process(struct table *table, const struct process_memory *process)
{
	char name[PROCESS_BYTES];

	table_value(table, process_memory_bytes(process), "bytes");
	table_value(table, process->bytes[PP_MEMORY_ANONYMOUS], "bytes");
	table_value(table, process->bytes[PP_MEMORY_FILE], "bytes");
	table_value(table, process->bytes[PP_MEMORY_SHARED], "bytes");
	table_measure(table, process_memory_growth(process), 1, "bytes");
	table_value(table, process->peak_bytes, "bytes");
	table_int(table, process->pid, NULL);
	snprintf(name, sizeof(name), "%s%" PRId64 " %.64s%s", text_color(table->color, TEXT_BOLD),
		 process->pid, process->comm, text_color(table->color, TEXT_PLAIN));
	table_string(table, process->comm, name);
}

static void print_others(const struct process_memory *rest, int64_t unread, FILE *out)
{
	char text[FORMAT_BYTES];

	if (rest->processes || unread)
		fprintf(out, "%11s  of %" PRId64 " more processes",
			format_value(process_memory_bytes(rest), "bytes", text), rest->processes);
	if (unread)
		fprintf(out, "; %" PRId64 " were not read", unread);
	fprintf(out, "%s\n", rest->processes || unread ? "\n" : "");
}

static void put_processes(const struct mem_view *view, struct table *table)
{
	static const struct table_column columns[] = {{"resident", "RESIDENT", 11},
						      {"anonymous", "ANONYMOUS", 11},
						      {"file", "FILE", 11},
						      {"shared", "SHARED", 11},
						      {"growth_per_minute", "GROWTH/MIN", 13},
						      {"peak", "PEAK", 11},
						      {"pid", NULL, 0},
						      {"comm", "PROCESS", 0}};
	const struct process_memories *processes = view->processes;
	struct process_memory rest = processes->others;

	table_begin(table, "processes", columns, ARRAY_SIZE(columns));
	for (uint32_t i = 0; i < processes->count; i++) {
		if (i < PROCESSES_SHOWN || !table_is_for_people(table))
			put_process(table, &processes->process[i]);
		else
			process_memory_add(&rest, &processes->process[i]);
	}
	table_end(table);
	if (processes->count && table_is_for_people(table))
		print_others(&rest, processes->unread, table->out);
}

/* ---- lines ---- */

static void put_touched(const struct mem_view *view, const struct mem_row *row, struct table *table)
{
	const double share = share_of(view->table, row);
	char text[FORMAT_BYTES];

	table_paint(table, text_color(table->color, text_color_of_share(share)));
	table_real(table, share, 6, format_share(share, text));
	table_value(table, row->value[MEM_TOUCHED], "bytes");
	table_value(table, row->value[MEM_COPIED], "bytes");
	table_int(table, row->value[MEM_FAULTS], NULL);
}

static void put_allocated(const struct mem_row *row, struct table *table)
{
	table_value(table, row->value[MEM_ALLOCATED], "bytes");
	table_int(table, row->value[MEM_OBJECTS], NULL);
	table_value(table, row->value[MEM_HELD], "bytes");
	table_int(table, row->value[MEM_HELD_OBJECTS], NULL);
	table_value(table, row->at_peak, "bytes");
}

static void put_growth(const struct mem_view *view, const struct mem_row *row, struct table *table)
{
	const bool leaks = mem_row_leaks(row);
	const char *red = text_color(table->color, leaks ? TEXT_RED : TEXT_PLAIN);
	char text[FORMAT_BYTES], grew[FORMAT_BYTES] = "-";

	table_int(table, row->for_long,
		  view->held->windows > 1 ? format_value(row->for_long, "bytes", text) : "-");
	table_paint(table, red);
	table_measure(table, row->intervals ? row->growth : NAN, 1, "bytes");
	if (row->intervals)
		snprintf(grew, sizeof(grew), "%u/%u", row->grew, row->intervals);
	table_paint(table, red);
	table_int(table, row->grew, grew);
	table_int(table, row->intervals, NULL);
	table_paint(table, red);
	table_int(table, leaks, leaks ? "*" : " ");
}

static void put_line(const struct mem_view *view, const struct mem_row *row, struct table *table)
{
	const struct code_table *codes = &view->table->code;

	if (view->table->is_alloc) {
		put_allocated(row, table);
		put_growth(view, row, table);
	} else {
		put_touched(view, row, table);
	}
	text_code_cells(table, codes, &codes->code[row->code], text_taken(table));
}

/* Shows people the columns of --leaks, or the others.  title: of what is held for long. */
static void choose_titles(const struct mem_view *view, struct table_column *column, size_t count,
			  char title[TITLE_BYTES])
{
	char span[FORMAT_BYTES];

	snprintf(title, TITLE_BYTES, ">%.36s", format_span(held_long_ns(view->held), span));
	for (size_t i = 0; i < count; i++) {
		const bool is_common = !strcmp(column[i].key, "inuse_space") || !column[i].width;
		const bool is_growth = i > ALLOC_AT_PEAK;

		if (!is_common && is_growth != view->leaks)
			column[i].title = NULL;
	}
	if (view->leaks)
		column[ALLOC_AT_PEAK + 1].title = view->held->windows > 1 ? title : "-";
}

static void put_lines(const struct mem_view *view, struct table *table)
{
	static const struct table_column touched[] = {{"share", "SHARE", 9},
						      {"first_touch", "TOUCHED", 12},
						      {"cow", "COPIED", 12},
						      {"faults", "FAULTS", 12},
						      TEXT_CODE_CELLS("LINE")};
	struct table_column allocated[] = {{"alloc_space", "ALLOCATED", 11},
					   {"alloc_objects", "OBJECTS", 9},
					   {"inuse_space", "HELD", 11},
					   {"inuse_objects", "OBJECTS", 9},
					   {"at_peak", "AT PEAK", 11},
					   {"held_long", "-", 11},
					   {"growth_per_minute", "GROWTH/MIN", 12},
					   {"grew", "GREW", 8},
					   {"intervals", NULL, 0},
					   {"leaks", " ", 2},
					   TEXT_CODE_CELLS("LINE")};
	const struct mem_table *rows = view->table;
	const bool is_for_people = table_is_for_people(table);
	uint32_t shown = 0, left = 0;
	char title[TITLE_BYTES];

	if (rows->is_alloc)
		choose_titles(view, allocated, ARRAY_SIZE(allocated), title);
	table_begin(table, "lines", rows->is_alloc ? allocated : touched,
		    rows->is_alloc ? ARRAY_SIZE(allocated) : ARRAY_SIZE(touched));
	for (uint32_t i = 0; i < rows->count; i++) {
		if (!is_shown(view, &rows->row[i]))
			continue;
		if (is_for_people && view->rows && shown == view->rows) {
			left++;
			continue;
		}
		shown++;
		put_line(view, &rows->row[i], table);
	}
	table_end(table);
	table_more_rows(table, left);
}

static void print_foot(const struct mem_view *view, FILE *out)
{
	if (view->leaks && view->held->windows < 2)
		fprintf(out, "There is one window only: what is held for long, and what grows, "
			     "shows with several.\n");
	else if (view->leaks)
		fprintf(out, "* grew in most of the intervals of the range.\n");
	if (view->held && view->held->left_out)
		fprintf(out,
			"%" PRIu64
			" values of further stacks are left out of the columns of time\n",
			view->held->left_out);
}

void mem_view_put(const struct mem_view *view, struct table *table)
{
	if (table_is_for_people(table)) {
		put_processes(view, table);
		put_lines(view, table);
		if (view->table->count)
			print_foot(view, table->out);
		return;
	}
	table_fact_string(table, "kind", view->table->is_alloc ? "alloc" : "mem");
	if (view->table->is_alloc)
		table_fact_real(table, "held_long_seconds",
				(double)held_long_ns(view->held) / NS_PER_SEC);
	put_lines(view, table);
	put_processes(view, table);
}
