/* SPDX-License-Identifier: BSD-2-Clause */
/* Writes the call graph for other programs: Graphviz, readers of cProfile's files, KCachegrind. */
#ifndef EXPORT_CALL_EXPORTS_H
#define EXPORT_CALL_EXPORTS_H

#include <stdbool.h>
#include <stdio.h>

#include "render/call_graph.h"

struct dot_options {
	/* shares of the total, below which nodes and edges are left out */
	double node_min, edge_min;
	const char *title, *unit;
};

/* Writes Graphviz: boxes with name, file and line, total %, (self %); edges with the share of the
 * total that passes through them.  Returns 0, -ENOMEM or -EIO. */
int call_graph_write_dot(const struct call_graph *graph, const struct dot_options *options,
			 FILE *out);

/* Writes what marshal.load() of every Python 3 reads: {(file, line, name): (cc, nc, tt, ct,
 * callers)}, in seconds.  are_calls: what the graph counts are exact calls; else cc and nc are
 * numbers of samples, and an entry without time says so.  A function that was called before the
 * start has one call, as readers divide by it.  unit_seconds: one unit of the profile's values.
 * Returns 0 or -EIO. */
int call_graph_write_pstats(const struct call_graph *graph, double unit_seconds, bool are_calls,
			    FILE *out);

/* Writes Callgrind format 1.  event: the values' name, without blanks.  Returns 0 or -EIO. */
int call_graph_write_callgrind(const struct call_graph *graph, const char *event, FILE *out);

#endif
