/* SPDX-License-Identifier: BSD-2-Clause */
/* pyprof calls: the call graph, for Graphviz and for readers of cProfile's files; of exact calls
 * also cProfile's table. */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "export/exports.h"
#include "reader/read_input.h"
#include "reader/select_options.h"
#include "reader/text.h"
#include "reader/verb.h"
#include "render/call_graph.h"
#include "render/format.h"
#include "render/table.h"

#define DEFAULT_NODE_MIN 0.005
#define EDGE_OF_NODE_MIN 0.2 /* the thinnest arrow, as a part of the smallest box */
#define FIGURES_COLUMNS 71U  /* before the function's name, with the blanks there */
#define CALLS_BYTES 48U
#define DEFAULT_ROWS 30U

enum calls_sort { CALLS_SORT_SELF, CALLS_SORT_TOTAL, CALLS_SORT_CALLS, CALLS_SORT_NAME };

struct calls {
	struct select_options shared;
	struct dot_options dot;
	const char *path;     /* "-": standard output */
	const char *slowdown; /* --max-slowdown; NULL: not given */
	enum calls_sort sort;
	unsigned long rows;	    /* 0: all */
	const char *of_table;	    /* an option of the table, when one was given */
	regex_t *callers, *callees; /* owned; NULL: not given */
};

/* Without one, exact calls are a table and others a graph. */
enum { FORMAT_DOT = TABLE_SQL + 1, FORMAT_PSTATS, FORMATS };
static const char *const formats[FORMATS + 1] = {
	SELECT_TABLE_FORMATS, [FORMAT_DOT] = "dot", [FORMAT_PSTATS] = "pstats"};

static const char doc[] =
	"Shows who calls whom: a box is a function, with the share of all time "
	"that it took with what it calls, and (by itself).  That is dot, for Graphviz; pstats is "
	"for python "
	"-m pstats, snakeviz and gprof2dot, with numbers of samples for calls, except of exact "
	"calls, of which the other formats are."
	"\vExamples:\n"
	"  pyprof calls cpu.pb.gz | dot -Tsvg > calls.svg\n"
	"  pyprof calls --python --focus train cpu.pb.gz | dot -Tpng > calls.png\n"
	"  pyprof calls --format pstats -o out.prof cpu.pb.gz && snakeviz out.prof\n"
	"  sudo pyprof calls --exact --pid 1234 --for 10 --format pstats -o out.prof\n"
	"  pyprof calls --sort total calls.pb.gz\n"
	"  sudo pyprof calls --live --pid 1234 | dot -Tsvg > calls.svg\n";

static const char *const sorts[] = {[CALLS_SORT_SELF] = "self",
				    [CALLS_SORT_TOTAL] = "total",
				    [CALLS_SORT_CALLS] = "calls",
				    [CALLS_SORT_NAME] = "name",
				    NULL};

/* Of the table: notes that one was given. */
static void parse_of_table(const struct given *given)
{
	struct calls *calls = given->at;

	calls->of_table = given->option;
	if (!strcmp(given->option, "sort"))
		calls->sort = (enum calls_sort)option_word(given, sorts);
	else if (!strcmp(given->option, "top"))
		calls->rows = option_number(given);
	else
		option_regex(given,
			     strcmp(given->option, "callers") ? &calls->callees : &calls->callers);
}

static void parse_min(const struct given *given)
{
	struct dot_options *dot = given->at;

	dot->node_min = option_share(given);
	dot->edge_min = dot->node_min * EDGE_OF_NODE_MIN;
}

static const struct verb_option options[] = {
	{"output", 'o', "FILE", "Write to FILE, not to standard output", 1, OPTION_TEXT,
	 .at = offsetof(struct calls, path)},
	{"min", 'm', "PERCENT",
	 "Leave out smaller boxes, and arrows below a fifth of that.  Default: 0.5", 1, OPTION_CALL,
	 .at = offsetof(struct calls, dot), .parse = parse_min},
	{"exact", 0, NULL,
	 "Count every call of the processes of --pid from now on, as cProfile does: for CPython "
	 "3.6 to 3.11 with function probes, as Debian's have them.  It slows them down",
	 2, OPTION_FLAG, .at = offsetof(struct calls, shared.select.records)},
	{"max-slowdown", 0, "PCT|Nx", SELECT_SLOWDOWN_HELP, 2, OPTION_TEXT,
	 .at = offsetof(struct calls, slowdown)},
	{.help = "The table of exact calls, which is their default:", .group = 2},
	{"sort", 's', "COLUMN", "Sort by self (tottime; default), total (cumtime), calls, name", 2,
	 OPTION_CALL, .parse = parse_of_table},
	{"top", 'n', "N", "Show N rows; 0: all.  Default: 30", 2, OPTION_CALL,
	 .parse = parse_of_table},
	{"callers", 'c', "REGEX", "Show who calls the functions that match", 2, OPTION_CALL,
	 .parse = parse_of_table},
	{"callees", 'C', "REGEX", "Show what the functions that match call", 2, OPTION_CALL,
	 .parse = parse_of_table},
	{}};

static void check(struct argp_state *argp, void *verb)
{
	const struct calls *calls = verb;

	if (calls->of_table && calls->shared.format >= FORMAT_DOT)
		argp_error(argp, "--%s is of the table, not of %s", calls->of_table,
			   formats[calls->shared.format]);
	if ((calls->callers || calls->callees) && calls->shared.format != TABLE_TEXT)
		argp_error(argp, "--callers and --callees are shown as text alone");
}

struct sorting {
	const struct call_graph *graph;
	enum calls_sort by;
};

static int64_t sorted_by(const struct call_function *function, enum calls_sort by)
{
	switch (by) {
	case CALLS_SORT_TOTAL:
		return function->sums.total;
	case CALLS_SORT_CALLS:
		return function->sums.self_samples;
	case CALLS_SORT_NAME:
		return 0;
	case CALLS_SORT_SELF:
	default:
		return function->sums.self;
	}
}

static int compare_functions(const void *a, const void *b, void *context)
{
	const struct sorting *sorting = context;
	const uint32_t index_a = *(const uint32_t *)a, index_b = *(const uint32_t *)b;
	const struct call_function *function = sorting->graph->function;
	const struct code_table *code = &sorting->graph->code;

	return ORDER(sorted_by(&function[index_b], sorting->by),
		     sorted_by(&function[index_a], sorting->by))
		       ?: strcmp(code_name(code, &code->code[index_a]),
				 code_name(code, &code->code[index_b]))
		       ?: ORDER(index_a, index_b);
}

/* "30/10": calls, and those from outside of the function, where they differ. */
static const char *calls_text(const struct call_function *function, char text[CALLS_BYTES])
{
	if (function->sums.self_samples == function->sums.outer_samples)
		snprintf(text, CALLS_BYTES, "%" PRId64, function->sums.self_samples);
	else
		snprintf(text, CALLS_BYTES, "%" PRId64 "/%" PRId64, function->sums.self_samples,
			 function->sums.outer_samples);
	return text;
}

/* A function that was entered before the start may have no call to divide by. */
static void put_each(struct table *table, int64_t value, int64_t calls, const char *unit)
{
	char text[FORMAT_BYTES];

	table_real(table, calls > 0 ? (double)value / (double)calls : NAN, 1,
		   calls > 0 ? format_value(value / calls, unit, text) : NULL);
}

static void put_row(const struct call_graph *graph, uint32_t index, const char *unit,
		    struct table *table)
{
	const struct call_function *function = &graph->function[index];
	char text[CALLS_BYTES];

	table_int(table, function->sums.self_samples, calls_text(function, text));
	table_int(table, function->sums.outer_samples, NULL);
	table_value(table, function->sums.self, unit);
	put_each(table, function->sums.self, function->sums.self_samples, unit);
	table_value(table, function->sums.total, unit);
	put_each(table, function->sums.total, function->sums.outer_samples, unit);
	text_code_cells(table, &graph->code, &graph->code.code[index], FIGURES_COLUMNS);
}

static void print_sums(const struct call_graph *graph, FILE *out)
{
	int64_t primitive = 0;

	for (uint32_t i = 0; i < graph->function_count; i++)
		primitive += graph->function[i].sums.outer_samples;
	fprintf(out, "%" PRId64 " calls", graph->total_samples);
	if (primitive != graph->total_samples)
		fprintf(out, " (%" PRId64 " primitive)", primitive);
	fprintf(out, "\n");
}

/* Writes a row a function. */
static int put_functions(const struct calls *calls, const struct call_graph *graph,
			 const char *unit, struct table *table)
{
	static const struct table_column columns[] = {
		{"ncalls", "NCALLS", 13},   {"primitive_calls", NULL, 0},
		{"tottime", "TOTTIME", 11}, {"tottime_percall", "PERCALL", 11},
		{"cumtime", "CUMTIME", 12}, {"cumtime_percall", "PERCALL", 11},
		TEXT_CODE_CELLS("FUNCTION")};
	struct sorting sorting = {.graph = graph, .by = calls->sort};
	OWNED_MEM uint32_t *order = calloc((size_t)graph->function_count + 1, sizeof(*order));
	uint32_t shown = graph->function_count;

	if (!order)
		return -ENOMEM;
	for (uint32_t i = 0; i < graph->function_count; i++)
		order[i] = i;
	qsort_r(order, graph->function_count, sizeof(*order), compare_functions, &sorting);
	if (calls->rows && shown > calls->rows && table_is_for_people(table))
		shown = (uint32_t)calls->rows;
	if (table_is_for_people(table))
		print_sums(graph, table->out);
	table_begin(table, "rows", columns, ARRAY_SIZE(columns));
	for (uint32_t i = 0; i < shown; i++)
		put_row(graph, order[i], unit, table);
	table_end(table);
	table_more_rows(table, graph->function_count - shown);
	return 0;
}

/* The file's name is nobody's: it is gone when we end. */
static void print_exact_head(const struct call_graph *graph, const struct input *input,
			     const char *unit, FILE *out)
{
	char all[FORMAT_BYTES], recorded[FORMAT_BYTES];

	fprintf(out, "self in Python: %s, %s recorded\n", format_value(graph->total, unit, all),
		format_value((int64_t)input_totals(input).duration_ns, "nanoseconds", recorded));
}

static int write_table(struct calls *calls, struct call_graph *graph, const struct input *input,
		       const char *unit, FILE *out)
{
	struct table table;
	int err;

	table_open(&table, out, (enum table_format)calls->shared.format, text_wants_color());
	graph->code.short_paths = input_short_paths(input);
	if (calls->shared.select.records && table_is_for_people(&table))
		print_exact_head(graph, input, unit, out);
	else
		text_table_head(&table, input);
	if (calls->callers || calls->callees)
		err = callers_print(input, calls->callers, calls->callees, table.color, out);
	else
		err = put_functions(calls, graph, unit, &table);
	return table_close(&table, err);
}

static int write_format(struct calls *calls, struct call_graph *graph, const struct input *input,
			FILE *out)
{
	const char *unit = input_value_type(input)->unit;
	double unit_seconds = format_unit_ns(unit) / 1e9;

	switch (calls->shared.format) {
	case FORMAT_DOT:
		calls->dot.title = input_title(input);
		calls->dot.unit = unit;
		return call_graph_write_dot(graph, &calls->dot, out);
	case FORMAT_PSTATS:
		/* Bytes and counts are not converted. */
		return call_graph_write_pstats(graph, unit_seconds > 0 ? unit_seconds : 1,
					       call_graph_calls_index(graph->profile) >= 0, out);
	default:
		return write_table(calls, graph, input, unit, out);
	}
}

static int write_all(struct calls *calls, const struct input *input)
{
	struct profile *profile = input_profile(input);
	unsigned int value_index = profile_reader_value_index(input_reader(input));
	const int calls_index = call_graph_calls_index(profile);
	OWNED(call_graph) struct call_graph *graph = NULL;
	FILE *out;
	int err, status;

	if (!calls->shared.has_format && !calls->of_table && calls_index < 0)
		calls->shared.format = FORMAT_DOT;
	if (calls->shared.format < FORMAT_DOT && calls_index < 0)
		return complain("%s has no exact calls, of which the table is: record them with "
				"--events calls, or see pyprof report",
				input_title(input));
	err = call_graph_new(profile, value_index,
			     calls_index >= 0 ? calls_index
					      : profile_reader_count_index(input_reader(input)),
			     &calls->shared.select.group_by, &graph);
	if (err)
		return complain_of(input_title(input), err);
	status = output_file_open(calls->path, &out);
	return status ? status
		      : output_file_close(calls->path, out, write_format(calls, graph, input, out));
}

static int run(struct calls *calls)
{
	struct input_options input_options = {.select = &calls->shared.select,
					      .keep_labels = input_no_labels,
					      .drop_addresses = true,
					      .drop_lines = true};
	OWNED(input) struct input *input = NULL;
	int err = read_input(input_options, &input);

	return err ? err : write_all(calls, input);
}

/* Has the calls counted, and shows that profile. */
static int run_exact(struct calls *calls)
{
	CLEANUP(exact_release) struct exact exact = {};
	int err = exact_record(&calls->shared.select, NULL, calls->slowdown, &exact);

	return err ? err : run(calls);
}

int verb_calls(int argc, char **argv)
{
	static const struct verb_args args = {options, SELECT_ARGUMENTS, .doc = doc,
					      .check = check};
	struct calls calls = {.dot = {.node_min = DEFAULT_NODE_MIN,
				      .edge_min = DEFAULT_NODE_MIN * EDGE_OF_NODE_MIN},
			      .path = "-",
			      .rows = DEFAULT_ROWS,
			      .shared.formats = formats};
	int status = select_parse(&args, argc, argv, &calls.shared);

	if (!status)
		status = calls.shared.select.records ? run_exact(&calls) : run(&calls);
	select_free_regex(calls.callers);
	select_free_regex(calls.callees);
	select_release(&calls.shared.select);
	return status;
}

/* ---- callers and callees ---- */

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

static int compare_totals(const void *a, const void *b, void *context)
{
	const struct call_function *function = context;
	uint32_t code_a = *(const uint32_t *)a, code_b = *(const uint32_t *)b;

	return ORDER(function[code_b].sums.total, function[code_a].sums.total)
		       ?: ORDER(code_a, code_b);
}

static int compare_edges(const void *a, const void *b)
{
	const struct call_edge *edge_a = *(struct call_edge *const *)a;
	const struct call_edge *edge_b = *(struct call_edge *const *)b;

	return ORDER(edge_b->sums.total, edge_a->sums.total) ?: ORDER(edge_a, edge_b);
}

static int64_t whole_of(const struct call_graph *graph)
{
	return profile_signed_whole(graph->profile) ?: graph->total;
}

/* calls: shown where they are exact. */
static void print_line(const struct listing *listing, const char *indent, uint32_t code_index,
		       int64_t value, int64_t of, int64_t calls)
{
	const struct code_table *table = &listing->graph->code;
	const struct code *code = &table->code[code_index];
	char text[FORMAT_BYTES];

	fprintf(listing->out, "%s%6.1f %% %7.1f %% %10s  ", indent, share_of(value, of) * 100,
		share_of(value, whole_of(listing->graph)) * 100,
		format_value(value, listing->unit, text));
	if (listing->are_calls)
		fprintf(listing->out, "%10" PRId64 "  ", calls);
	text_code(listing->out, table, code,
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
			   of_callers ? edge[i]->caller : edge[i]->callee, edge[i]->sums.total,
			   function->sums.total, edge[i]->sums.self_samples);
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
	qsort_r(found, count, sizeof(*found), compare_totals, graph->function);
	fprintf(listing->out, "%s%s: share of the function, share of all, time%s%s\n",
		text_color(listing->color, TEXT_BLUE), of_callers ? "Callers" : "Callees",
		listing->are_calls ? ", calls" : "", text_color(listing->color, TEXT_PLAIN));
	for (uint32_t i = 0; !err && i < count; i++) {
		const struct call_function *function = &graph->function[found[i]];

		print_line(listing, "     ", found[i], function->sums.total, function->sums.total,
			   function->sums.self_samples);
		if (!of_callers && function->sums.self) {
			char text[FORMAT_BYTES];

			fprintf(listing->out, "  -> %6.1f %% %7.1f %% %10s  %s(itself)\n",
				share_of(function->sums.self, function->sums.total) * 100,
				share_of(function->sums.self, whole_of(graph)) * 100,
				format_value(function->sums.self, listing->unit, text),
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
