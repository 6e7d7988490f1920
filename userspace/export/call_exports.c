/* SPDX-License-Identifier: BSD-2-Clause */
#include "export/exports.h"

#include <endian.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "render/format.h"

/* ---- Graphviz ---- */

#define MAX_NAME_CHARS 60U

struct dot {
	const struct call_graph *graph;
	const struct dot_options *options;
	FILE *out;
};

/* Writes a label in double quotes, in which a backslash begins Graphviz's own escapes. */
static void put_text_dot(FILE *out, const char *text, size_t max_chars)
{
	const char *end = text_skip_columns(text, max_chars);

	for (; text < end; text++) {
		if (*text == '"' || *text == '\\')
			putc('\\', out);
		putc(*text, out);
	}
	fputs(*end ? "..." : "", out);
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
	return share_of(dot, dot->graph->function[code].sums.total) >= dot->options->node_min &&
	       dot->graph->function[code].sums.total > 0;
}

static void put_node(const struct dot *dot, uint32_t index)
{
	const struct call_function *function = &dot->graph->function[index];
	const struct code_table *table = &dot->graph->code;
	const struct code *code = &table->code[index];
	double total = share_of(dot, function->sums.total),
	       self = share_of(dot, function->sums.self);
	char time[FORMAT_BYTES];

	fprintf(dot->out, "\tn%" PRIu32 " [label=\"", index);
	put_text_dot(dot->out, code_name(table, code), MAX_NAME_CHARS);
	fputs("\\n", dot->out);
	put_text_dot(dot->out, path_base(code_place(table, code)), MAX_NAME_CHARS);
	if (code->file && code->start_line)
		fprintf(dot->out, ":%" PRIu32, code->start_line);
	fprintf(dot->out, "\\n%.2f%%\\n(%.2f%%)\\n%s\", tooltip=\"", total * 100, self * 100,
		format_value(function->sums.total, dot->options->unit, time));
	put_text_dot(dot->out, code_place(table, code), 1000);
	fputs("\", fillcolor=", dot->out);
	put_color(dot->out, self);
	fputs("];\n", dot->out);
}

static void put_edge(const struct dot *dot, const struct call_edge *edge)
{
	double share = share_of(dot, edge->sums.total);

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
	put_text_dot(out, options->title, 500);
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
		    share_of(&dot, edge->sums.total) >= options->edge_min)
			put_edge(&dot, edge);
	}
	fputs("}\n", out);
	return ferror(out) ? -EIO : 0;
}

/* ---- Callgrind ---- */

/* Source: Valgrind's manual, "Callgrind Format Specification".  A call's cost is inclusive, and its
 * count is the number of samples. */

struct callgrind {
	const struct call_graph *graph;
	FILE *out;
	bool *named; /* by function */
};

/* Writes "fn=(3) name", and later "fn=(3)": speedscope refuses a file that names a number twice. */
static void put_function_callgrind(const struct callgrind *to, uint32_t index, bool is_callee)
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
		fprintf(to->out, " %s", code_name(table, code));
	putc('\n', to->out);
	to->named[index] = true;
}

static void put_entry_callgrind(const struct callgrind *to, uint32_t index)
{
	const struct call_graph *graph = to->graph;
	const struct call_function *function = &graph->function[index];
	uint32_t line = graph->code.code[index].start_line;

	putc('\n', to->out);
	put_function_callgrind(to, index, false);
	fprintf(to->out, "%" PRIu32 " %" PRId64 "\n", line, function->sums.self);
	for (uint32_t at = function->first_callee; at; at = graph->edge[at - 1].next_callee) {
		const struct call_edge *edge = &graph->edge[at - 1];

		put_function_callgrind(to, edge->callee, true);
		fprintf(to->out, "calls=%" PRId64 " %" PRIu32 "\n",
			edge->sums.total_samples ? edge->sums.total_samples : 1,
			graph->code.code[edge->callee].start_line);
		fprintf(to->out, "%" PRIu32 " %" PRId64 "\n", line, edge->sums.total);
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
		put_entry_callgrind(&to, i);
	return ferror(out) ? -EIO : 0;
}

/* ---- cProfile's files ---- */

/* Python's marshal format: a type byte, then little-endian values.  We use types that every version
 * since 2.5 reads: '{' pairs '0', '(' count, 'i' 4 bytes, 'g' double, 'u' count and UTF-8.
 * Source: CPython, Python/marshal.c. */
#define MARKER "<sampled by pyprofd: calls are numbers of samples>"

struct pstats {
	const struct call_graph *graph;
	double unit_seconds;
	bool are_calls;
	FILE *out;
};

struct numbers {
	int64_t calls, primitive; /* or samples, both the same */
	int64_t self, total;
};

static void put_u32(FILE *out, uint32_t value)
{
	value = htole32(value);
	fwrite(&value, sizeof(value), 1, out);
}

static void put_int(FILE *out, int64_t value)
{
	putc('i', out);
	put_u32(out, value > INT32_MAX ? INT32_MAX : value < 0 ? 0 : (uint32_t)value);
}

static void put_double(FILE *out, double value)
{
	uint64_t bits;

	memcpy(&bits, &value, sizeof(bits));
	bits = htole64(bits);
	putc('g', out);
	fwrite(&bits, sizeof(bits), 1, out);
}

static void put_text(FILE *out, const char *text)
{
	size_t size = strlen(text);

	putc('u', out);
	put_u32(out, (uint32_t)size);
	fwrite(text, size, 1, out);
}

static void put_tuple(FILE *out, uint32_t count)
{
	putc('(', out);
	put_u32(out, count);
}

/* Writes (file, line, name).  cProfile puts code without a source in "~"; we put it in its
 * module. */
static void put_function(const struct pstats *pstats, uint32_t index)
{
	const struct code_table *table = &pstats->graph->code;
	const struct code *code = &table->code[index];
	const char *place = code_place(table, code);

	put_tuple(pstats->out, 3);
	put_text(pstats->out, place[0] ? place : "~");
	put_int(pstats->out, code->start_line);
	put_text(pstats->out, code_name(table, code));
}

/* Readers divide by the number of calls, so it must not be 0. */
static int64_t at_least_one(int64_t samples)
{
	return samples < 1 ? 1 : samples;
}

static void put_times(const struct pstats *pstats, const struct numbers *numbers)
{
	put_double(pstats->out, (double)numbers->self * pstats->unit_seconds);
	put_double(pstats->out, (double)numbers->total * pstats->unit_seconds);
}

/* A function has its primitive calls first, one of its callers all of them.
 * Source: CPython, Lib/cProfile.py, snapshot_stats(). */
static void put_function_numbers(const struct pstats *pstats, const struct numbers *numbers)
{
	put_int(pstats->out, at_least_one(numbers->primitive));
	put_int(pstats->out, at_least_one(numbers->calls));
	put_times(pstats, numbers);
}

static void put_caller_numbers(const struct pstats *pstats, const struct numbers *numbers)
{
	put_int(pstats->out, at_least_one(numbers->calls));
	put_int(pstats->out, at_least_one(numbers->primitive));
	put_times(pstats, numbers);
}

static struct numbers numbers_of(const struct pstats *pstats, const struct call_sums *sums)
{
	return (struct numbers){
		.calls = pstats->are_calls ? sums->self_samples : sums->total_samples,
		.primitive = pstats->are_calls ? sums->outer_samples : sums->total_samples,
		.self = sums->self,
		.total = sums->total};
}

static void put_entry(const struct pstats *pstats, uint32_t index)
{
	const struct call_graph *graph = pstats->graph;
	const struct call_function *function = &graph->function[index];
	struct numbers numbers = numbers_of(pstats, &function->sums);

	put_function(pstats, index);
	put_tuple(pstats->out, 5);
	put_function_numbers(pstats, &numbers);
	putc('{', pstats->out);
	for (uint32_t at = function->first_caller; at; at = graph->edge[at - 1].next_caller) {
		const struct call_edge *edge = &graph->edge[at - 1];

		put_function(pstats, edge->caller);
		put_tuple(pstats->out, 4);
		numbers = numbers_of(pstats, &edge->sums);
		put_caller_numbers(pstats, &numbers);
	}
	putc('0', pstats->out);
}

static void put_marker(const struct pstats *pstats)
{
	const struct numbers none = {0};

	put_tuple(pstats->out, 3);
	put_text(pstats->out, "~");
	put_int(pstats->out, 0);
	put_text(pstats->out, MARKER);
	put_tuple(pstats->out, 5);
	put_function_numbers(pstats, &none);
	putc('{', pstats->out);
	putc('0', pstats->out);
}

int call_graph_write_pstats(const struct call_graph *graph, double unit_seconds, bool are_calls,
			    FILE *out)
{
	struct pstats pstats = {
		.graph = graph, .unit_seconds = unit_seconds, .are_calls = are_calls, .out = out};

	putc('{', out);
	if (!are_calls)
		put_marker(&pstats);
	for (uint32_t i = 0; i < graph->function_count; i++)
		put_entry(&pstats, i);
	putc('0', out);
	return ferror(out) ? -EIO : 0;
}
