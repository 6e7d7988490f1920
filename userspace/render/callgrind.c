/* SPDX-License-Identifier: BSD-2-Clause */
/* Source: Valgrind's manual, "Callgrind Format Specification".  Sampled: a call's cost is inclusive,
 * its count the number of samples. */
#include <errno.h>
#include <inttypes.h>

#include "render/call_exports.h"

struct callgrind {
	const struct call_graph *graph;
	FILE *out;
};

/* "fn=(3) name": a number and, so that readers need no table, the name each time. */
static void put_function(const struct callgrind *to, uint32_t index, bool is_callee)
{
	const struct code_table *table = &to->graph->code;
	const struct code *code = &table->code[index];
	const char *module = code->module ? code_text(table, code->module)
					  : frame_class_name((enum frame_class)code->class);

	fprintf(to->out, "%s=%s\n", is_callee ? "cob" : "ob", module);
	fprintf(to->out, "%s=%s\n", is_callee ? "cfi" : "fl",
		code->file ? code_text(table, code->file) : "???");
	fprintf(to->out, "%s=(%" PRIu32 ") %s\n", is_callee ? "cfn" : "fn", index + 1,
		code->name ? code_text(table, code->name) : "[unknown]");
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
	struct callgrind to = {.graph = graph, .out = out};

	fprintf(out,
		"# callgrind format\nversion: 1\ncreator: pyprof\npositions: line\nevents: %s\n"
		"summary: %" PRId64 "\n",
		event, graph->total);
	for (uint32_t i = 0; i < graph->function_count; i++)
		put_entry(&to, i);
	return ferror(out) ? -EIO : 0;
}
