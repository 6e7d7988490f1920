/* SPDX-License-Identifier: BSD-2-Clause */
#include "reader/callers.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "reader/text.h"
#include "render/call_graph.h"
#include "render/format.h"

#define CALLERS_FIGURES_COLUMNS 36U /* of the widest indent, shares and time */
#define CALLS_COLUMNS 12U

struct listing {
	const struct call_graph *graph;
	const char *unit;
	FILE *out;
	bool color;
	bool are_calls; /* the graph counts exact calls, which are shown */
};

static double share_of(int64_t value, int64_t all)
{
	return all ? (double)value / (double)all : 0;
}

static int compare_functions(const void *a, const void *b, void *context)
{
	const struct call_function *function = context;
	uint32_t code_a = *(const uint32_t *)a, code_b = *(const uint32_t *)b;

	if (function[code_a].total != function[code_b].total)
		return function[code_a].total > function[code_b].total ? -1 : 1;
	return (code_a > code_b) - (code_a < code_b);
}

static int compare_edges(const void *a, const void *b)
{
	const struct call_edge *edge_a = *(struct call_edge *const *)a;
	const struct call_edge *edge_b = *(struct call_edge *const *)b;

	if (edge_a->total != edge_b->total)
		return edge_a->total > edge_b->total ? -1 : 1;
	return (edge_a > edge_b) - (edge_a < edge_b);
}

/* calls: shown where they are exact. */
static void print_line(const struct listing *listing, const char *indent, uint32_t code_index,
		       int64_t value, int64_t of, int64_t calls)
{
	const struct code_table *table = &listing->graph->code;
	const struct code *code = &table->code[code_index];
	char text[FORMAT_BYTES];

	fprintf(listing->out, "%s%6.1f %% %7.1f %% %10s  ", indent, share_of(value, of) * 100,
		share_of(value, listing->graph->total) * 100,
		format_value(value, listing->unit, text));
	if (listing->are_calls)
		fprintf(listing->out, "%10" PRId64 "  ", calls);
	text_code(listing->out, table, code,
		  code->name ? code_text(table, code->name) : "[unknown]",
		  text_room(CALLERS_FIGURES_COLUMNS + (listing->are_calls ? CALLS_COLUMNS : 0)),
		  listing->color);
	fprintf(listing->out, "\n");
}

/* Prints the edges of one function, largest first. */
static int print_edges(const struct listing *listing, uint32_t code, bool of_callers)
{
	const struct call_graph *graph = listing->graph;
	const struct call_function *function = &graph->function[code];
	OWNED_MEM struct call_edge **edge = NULL;
	uint32_t count = 0, at;

	for (at = of_callers ? function->first_caller : function->first_callee; at; count++)
		at = of_callers ? graph->edge[at - 1].next_caller : graph->edge[at - 1].next_callee;
	edge = calloc((size_t)count + 1, sizeof(struct call_edge *));
	if (!edge)
		return -ENOMEM;
	at = of_callers ? function->first_caller : function->first_callee;
	for (uint32_t i = 0; i < count; i++) {
		edge[i] = &graph->edge[at - 1];
		at = of_callers ? edge[i]->next_caller : edge[i]->next_callee;
	}
	qsort(edge, count, sizeof(struct call_edge *), compare_edges);
	for (uint32_t i = 0; i < count; i++)
		print_line(listing, of_callers ? "  <- " : "  -> ",
			   of_callers ? edge[i]->caller : edge[i]->callee, edge[i]->total,
			   function->total, edge[i]->self_samples);
	if (!count)
		fprintf(listing->out, "       %s\n",
			of_callers ? "nobody: it is the root" : "nothing");
	return 0;
}

static int print_matches(const struct listing *listing, const regex_t *regex, bool of_callers)
{
	const struct call_graph *graph = listing->graph;
	OWNED_MEM uint32_t *found = calloc((size_t)graph->function_count + 1, sizeof(*found));
	uint32_t count = 0;
	int err = 0;

	if (!found)
		return -ENOMEM;
	for (uint32_t i = 0; i < graph->function_count; i++)
		if (!regexec(regex, code_text(&graph->code, graph->code.code[i].name), 0, NULL, 0))
			found[count++] = i;
	qsort_r(found, count, sizeof(*found), compare_functions, graph->function);
	fprintf(listing->out, "%s%s: share of the function, share of all, time%s%s\n",
		text_color(listing->color, TEXT_BLUE), of_callers ? "Callers" : "Callees",
		listing->are_calls ? ", calls" : "", text_color(listing->color, TEXT_PLAIN));
	for (uint32_t i = 0; !err && i < count; i++) {
		const struct call_function *function = &graph->function[found[i]];

		print_line(listing, "     ", found[i], function->total, function->total,
			   function->self_samples);
		if (!of_callers && function->self) {
			char text[FORMAT_BYTES];

			fprintf(listing->out, "  -> %6.1f %% %7.1f %% %10s  %s(itself)\n",
				share_of(function->self, function->total) * 100,
				share_of(function->self, graph->total) * 100,
				format_value(function->self, listing->unit, text),
				listing->are_calls ? "            " : "");
		}
		err = print_edges(listing, found[i], of_callers);
	}
	if (!count)
		fprintf(listing->out, "  no function matches\n");
	return err;
}

int callers_print(const struct input *input, const regex_t *callers, const regex_t *callees,
		  bool color, FILE *out)
{
	struct profile *profile = input_profile(input);
	unsigned int value_index = profile_reader_value_index(input_reader(input));
	struct listing listing = {
		.unit = profile->options.value_type[value_index].unit, .out = out, .color = color};
	const struct grouping ungrouped = {.keys = GROUP_BY_NONE};
	const int calls_index = call_graph_calls_index(profile);
	OWNED(call_graph) struct call_graph *graph = NULL;
	int err = call_graph_new(profile, value_index,
				 calls_index >= 0 ? calls_index
						  : profile_reader_count_index(input_reader(input)),
				 &ungrouped, &graph);

	listing.graph = graph;
	listing.are_calls = calls_index >= 0;
	if (!err)
		graph->code.short_paths = input_short_paths(input);
	if (!err && callers)
		err = print_matches(&listing, callers, true);
	if (!err && callees)
		err = print_matches(&listing, callees, false);
	return err;
}
