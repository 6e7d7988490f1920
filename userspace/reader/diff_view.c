/* SPDX-License-Identifier: BSD-2-Clause */
#include "reader/diff_view.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/io.h"
#include "diff/significance.h"
#include "reader/text.h"
#include "render/format.h"

#define SIGNIFICANT 0.05
#define MAX_STACK_FRAMES 12U /* at the leaf's end; a row is one line */
#define SMALLEST_P 0.0001
/* A narrower terminal has room for the names when these are left out: p (its `*` stays), the
 * interval, the coefficients of variation, and of the total all but its change. */
#define WIDE_COLUMNS 140U
#define FIRST_OF_TOTAL 9U /* a column */
#define CODE_AT 8U	  /* after it: what the row is */

/* ---- names ---- */

static const char *text_of(const struct diff_view *view, uint32_t string)
{
	return intern_get(view->data->profile->strings, string, NULL);
}

static const char *function_name(const struct diff_view *view, const struct diff_row *row)
{
	return row->code.name ? text_of(view, row->code.name) : "[unknown]";
}

static const char *stack_function(const struct diff_view *view, const struct diff_row *row,
				  uint32_t i)
{
	const struct diff_table *functions = &view->data->table[DIFF_BY_FUNCTION];

	return function_name(view, &functions->row[view->data->stack_frame[row->first_frame + i]]);
}

/* room: of the terminal; functions near the root are left out, and counted, until the rest fits.
 * 0: no limit. */
static void print_stack(const struct diff_view *view, const struct diff_row *row, unsigned int room,
			FILE *out)
{
	uint32_t count = row->frame_count, shown = 0;
	size_t columns = sizeof("(99999 more);");
	char cut[TEXT_PLACE_BYTES];

	if (!count)
		fprintf(out, "[no stack]");
	for (; shown < count && shown < MAX_STACK_FRAMES; shown++) {
		columns += text_columns_of(stack_function(view, row, shown)) + 1;
		if (room && shown && columns > room)
			break;
	}
	if (count > shown)
		fprintf(out, "(%" PRIu32 " more);", count - shown);
	for (uint32_t i = shown; i-- > 0;) {
		const char *name = stack_function(view, row, i);

		if (room && shown == 1)
			name = name_fit(name, room > 30 ? room - 14 : 16, cut, sizeof(cut));
		fprintf(out, "%s%s", name, i ? ";" : "");
	}
}

/* Returns the place of a row's code: "w.py:12". */
static const char *place_of(const struct diff_view *view, enum diff_by by,
			    const struct diff_row *row, char whole[TEXT_PLACE_BYTES])
{
	uint32_t line = diff_row_line(row, by);
	const char *place = row->code.file
				    ? short_paths_get(input_short_paths(view->input),
						      row->code.file, text_of(view, row->code.file))
				    : path_base(text_of(view, row->code.module));

	if (!row->code.file || !line)
		return place;
	snprintf(whole, TEXT_PLACE_BYTES, "%s:%" PRIu32, place, line);
	return whole;
}

static void put_name(const struct diff_view *view, enum diff_by by, const struct diff_row *row,
		     unsigned int room, bool color, FILE *out)
{
	const char *name = function_name(view, row), *place;
	char whole[TEXT_PLACE_BYTES];
	struct text_cut cut;

	if (by == DIFF_BY_STACK) {
		print_stack(view, row, room, out);
		return;
	}
	place = place_of(view, by, row, whole);
	text_fit(room, &name, &place, &cut);
	fprintf(out, "%s%s%s  %s%s%s", text_color(color, TEXT_BOLD), name,
		text_color(color, TEXT_PLAIN), text_color(color, TEXT_DIM), place,
		text_color(color, TEXT_PLAIN));
}

void diff_view_name(const struct diff_view *view, enum diff_by by, const struct diff_row *row,
		    FILE *out)
{
	put_name(view, by, row, 0, false, out);
}

/* ---- figures ---- */

static double change_of(const struct diff_row *row, enum diff_column column)
{
	return row->change[column].share[DIFF_B] - row->change[column].share[DIFF_A];
}

static bool is_significant(const struct diff_row *row)
{
	for (unsigned int c = 0; c < DIFF_COLUMNS; c++)
		if (row->change[c].p >= 0 && row->change[c].p < SIGNIFICANT)
			return true;
	return false;
}

static void put_p(double p, struct table *table)
{
	char text[FORMAT_BYTES];

	if (p < 0)
		snprintf(text, sizeof(text), "-");
	else if (p < SMALLEST_P)
		snprintf(text, sizeof(text), "<0.0001");
	else
		snprintf(text, sizeof(text), "%.4f", p);
	table_real(table, p < 0 ? NAN : p, 9, text);
}

static void put_cov(double cov, struct table *table)
{
	char text[FORMAT_BYTES] = "-";

	if (cov >= 0)
		snprintf(text, sizeof(text), "%.0f%%", cov * 100);
	table_real(table, cov < 0 ? NAN : cov, 6, text);
}

static void put_interval(const struct diff_change *change, struct table *table)
{
	const bool is_known = change->low <= change->high;
	char text[FORMAT_BYTES] = "?";

	if (is_known)
		snprintf(text, sizeof(text), "%+.1f..%+.1f", change->low * 100, change->high * 100);
	table_real(table, is_known ? change->low : NAN, 6, text);
	table_real(table, is_known ? change->high : NAN, 6, NULL);
}

static bool is_wide(void)
{
	return !text_columns() || text_columns() >= WIDE_COLUMNS;
}

static void put_share(double share, struct table *table)
{
	char text[FORMAT_BYTES];

	snprintf(text, sizeof(text), "%.1f", share * 100);
	table_real(table, share, 6, text);
}

static void put_column(const struct diff_row *row, enum diff_column column, struct table *table)
{
	const struct diff_change *change = &row->change[column];
	const double points = change_of(row, column) * 100;
	const bool sure = change->p >= 0 && change->p < SIGNIFICANT;
	char text[FORMAT_BYTES];

	put_share(change->share[DIFF_A], table);
	put_share(change->share[DIFF_B], table);
	snprintf(text, sizeof(text), "%+.2f%c", points, sure ? '*' : ' ');
	table_paint(table, text_color(table->color, !sure	 ? TEXT_DIM
						    : points > 0 ? TEXT_RED
								 : TEXT_GREEN));
	table_real(table, points / 100, 6, text);
	put_p(change->p, table);
	put_interval(change, table);
	put_cov(change->cov[DIFF_A], table);
	put_cov(change->cov[DIFF_B], table);
}

const char *const diff_by_names[] = {
	[DIFF_BY_FUNCTION] = "function", [DIFF_BY_LINE] = "line", [DIFF_BY_STACK] = "stack"};

static int put_row(const struct diff_view *view, enum diff_by by, const struct diff_row *row,
		   struct table *table)
{
	const bool is_stack = by == DIFF_BY_STACK;
	OWNED_MEM char *shown = NULL, *name = NULL;
	size_t size;
	FILE *out = open_memstream(&shown, &size);

	if (!out)
		return -ENOMEM;
	put_name(view, by, row, table->format == TABLE_TEXT ? text_room(text_taken(table)) : 0,
		 table->color, out);
	if (close_memory_file(out, &shown))
		return -ENOMEM;
	out = open_memstream(&name, &size);
	if (!out)
		return -ENOMEM;
	if (is_stack)
		print_stack(view, row, 0, out);
	else
		fputs(text_of(view, row->code.name), out);
	if (close_memory_file(out, &name))
		return -ENOMEM;
	table_string(table, diff_by_names[by], NULL);
	put_column(row, DIFF_SELF, table);
	put_column(row, DIFF_TOTAL, table);
	table_string(table, name, shown);
	table_string(table, is_stack ? "" : text_of(view, row->code.file), NULL);
	table_int(table, is_stack ? 0 : diff_row_line(row, by), NULL);
	return 0;
}

/* Of a stack there is self alone; a narrow terminal has no room for most of the figures. */
static void begin_table(enum diff_by by, struct table *table,
			struct table_column column[DIFF_VIEW_COLUMNS])
{
	static const struct table_column all[DIFF_VIEW_COLUMNS] = {
		{"by", NULL, 0},	 {"self_a", "SELF A", 7},
		{"self_b", "B", 6},	 {"self_change", "CHANGE ", 9},
		{"self_p", "p", 8},	 {"self_low", "95 % of it", 15},
		{"self_high", NULL, 0},	 {"self_cov_a", "CoV A", 6},
		{"self_cov_b", "B", 6},	 {"total_a", "TOT A", 7},
		{"total_b", "B", 6},	 {"total_change", "CHANGE ", 9},
		{"total_p", "p", 8},	 {"total_low", NULL, 0},
		{"total_high", NULL, 0}, {"total_cov_a", "CoV A", 6},
		{"total_cov_b", "B", 6}, TEXT_CODE_CELLS("FUNCTION")};
	static const char *const titles[] = {[DIFF_BY_FUNCTION] = "FUNCTION",
					     [DIFF_BY_LINE] = "LINE",
					     [DIFF_BY_STACK] = "STACK"};

	memcpy(column, all, sizeof(all));
	column[FIRST_OF_TOTAL + CODE_AT].title = titles[by];
	for (unsigned int i = 0; i < FIRST_OF_TOTAL + CODE_AT; i++) {
		const bool is_change = column[i].width == 9;
		const bool is_of_total = i >= FIRST_OF_TOTAL;
		const bool is_of_self = i == 1 || i == 2;

		if (!is_wide() && !is_change && !is_of_self)
			column[i].title = NULL;
		if (by == DIFF_BY_STACK && is_of_total)
			column[i].title = NULL;
		if (!is_wide() && is_change && is_of_total && by != DIFF_BY_STACK)
			column[i].title = "TOTAL ";
	}
	table_begin(table, "rows", column, DIFF_VIEW_COLUMNS);
}

/* ---- the head ---- */

static void print_side(const struct diff_view *view, enum diff_side_id id, FILE *out)
{
	const struct diff_side *side = &view->data->side[id];
	const struct diff_facts *facts = &view->facts[id];
	const char *unit = input_value_type(view->input)->unit;
	char text[FORMAT_BYTES];

	fprintf(out, "%c: %s in %" PRId64 " samples, %" PRIu32 " window%s",
		id == DIFF_A ? 'A' : 'B', format_value(side->all.value, unit, text),
		side->all.samples, side->windows, side->windows == 1 ? "" : "s");
	if (side->duration_ns)
		fprintf(out, ", %s recorded",
			format_value((int64_t)side->duration_ns, "nanoseconds", text));
	if (facts->host[0])
		fprintf(out, ", host %s", facts->host);
	if (diff_facts_load(facts) >= 0)
		fprintf(out, ", other load %.0f %%", diff_facts_load(facts) * 100);
	fprintf(out, "\n");
}

static int print_whole(const struct diff_view *view, FILE *out)
{
	struct diff_change change;
	double unit_ns = view->facts[DIFF_A].unit_ns;
	int err = 0;

	if (unit_ns <= 0 || !view->data->side[DIFF_A].duration_ns ||
	    !view->data->side[DIFF_B].duration_ns)
		return 0;
	err = significance_of_all(view->data, unit_ns, &change);
	if (err || change.share[DIFF_A] <= 0)
		return err;
	fprintf(out, "whole: %.3f s, then %.3f s a second: %+.1f %%", change.share[DIFF_A],
		change.share[DIFF_B], (change.share[DIFF_B] / change.share[DIFF_A] - 1) * 100);
	if (change.p >= 0)
		fprintf(out, ", p %.4f", change.p);
	if (change.cov[DIFF_A] >= 0 && change.cov[DIFF_B] >= 0)
		fprintf(out, ", CoV %.1f %%, %.1f %%", change.cov[DIFF_A] * 100,
			change.cov[DIFF_B] * 100);
	fprintf(out, "\n");
	return 0;
}

static void print_way(const struct diff_view *view, FILE *out)
{
	switch (significance_way(view->data)) {
	case SIGNIFICANCE_BY_RANKS:
		fprintf(out, "p: Mann-Whitney U over windows");
		break;
	case SIGNIFICANCE_BY_BOOTSTRAP:
		fprintf(out, "p: bootstrap over windows, as there are fewer than %u on a side",
			DIFF_MIN_WINDOWS);
		break;
	case SIGNIFICANCE_BY_SAMPLES:
		fprintf(out,
			"p: from the numbers of samples, with room for bursts, as a side is one "
			"window; windows of --interval tell more");
		break;
	case SIGNIFICANCE_BY_NONE:
		fprintf(out, "p: none, a side is one window and does not count its samples\n");
		return;
	}
	fprintf(out, "; corrected over each table (Holm).  *: below %.2f\n", SIGNIFICANT);
}

static int put_head(const struct diff_view *view, FILE *out)
{
	int err;

	fprintf(out, "%s: %s, then %s\n", input_value_type(view->input)->type,
		input_path(view->input, DIFF_A), input_path(view->input, DIFF_B));
	print_side(view, DIFF_A, out);
	print_side(view, DIFF_B, out);
	err = print_whole(view, out);
	if (!err)
		print_way(view, out);
	return err;
}

static int print_head(const struct diff_view *view, FILE *to)
{
	OWNED_MEM char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);
	int err;

	if (!out)
		return -ENOMEM;
	err = put_head(view, out);
	if (close_memory_file(out, &text) && !err)
		err = -ENOMEM;
	if (!err)
		text_wrap(to, text, 2, text_columns());
	return err;
}

int diff_view_head(const struct diff_view *view, struct table *table)
{
	if (table_is_for_people(table))
		return print_head(view, table->out);
	table_fact_string(table, "type", input_value_type(view->input)->type);
	table_fact_string(table, "a", input_path(view->input, DIFF_A));
	table_fact_string(table, "b", input_path(view->input, DIFF_B));
	return 0;
}

/* ---- tables ---- */

static int compare_rows(const void *a, const void *b, void *context)
{
	const struct diff_view *view = context;
	const struct diff_row *row_a = *(struct diff_row *const *)a;
	const struct diff_row *row_b = *(struct diff_row *const *)b;
	/* Stacks only have self. */
	enum diff_column column = row_a->frame_count ? DIFF_SELF : view->sort;

	return ORDER(is_significant(row_b), is_significant(row_a))
		       ?: ORDER(fabs(change_of(row_b, column)), fabs(change_of(row_a, column)))
		       ?: ORDER(row_a, row_b);
}

/* Sorts the rows.  *ret_significant: how many differ. */
static int sort_rows(const struct diff_view *view, const struct diff_table *table,
		     struct diff_row ***ret_order, uint32_t *ret_significant)
{
	OWNED_MEM struct diff_row **order = calloc((size_t)table->count + 1, sizeof(*order));

	if (!order)
		return -ENOMEM;
	*ret_significant = 0;
	for (uint32_t i = 0; i < table->count; i++) {
		order[i] = &table->row[i];
		*ret_significant += is_significant(order[i]);
	}
	qsort_r(order, table->count, sizeof(*order), compare_rows, (void *)view);
	*ret_order = TAKE(order);
	return 0;
}

static int put_rows(const struct diff_view *view, enum diff_by by, struct diff_row **order,
		    uint32_t count, struct table *table)
{
	int err = 0;

	for (uint32_t i = 0; !err && i < count; i++) {
		err = significance_interval(view->data, order[i], DIFF_SELF);
		if (!err)
			err = put_row(view, by, order[i], table);
	}
	return err;
}

static int put_table(const struct diff_view *view, enum diff_by by, uint32_t tests,
		     struct table *table)
{
	const struct diff_table *rows = &view->data->table[by];
	struct table_column column[DIFF_VIEW_COLUMNS];
	const bool is_for_people = table_is_for_people(table);
	OWNED_MEM struct diff_row **order = NULL;
	uint32_t shown = rows->count, significant;
	int err = sort_rows(view, rows, &order, &significant);

	if (err)
		return err;
	if (!is_for_people)
		return put_rows(view, by, order, shown, table);
	if (view->rows && shown > view->rows)
		shown = (uint32_t)view->rows;
	fputs("\n", table->out);
	begin_table(by, table, column);
	err = put_rows(view, by, order, shown, table);
	table_end(table);
	fprintf(table->out, "%" PRIu32 " of %" PRIu32 " rows differ; %" PRIu32 " tests",
		significant, rows->count, tests);
	if (shown < rows->count)
		fprintf(table->out, "; %" PRIu32 " more rows, --top 0 shows all",
			rows->count - shown);
	fputs("\n", table->out);
	return err;
}

int diff_view_tables(const struct diff_view *view, unsigned int by,
		     const uint32_t tests[DIFF_TABLES], struct table *table)
{
	struct table_column column[DIFF_VIEW_COLUMNS];
	const bool is_for_people = table_is_for_people(table);
	int err = 0;

	if (!is_for_people)
		begin_table(DIFF_BY_FUNCTION, table, column);
	for (unsigned int i = 0; !err && i < DIFF_TABLES; i++)
		if (by & 1U << i)
			err = put_table(view, (enum diff_by)i, tests[i], table);
	if (!is_for_people)
		table_end(table);
	return err;
}
