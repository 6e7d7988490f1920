/* SPDX-License-Identifier: BSD-2-Clause */
/* pyprof calls: the call graph, for Graphviz and for readers of cProfile's files. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "export/call_exports.h"
#include "reader/complain.h"
#include "reader/output_file.h"
#include "reader/read_input.h"
#include "reader/select_options.h"
#include "reader/text.h"
#include "reader/verb.h"
#include "render/format.h"

#define DEFAULT_NODE_MIN 0.005
#define DEFAULT_EDGE_MIN 0.001

struct calls {
	struct select_options shared;
	struct dot_options dot;
	const char *pstats; /* a path, "-" */
	bool wants_dot;
};

enum { OPTION_DOT = 1, OPTION_PSTATS, OPTION_NODE_MIN, OPTION_EDGE_MIN, OPTION_COLOR };

static const struct argp_option options[] = {
	{"dot", OPTION_DOT, NULL, 0, "Write Graphviz to standard output (default)", 1},
	{"pstats", OPTION_PSTATS, "FILE", 0,
	 "A file for python -m pstats, snakeviz, gprof2dot; - is standard output.  Numbers of "
	 "calls "
	 "in it are numbers of samples",
	 1},
	{"node-min", OPTION_NODE_MIN, "PERCENT", 0, "Leave out smaller boxes.  Default: 0.5", 1},
	{"edge-min", OPTION_EDGE_MIN, "PERCENT", 0, "Leave out thinner arrows.  Default: 0.1", 1},
	{"color-by", OPTION_COLOR, "self|total", 0,
	 "What the colours of boxes show.  Default: self", 1},
	{0},
};

static const char doc[] =
	"Shows who calls whom: a box is a function, with the share of all time "
	"that it took with what it calls, and (by itself)."
	"\vExamples:\n"
	"  pyprof calls --dot cpu.pb.gz | dot -Tsvg > calls.svg\n"
	"  pyprof calls --python --focus train cpu.pb.gz | dot -Tpng > calls.png\n"
	"  pyprof calls --pstats out.prof cpu.pb.gz && snakeviz out.prof\n"
	"  sudo pyprof calls --live --pid 1234 | dot -Tsvg > calls.svg\n";

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
	return output_file_close(calls->pstats, out,
				 call_graph_write_pstats(graph, unit_seconds > 0 ? unit_seconds : 1,
							 out));
}

static int write_all(struct calls *calls, const struct input *input)
{
	struct profile *profile = input_profile(input);
	unsigned int value_index = profile_reader_value_index(input_reader(input));
	const char *unit = profile->options.value_type[value_index].unit;
	OWNED(call_graph) struct call_graph *graph = NULL;
	int err = call_graph_new(profile, value_index,
				 profile_reader_count_index(input_reader(input)),
				 &calls->shared.select.group_by, &graph);

	if (!err && calls->pstats) {
		int status = write_pstats(calls, graph, unit);

		if (status)
			return status;
	}
	calls->dot.title = input_title(input);
	calls->dot.unit = unit;
	if (!err && (calls->wants_dot || !calls->pstats))
		err = call_graph_write_dot(graph, &calls->dot, stdout);
	if (!err && fflush(stdout))
		err = -errno;
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

int verb_calls(int argc, char **argv)
{
	struct calls calls = {.dot = {.node_min = DEFAULT_NODE_MIN, .edge_min = DEFAULT_EDGE_MIN}};
	int status = READER_BAD_INPUT;

	if (!select_parse(options, parse, doc, "PROFILE|DIR...\n--live", argc, argv, &calls))
		status = run(&calls);
	select_release(&calls.shared.select);
	return status;
}
