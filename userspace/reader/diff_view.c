/* SPDX-License-Identifier: BSD-2-Clause */
#include "reader/diff_view.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory_file.h"
#include "diff/significance.h"
#include "reader/text.h"
#include "render/format.h"

#define SIGNIFICANT 0.05
#define MAX_STACK_FRAMES 12U /* at the leaf's end; a row is one line */
#define SMALLEST_P 0.0001
/* A narrower terminal has room for the names when these are left out: p (its `*` stays), the
 * interval, the coefficients of variation, and of the total all but its change. */
#define WIDE_COLUMNS 140U
#define WIDE_FIGURES 101U
#define NARROW_FIGURES 33U
#define STACK_FIGURES 59U
#define NARROW_STACK_FIGURES 24U

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

static void name_row(const struct diff_view *view, enum diff_by by, const struct diff_row *row,
		     unsigned int room, FILE *out)
{
	uint32_t line = diff_row_line(row, by);
	const char *name = function_name(view, row), *place;
	char whole[TEXT_PLACE_BYTES];
	struct text_cut cut;

	if (by == DIFF_BY_STACK) {
		print_stack(view, row, room, out);
		return;
	}
	place = row->code.file ? short_paths_get(input_short_paths(view->input), row->code.file,
						 text_of(view, row->code.file))
			       : path_base(text_of(view, row->code.module));
	if (row->code.file && line) {
		snprintf(whole, sizeof(whole), "%s:%" PRIu32, place, line);
		place = whole;
	}
	text_fit(room, &name, &place, &cut);
	fprintf(out, "%s%s%s  %s%s%s", text_color(view->color, TEXT_BOLD), name,
		text_color(view->color, TEXT_PLAIN), text_color(view->color, TEXT_DIM), place,
		text_color(view->color, TEXT_PLAIN));
}

void diff_view_name(const struct diff_view *view, enum diff_by by, const struct diff_row *row,
		    FILE *out)
{
	name_row(view, by, row, 0, out);
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

static void print_p(double p, int width)
{
	if (p < 0)
		printf("%*s", width, "-");
	else if (p < SMALLEST_P)
		printf("%*s", width, "<0.0001");
	else
		printf("%*.4f", width, p);
}

static void print_cov(double cov)
{
	if (cov < 0)
		printf("%6s", "-");
	else
		printf("%5.0f%%", cov * 100);
}

static void print_interval(const struct diff_change *change)
{
	char text[40] = "?";

	if (change->low <= change->high)
		snprintf(text, sizeof(text), "%+.1f..%+.1f", change->low * 100, change->high * 100);
	printf(" %14s", text);
}

static bool is_wide(void)
{
	return !text_columns() || text_columns() >= WIDE_COLUMNS;
}

static void print_change(const struct diff_view *view, const struct diff_row *row,
			 enum diff_column column)
{
	const struct diff_change *change = &row->change[column];
	double points = change_of(row, column) * 100;
	bool sure = change->p >= 0 && change->p < SIGNIFICANT;

	if (is_wide() || column == DIFF_SELF)
		printf("%7.1f%6.1f", change->share[DIFF_A] * 100, change->share[DIFF_B] * 100);
	printf(" %s%+7.2f%c%s",
	       text_color(view->color, !sure	    ? TEXT_DIM
				       : points > 0 ? TEXT_RED
						    : TEXT_GREEN),
	       points, sure ? '*' : ' ', text_color(view->color, TEXT_PLAIN));
}

static void print_column(const struct diff_view *view, const struct diff_row *row,
			 enum diff_column column)
{
	const struct diff_change *change = &row->change[column];

	print_change(view, row, column);
	if (!is_wide())
		return;
	print_p(change->p, 8);
	if (column == DIFF_SELF)
		print_interval(change);
	print_cov(change->cov[DIFF_A]);
	print_cov(change->cov[DIFF_B]);
}

static void print_row(const struct diff_view *view, enum diff_by by, const struct diff_row *row)
{
	unsigned int taken = by == DIFF_BY_STACK ? is_wide() ? STACK_FIGURES : NARROW_STACK_FIGURES
			     : is_wide()	 ? WIDE_FIGURES
						 : NARROW_FIGURES;

	print_column(view, row, DIFF_SELF);
	if (by != DIFF_BY_STACK)
		print_column(view, row, DIFF_TOTAL);
	printf("  ");
	name_row(view, by, row, text_room(taken), stdout);
	printf("\n");
}

static void print_titles(const struct diff_view *view, enum diff_by by)
{
	static const char *const names[] = {[DIFF_BY_FUNCTION] = "FUNCTION",
					    [DIFF_BY_LINE] = "LINE",
					    [DIFF_BY_STACK] = "STACK"};

	printf("%s%7s%6s %7s ", text_color(view->color, TEXT_BOLD), "SELF A", "B", "CHANGE");
	if (is_wide())
		printf("%8s %14s%6s%6s", "p", "95 % of it", "CoV A", "B");
	if (by != DIFF_BY_STACK && is_wide())
		printf("%7s%6s %7s %8s%6s%6s", "TOT A", "B", "CHANGE", "p", "CoV A", "B");
	else if (by != DIFF_BY_STACK)
		printf(" %7s ", "TOTAL");
	printf("  %s%s\n", names[by], text_color(view->color, TEXT_PLAIN));
}

/* ---- the head ---- */

static void print_side(const struct diff_view *view, enum diff_side_id id, FILE *out)
{
	const struct diff_side *side = &view->data->side[id];
	const struct diff_facts *facts = &view->facts[id];
	const struct profile_reader *reader = input_reader(view->input);
	const char *unit =
		view->data->profile->options.value_type[profile_reader_value_index(reader)].unit;
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
	const struct profile_reader *reader = input_reader(view->input);
	int err;

	fprintf(out, "%s: %s, then %s\n",
		view->data->profile->options.value_type[profile_reader_value_index(reader)].type,
		input_path(view->input, DIFF_A), input_path(view->input, DIFF_B));
	print_side(view, DIFF_A, out);
	print_side(view, DIFF_B, out);
	err = print_whole(view, out);
	if (!err)
		print_way(view, out);
	return err;
}

int diff_view_head(const struct diff_view *view)
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
		text_wrap(stdout, text, 2, text_columns());
	return err;
}

/* ---- tables ---- */

static int compare_rows(const void *a, const void *b, void *context)
{
	const struct diff_view *view = context;
	const struct diff_row *row_a = *(struct diff_row *const *)a;
	const struct diff_row *row_b = *(struct diff_row *const *)b;
	/* Stacks only have self. */
	enum diff_column column = row_a->frame_count ? DIFF_SELF : view->sort;
	double change_a = fabs(change_of(row_a, column)), change_b = fabs(change_of(row_b, column));

	if (is_significant(row_a) != is_significant(row_b))
		return is_significant(row_a) ? -1 : 1;
	if (change_a < change_b || change_a > change_b)
		return change_a > change_b ? -1 : 1;
	return (row_a > row_b) - (row_a < row_b);
}

int diff_view_table(const struct diff_view *view, enum diff_by by, uint32_t tests)
{
	struct diff_table *table = &view->data->table[by];
	OWNED_MEM struct diff_row **order = calloc((size_t)table->count + 1, sizeof(*order));
	uint32_t shown = table->count, significant = 0;

	if (!order)
		return -ENOMEM;
	for (uint32_t i = 0; i < table->count; i++) {
		order[i] = &table->row[i];
		significant += is_significant(order[i]);
	}
	qsort_r(order, table->count, sizeof(*order), compare_rows, (void *)view);
	if (view->rows && shown > view->rows)
		shown = (uint32_t)view->rows;
	printf("\n");
	print_titles(view, by);
	for (uint32_t i = 0; i < shown; i++) {
		int err = significance_interval(view->data, order[i], DIFF_SELF);

		if (err)
			return err;
		print_row(view, by, order[i]);
	}
	printf("%" PRIu32 " of %" PRIu32 " rows differ; %" PRIu32 " tests", significant,
	       table->count, tests);
	if (shown < table->count)
		printf("; %" PRIu32 " more rows, --top 0 shows all", table->count - shown);
	printf("\n");
	return 0;
}
