/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "export/call_exports.h"
#include "render/format.h"

#define MAX_NAME_CHARS 60

struct dot {
	const struct call_graph *graph;
	const struct dot_options *options;
	FILE *out;
};

/* Writes a label in double quotes, in which a backslash begins Graphviz's own escapes. */
static void put_text(FILE *out, const char *text, int max_chars)
{
	int count = 0;

	for (; *text; text++) {
		/* Do not cut inside a UTF-8 sequence. */
		if (((unsigned char)*text & 0xc0) != 0x80 && ++count > max_chars) {
			fputs("...", out);
			return;
		}
		if (*text == '"' || *text == '\\')
			putc('\\', out);
		putc(*text, out);
	}
}

static double share_of(const struct dot *dot, int64_t value)
{
	return dot->graph->total ? (double)value / (double)dot->graph->total : 0;
}

/* Writes a colour from cold blue to hot red, the more saturated the larger the share; white text is
 * readable on all of them (contrast 4.5 and above). */
static void put_color(FILE *out, double share)
{
	double heat = share <= 0 ? 0 : share >= 1 ? 1 : sqrt(share);
	double hue = (1 - heat) * 0.62;

	fprintf(out, "\"%.3f 0.85 %.2f\"", hue, 0.45 + 0.2 * heat);
}

static bool is_shown(const struct dot *dot, uint32_t code)
{
	return share_of(dot, dot->graph->function[code].total) >= dot->options->node_min &&
	       dot->graph->function[code].total > 0;
}

static void put_node(const struct dot *dot, uint32_t index)
{
	const struct call_function *function = &dot->graph->function[index];
	const struct code_table *table = &dot->graph->code;
	const struct code *code = &table->code[index];
	double total = share_of(dot, function->total), self = share_of(dot, function->self);
	char time[FORMAT_BYTES];

	fprintf(dot->out, "\tn%" PRIu32 " [label=\"", index);
	put_text(dot->out, code->name ? code_text(table, code->name) : "[unknown]", MAX_NAME_CHARS);
	fputs("\\n", dot->out);
	put_text(dot->out, path_base(code_place(table, code)), MAX_NAME_CHARS);
	if (code->file && code->start_line)
		fprintf(dot->out, ":%" PRIu32, code->start_line);
	fprintf(dot->out, "\\n%.2f%%\\n(%.2f%%)\\n%s\", tooltip=\"", total * 100, self * 100,
		format_value(function->total, dot->options->unit, time));
	put_text(dot->out, code_place(table, code), 1000);
	fputs("\", fillcolor=", dot->out);
	put_color(dot->out, self);
	fputs("];\n", dot->out);
}

static void put_edge(const struct dot *dot, const struct call_edge *edge)
{
	double share = share_of(dot, edge->total);

	fprintf(dot->out, "\tn%" PRIu32 " -> n%" PRIu32 " [label=\"%.2f%%\", penwidth=%.2f, color=",
		edge->caller, edge->callee, share * 100, 0.5 + 4 * sqrt(share > 0 ? share : 0));
	put_color(dot->out, share);
	fputs(", fontcolor=", dot->out);
	put_color(dot->out, share);
	fputs("];\n", dot->out);
}

int call_graph_write_dot(const struct call_graph *graph, const struct dot_options *options,
			 FILE *out)
{
	struct dot dot = {.graph = graph, .options = options, .out = out};

	fputs("digraph calls {\n\tgraph [fontname=\"sans-serif\", ranksep=0.3, nodesep=0.15, "
	      "label=\"",
	      out);
	put_text(out, options->title, 500);
	fputs("\"];\n\tnode [shape=box, style=filled, fontname=\"sans-serif\", fontsize=10, "
	      "fontcolor=white, color=transparent, height=0];\n"
	      "\tedge [fontname=\"sans-serif\", fontsize=9];\n",
	      out);
	for (uint32_t i = 0; i < graph->function_count; i++)
		if (is_shown(&dot, i))
			put_node(&dot, i);
	for (uint32_t i = 0; i < graph->edge_count; i++) {
		const struct call_edge *edge = &graph->edge[i];

		if (is_shown(&dot, edge->caller) && is_shown(&dot, edge->callee) &&
		    share_of(&dot, edge->total) >= options->edge_min)
			put_edge(&dot, edge);
	}
	fputs("}\n", out);
	return ferror(out) ? -EIO : 0;
}
