/* SPDX-License-Identifier: BSD-2-Clause */
/* The call graph for other programs: Graphviz, what reads cProfile's files, KCachegrind. */
#ifndef EXPORT_CALL_EXPORTS_H
#define EXPORT_CALL_EXPORTS_H

#include <stdbool.h>
#include <stdio.h>

#include "render/call_graph.h"

struct dot_options {
	double node_min, edge_min; /* shares of all, below which they are left out */
	bool color_by_total;	   /* else by self */
	const char *title, *unit;
};

/* Graphviz: boxes with name, place, total %, (self %); edges with the share of all that goes through
 * them.  0, -ENOMEM or -EIO. */
int call_graph_write_dot(const struct call_graph *graph, const struct dot_options *options,
			 FILE *out);

/* What marshal.load() of every Python 3 reads: {(file, line, name): (cc, nc, tt, ct, callers)}, in
 * seconds; cc and nc are numbers of samples, and an entry without time says so.
 * unit_seconds: of the profile's values.  0 or -EIO. */
int call_graph_write_pstats(const struct call_graph *graph, double unit_seconds, FILE *out);

/* Callgrind format 1.  event: the values' name, without blanks.  0 or -EIO. */
int call_graph_write_callgrind(const struct call_graph *graph, const char *event, FILE *out);

#endif
