/* SPDX-License-Identifier: BSD-2-Clause */
/* Source: Valgrind's manual, "Callgrind Format Specification".  A call's cost is inclusive, and its
 * count is the number of samples. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "export/call_exports.h"

struct callgrind {
	const struct call_graph *graph;
	FILE *out;
	bool *named; /* by function */
};

/* Writes "fn=(3) name", and later "fn=(3)": speedscope refuses a file that names a number twice. */
static void put_function(const struct callgrind *to, uint32_t index, bool is_callee)
{
	const struct code_table *table = &to->graph->code;
	const struct code *code = &table->code[index];
	const char *module = code->module ? code_text(table, code->module)
					  : frame_class_name((enum frame_class)code->class);

	fprintf(to->out, "%s=%s\n", is_callee ? "cob" : "ob", module);
	fprintf(to->out, "%s=%s\n", is_callee ? "cfi" : "fl",
		code->file ? code_text(table, code->file) : "???");
	fprintf(to->out, "%s=(%" PRIu32 ")", is_callee ? "cfn" : "fn", index + 1);
	if (!to->named[index])
		fprintf(to->out, " %s", code->name ? code_text(table, code->name) : "[unknown]");
	putc('\n', to->out);
	to->named[index] = true;
}

static void put_entry(const struct callgrind *to, uint32_t index)
{
	const struct call_graph *graph = to->graph;
	const struct call_function *function = &graph->function[index];
	uint32_t line = graph->code.code[index].start_line;

	putc('\n', to->out);
	put_function(to, index, false);
	fprintf(to->out, "%" PRIu32 " %" PRId64 "\n", line, function->self);
	for (uint32_t at = function->first_callee; at; at = graph->edge[at - 1].next_callee) {
		const struct call_edge *edge = &graph->edge[at - 1];

		put_function(to, edge->callee, true);
		fprintf(to->out, "calls=%" PRId64 " %" PRIu32 "\n",
			edge->total_samples ? edge->total_samples : 1,
			graph->code.code[edge->callee].start_line);
		fprintf(to->out, "%" PRIu32 " %" PRId64 "\n", line, edge->total);
	}
}

int call_graph_write_callgrind(const struct call_graph *graph, const char *event, FILE *out)
{
	OWNED_MEM bool *named = calloc(graph->function_count + 1U, sizeof(*named));
	struct callgrind to = {.graph = graph, .out = out, .named = named};

	if (!named)
		return -ENOMEM;
	fprintf(out,
		"# callgrind format\nversion: 1\ncreator: pyprof\npositions: line\nevents: %s\n"
		"summary: %" PRId64 "\n",
		event, graph->total);
	for (uint32_t i = 0; i < graph->function_count; i++)
		put_entry(&to, i);
	return ferror(out) ? -EIO : 0;
}
