/* SPDX-License-Identifier: BSD-2-Clause */
#include "reader/calls_table.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "reader/text.h"
#include "render/format.h"

#define FIGURES_COLUMNS 63U /* before the function's name, with the blanks there */
#define CALLS_BYTES 48U

struct sorting {
	const struct call_graph *graph;
	enum calls_sort by;
};

bool calls_table_parse_sort(const char *text, enum calls_sort *ret_sort)
{
	static const char *const known[] = {[CALLS_SORT_SELF] = "self",
					    [CALLS_SORT_TOTAL] = "total",
					    [CALLS_SORT_CALLS] = "calls",
					    [CALLS_SORT_NAME] = "name"};

	for (size_t i = 0; i < ARRAY_SIZE(known); i++) {
		if (strcmp(known[i], text))
			continue;
		*ret_sort = (enum calls_sort)i;
		return true;
	}
	return false;
}

static const char *name_of(const struct call_graph *graph, uint32_t index)
{
	const struct code *code = &graph->code.code[index];

	return code->name ? code_text(&graph->code, code->name) : "[unknown]";
}

static int64_t sorted_by(const struct call_function *function, enum calls_sort by)
{
	switch (by) {
	case CALLS_SORT_TOTAL:
		return function->total;
	case CALLS_SORT_CALLS:
		return function->self_samples;
	case CALLS_SORT_NAME:
		return 0;
	case CALLS_SORT_SELF:
	default:
		return function->self;
	}
}

static int compare_functions(const void *a, const void *b, void *context)
{
	const struct sorting *sorting = context;
	const uint32_t index_a = *(const uint32_t *)a, index_b = *(const uint32_t *)b;
	const struct call_function *function = sorting->graph->function;
	const int64_t value_a = sorted_by(&function[index_a], sorting->by);
	const int64_t value_b = sorted_by(&function[index_b], sorting->by);
	int order;

	if (value_a != value_b)
		return value_a > value_b ? -1 : 1;
	order = strcmp(name_of(sorting->graph, index_a), name_of(sorting->graph, index_b));
	return order ? order : (index_a > index_b) - (index_a < index_b);
}

/* "30/10": calls, and those from outside of the function, where they differ. */
static const char *calls_text(const struct call_function *function, char text[CALLS_BYTES])
{
	if (function->self_samples == function->outer_samples)
		snprintf(text, CALLS_BYTES, "%" PRId64, function->self_samples);
	else
		snprintf(text, CALLS_BYTES, "%" PRId64 "/%" PRId64, function->self_samples,
			 function->outer_samples);
	return text;
}

/* A function that was entered before the start may have no call to divide by. */
static const char *per_call(int64_t value, int64_t calls, const char *unit, char text[FORMAT_BYTES])
{
	return calls > 0 ? format_value(value / calls, unit, text) : "-";
}

static void print_row(const struct call_graph *graph, uint32_t index,
		      const struct calls_table_options *options)
{
	const struct call_function *function = &graph->function[index];
	const char *unit = options->unit;
	char calls[CALLS_BYTES], self[FORMAT_BYTES], self_each[FORMAT_BYTES];
	char total[FORMAT_BYTES], total_each[FORMAT_BYTES];

	printf("%13s %10s %10s  %10s %10s   ", calls_text(function, calls),
	       format_value(function->self, unit, self),
	       per_call(function->self, function->self_samples, unit, self_each),
	       format_value(function->total, unit, total),
	       per_call(function->total, function->outer_samples, unit, total_each));
	text_code(&graph->code, &graph->code.code[index], name_of(graph, index),
		  text_room(FIGURES_COLUMNS), options->color);
	printf("\n");
}

static void print_head(const struct call_graph *graph, const struct calls_table_options *options)
{
	int64_t primitive = 0;

	for (uint32_t i = 0; i < graph->function_count; i++)
		primitive += graph->function[i].outer_samples;
	printf("%" PRId64 " calls", graph->total_samples);
	if (primitive != graph->total_samples)
		printf(" (%" PRId64 " primitive)", primitive);
	printf("\n%s%13s %10s %10s  %10s %10s   %s%s\n", text_color(options->color, TEXT_BOLD),
	       "NCALLS", "TOTTIME", "PERCALL", "CUMTIME", "PERCALL", "FUNCTION",
	       text_color(options->color, TEXT_PLAIN));
}

int calls_table_print(const struct call_graph *graph, const struct calls_table_options *options)
{
	struct sorting sorting = {.graph = graph, .by = options->sort};
	OWNED_MEM uint32_t *order = calloc((size_t)graph->function_count + 1, sizeof(*order));
	uint32_t shown = graph->function_count;

	if (!order)
		return -ENOMEM;
	for (uint32_t i = 0; i < graph->function_count; i++)
		order[i] = i;
	qsort_r(order, graph->function_count, sizeof(*order), compare_functions, &sorting);
	if (options->rows && shown > options->rows)
		shown = (uint32_t)options->rows;
	print_head(graph, options);
	for (uint32_t i = 0; i < shown; i++)
		print_row(graph, order[i], options);
	if (shown < graph->function_count)
		printf("... %" PRIu32 " more rows; --top 0 shows all\n",
		       graph->function_count - shown);
	return 0;
}
