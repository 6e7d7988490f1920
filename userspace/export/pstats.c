/* SPDX-License-Identifier: BSD-2-Clause */
/* Python's marshal format: a type byte, then little-endian values.  We use types that every version
 * since 2.5 reads: '{' pairs '0', '(' count, 'i' 4 bytes, 'g' double, 'u' count and UTF-8.
 * Source: CPython, Python/marshal.c. */
#include <endian.h>
#include <errno.h>
#include <string.h>

#include "export/call_exports.h"

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
	put_text(pstats->out, code->name ? code_text(table, code->name) : "[unknown]");
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

static struct numbers function_numbers(const struct pstats *pstats,
				       const struct call_function *function)
{
	struct numbers numbers = {.self = function->self, .total = function->total};

	numbers.calls = pstats->are_calls ? function->self_samples : function->total_samples;
	numbers.primitive = pstats->are_calls ? function->outer_samples : function->total_samples;
	return numbers;
}

static struct numbers edge_numbers(const struct pstats *pstats, const struct call_edge *edge)
{
	struct numbers numbers = {.self = edge->self, .total = edge->total};

	numbers.calls = pstats->are_calls ? edge->self_samples : edge->total_samples;
	numbers.primitive = pstats->are_calls ? edge->outer_samples : edge->total_samples;
	return numbers;
}

static void put_entry(const struct pstats *pstats, uint32_t index)
{
	const struct call_graph *graph = pstats->graph;
	const struct call_function *function = &graph->function[index];
	struct numbers numbers = function_numbers(pstats, function);

	put_function(pstats, index);
	put_tuple(pstats->out, 5);
	put_function_numbers(pstats, &numbers);
	putc('{', pstats->out);
	for (uint32_t at = function->first_caller; at; at = graph->edge[at - 1].next_caller) {
		const struct call_edge *edge = &graph->edge[at - 1];

		put_function(pstats, edge->caller);
		put_tuple(pstats->out, 4);
		numbers = edge_numbers(pstats, edge);
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
