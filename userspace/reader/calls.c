/* SPDX-License-Identifier: BSD-2-Clause */
/* pyprof calls: the call graph, for Graphviz and for readers of cProfile's files; of exact calls
 * also cProfile's table. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "export/call_exports.h"
#include "reader/callers.h"
#include "reader/calls_table.h"
#include "reader/complain.h"
#include "reader/exact.h"
#include "reader/output_file.h"
#include "reader/read_input.h"
#include "reader/select_options.h"
#include "reader/text.h"
#include "reader/verb.h"
#include "render/format.h"

#define DEFAULT_NODE_MIN 0.005
#define DEFAULT_EDGE_MIN 0.001
#define DEFAULT_ROWS 30U

struct calls {
	struct select_options shared;
	struct dot_options dot;
	const char *pstats;   /* a path, "-" */
	const char *slowdown; /* --max-slowdown; NULL: not given */
	bool wants_dot;
	struct calls_table_options table;
	const char *of_table;	    /* an option of the table, when one was given */
	regex_t *callers, *callees; /* owned; NULL: not given */
};

enum {
	OPTION_DOT = 1,
	OPTION_PSTATS,
	OPTION_NODE_MIN,
	OPTION_EDGE_MIN,
	OPTION_COLOR,
	OPTION_EXACT,
	OPTION_SLOWDOWN
};

static const struct argp_option options[] = {
	{"dot", OPTION_DOT, NULL, 0,
	 "Write Graphviz to standard output (default, except of exact calls)", 1},
	{"pstats", OPTION_PSTATS, "FILE", 0,
	 "A file for python -m pstats, snakeviz, gprof2dot; - is standard output.  Numbers of "
	 "calls "
	 "in it are numbers of samples, except of exact calls",
	 1},
	{"node-min", OPTION_NODE_MIN, "PERCENT", 0, "Leave out smaller boxes.  Default: 0.5", 1},
	{"edge-min", OPTION_EDGE_MIN, "PERCENT", 0, "Leave out thinner arrows.  Default: 0.1", 1},
	{"color-by", OPTION_COLOR, "self|total", 0,
	 "What the colours of boxes show.  Default: self", 1},
	{"exact", OPTION_EXACT, NULL, 0,
	 "Count every call of the processes of --pid from now on, as cProfile does: for CPython "
	 "3.6 to 3.11 with function probes, as Debian's have them.  It slows them down",
	 2},
	{"max-slowdown", OPTION_SLOWDOWN, "PCT|Nx", 0,
	 "With --exact: end early when a program would take longer than this, 5x or 400%. "
	 "Default: 5x",
	 2},
	{NULL, 0, NULL, 0, "The table of exact calls (the default where there are some):", 2},
	{"sort", 's', "COLUMN", 0, "Sort by self (tottime; default), total (cumtime), calls, name",
	 2},
	{"top", 'n', "N", 0, "Show N rows; 0: all.  Default: 30", 2},
	{"callers", 'c', "REGEX", 0, "Show who calls the functions that match", 2},
	{"callees", 'C', "REGEX", 0, "Show what the functions that match call", 2},
	{0},
};

static const char doc[] =
	"Shows who calls whom: a box is a function, with the share of all time "
	"that it took with what it calls, and (by itself)."
	"\vExamples:\n"
	"  pyprof calls --dot cpu.pb.gz | dot -Tsvg > calls.svg\n"
	"  pyprof calls --python --focus train cpu.pb.gz | dot -Tpng > calls.png\n"
	"  pyprof calls --pstats out.prof cpu.pb.gz && snakeviz out.prof\n"
	"  sudo pyprof calls --exact --pid 1234 --for 10 --pstats out.prof\n"
	"  pyprof calls --sort total calls.pb.gz\n"
	"  sudo pyprof calls --live --pid 1234 | dot -Tsvg > calls.svg\n";

static void parse_of_table(struct calls *calls, int key, char *text, struct argp_state *state)
{
	regex_t **regex = key == 'c' ? &calls->callers : &calls->callees;

	switch (key) {
	case 's':
		calls->of_table = "sort";
		if (!calls_table_parse_sort(text, &calls->table.sort))
			argp_error(state, "--sort=%s: not self, total, calls or name", text);
		return;
	case 'n':
		calls->of_table = "top";
		calls->table.rows = select_number(state, "top", text);
		return;
	default:
		calls->of_table = key == 'c' ? "callers" : "callees";
		if (!*regex && select_regex_option(text, calls->of_table, regex))
			exit(READER_BAD_INPUT);
	}
}

static error_t parse(int key, char *text, struct argp_state *state)
{
	struct calls *calls = state->input;

	switch (key) {
	case ARGP_KEY_INIT:
		state->child_inputs[0] = &calls->shared;
		return 0;
	case OPTION_DOT:
		calls->wants_dot = true;
		return 0;
	case OPTION_PSTATS:
		calls->pstats = text;
		return 0;
	case OPTION_NODE_MIN:
		calls->dot.node_min = select_share(state, "node-min", text);
		return 0;
	case OPTION_EDGE_MIN:
		calls->dot.edge_min = select_share(state, "edge-min", text);
		return 0;
	case OPTION_EXACT:
		calls->shared.select.records = true;
		return 0;
	case OPTION_SLOWDOWN:
		calls->slowdown = text;
		return 0;
	case 's':
	case 'n':
	case 'c':
	case 'C':
		parse_of_table(calls, key, text, state);
		return 0;
	case OPTION_COLOR:
		if (strcmp(text, "self") && strcmp(text, "total"))
			argp_error(state, "--color-by=%s: not self or total", text);
		calls->dot.color_by_total = !strcmp(text, "total");
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static int write_pstats(const struct calls *calls, const struct call_graph *graph, const char *unit)
{
	double unit_seconds = format_unit_ns(unit) / 1e9;
	FILE *out;
	int status = output_file_open(calls->pstats, &out);

	if (status)
		return status;
	/* Bytes and counts are not converted. */
	return output_file_close(
		calls->pstats, out,
		call_graph_write_pstats(graph, unit_seconds > 0 ? unit_seconds : 1,
					call_graph_calls_index(graph->profile) >= 0, out));
}

/* The file's name is nobody's: it is gone when we end. */
static void print_exact_head(const struct call_graph *graph, const struct input *input,
			     const char *unit)
{
	struct profile_read_totals totals;
	char all[FORMAT_BYTES], recorded[FORMAT_BYTES];

	profile_reader_totals(input_reader(input), &totals);
	printf("self in Python: %s, %s recorded\n", format_value(graph->total, unit, all),
	       format_value((int64_t)totals.duration_ns, "nanoseconds", recorded));
}

static int print_table(struct calls *calls, struct call_graph *graph, const struct input *input,
		       const char *unit)
{
	calls->table.unit = unit;
	calls->table.color = text_wants_color(calls->shared.no_color);
	graph->code.short_paths = input_short_paths(input);
	if (calls->shared.select.records)
		print_exact_head(graph, input, unit);
	else
		text_head(stdout, input);
	if (calls->callers || calls->callees)
		return callers_print(input, calls->callers, calls->callees, calls->table.color);
	return calls_table_print(graph, &calls->table);
}

/* Writes to standard output what was asked for, or what is the default for the profile. */
static int write_view(struct calls *calls, struct call_graph *graph, const struct input *input,
		      const char *unit)
{
	const bool are_calls = call_graph_calls_index(graph->profile) >= 0;
	int err = 0;

	if (calls->wants_dot || (!calls->pstats && !are_calls))
		err = call_graph_write_dot(graph, &calls->dot, stdout);
	else if (!calls->pstats || calls->of_table)
		err = print_table(calls, graph, input, unit);
	if (!err && fflush(stdout))
		err = -errno;
	return err;
}

static int write_all(struct calls *calls, const struct input *input)
{
	struct profile *profile = input_profile(input);
	unsigned int value_index = profile_reader_value_index(input_reader(input));
	const char *unit = profile->options.value_type[value_index].unit;
	const int calls_index = call_graph_calls_index(profile);
	OWNED(call_graph) struct call_graph *graph = NULL;
	int err;

	if (calls->of_table && calls_index < 0) {
		fprintf(stderr,
			"pyprof: %s has no exact calls, of which --%s is: record them with "
			"--events calls, or see pyprof report\n",
			input_title(input), calls->of_table);
		return READER_BAD_INPUT;
	}
	err = call_graph_new(profile, value_index,
			     calls_index >= 0 ? calls_index
					      : profile_reader_count_index(input_reader(input)),
			     &calls->shared.select.group_by, &graph);

	if (!err && calls->pstats) {
		int status = write_pstats(calls, graph, unit);

		if (status)
			return status;
	}
	calls->dot.title = input_title(input);
	calls->dot.unit = unit;
	if (!err)
		err = write_view(calls, graph, input, unit);
	if (err)
		complain_of(calls->dot.title, err);
	return err ? READER_BAD_INPUT : READER_OK;
}

static int run(struct calls *calls)
{
	static const char *const none[] = {NULL};
	struct input_options input_options = {.select = &calls->shared.select,
					      .keep_labels = none,
					      .drop_addresses = true,
					      .drop_lines = true};
	OWNED(input) struct input *input = NULL;
	int err = read_input(input_options, calls->shared.no_progress, &input);

	return err ? err : write_all(calls, input);
}

/* Has the calls counted, and shows that profile. */
static int run_exact(struct calls *calls)
{
	CLEANUP(exact_release) struct exact exact = {};
	const struct exact_options wanted = {.select = &calls->shared.select,
					      .slowdown = calls->slowdown,
					      .no_progress = calls->shared.no_progress};
	int err = exact_record(&wanted, &exact);

	return err ? err : run(calls);
}

int verb_calls(int argc, char **argv)
{
	struct calls calls = {.dot = {.node_min = DEFAULT_NODE_MIN, .edge_min = DEFAULT_EDGE_MIN},
			      .table = {.rows = DEFAULT_ROWS}};
	int status = READER_BAD_INPUT;

	if (!select_parse(options, parse, doc, "PROFILE|DIR...\n--live", argc, argv, &calls))
		status = calls.shared.select.records ? run_exact(&calls) : run(&calls);
	select_free_regex(calls.callers);
	select_free_regex(calls.callees);
	select_release(&calls.shared.select);
	return status;
}
