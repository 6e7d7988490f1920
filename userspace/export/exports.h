/* SPDX-License-Identifier: BSD-2-Clause */
/* Writes a profile in the formats of other tools.  All that return anything return 0, -ENOMEM or
 * -EIO. */
#ifndef EXPORT_EXPORTS_H
#define EXPORT_EXPORTS_H

#include <stdbool.h>
#include <stdio.h>

#include "profile/profile_data.h"
#include "render/call_graph.h"
#include "render/flame_tree.h"

struct export_facts {
	const char *title;
	unsigned int value_index;
	int count_index; /* -1: no value counts samples */
	uint64_t windows, start_wall_ns, duration_ns;
};

/* speedscope's file format: one profile per group of the tree (thread), of type "sampled". */
int export_speedscope(const struct flame_tree *tree, const struct export_facts *facts, FILE *out);
/* Chrome's trace events: the tree of each group as nested slices.  Widths are sums, not times,
 * because a profile of counts has no order in time. */
int export_chrome(const struct flame_tree *tree, const struct export_facts *facts, FILE *out);
/* A Perfetto trace of PerfSample packets, spread evenly over the recorded time. */
int export_perfetto(struct profile *profile, const struct export_facts *facts, FILE *out);
/* The resources of OTLP: one a service. */
struct export_services {
	/* The key of the label that has a row's service, which is no attribute of the sample then.
	 * Rows of one service stand together, else it gets a resource for each group of them. */
	const char *service_key;
	const char *host; /* host.name of all */
};
/* OTLP: opentelemetry.proto.collector.profiles.v1development.ExportProfilesServiceRequest.
 * services: NULL for one resource, ours. */
int export_otlp(struct profile *profile, const struct export_facts *facts,
		const struct export_services *services, FILE *out);

struct dot_options {
	/* shares of the total, below which nodes and edges are left out */
	double node_min, edge_min;
	const char *title, *unit;
};

/* Writes Graphviz: boxes with name, file and line, total %, (self %); edges with the share of the
 * total that passes through them. */
int call_graph_write_dot(const struct call_graph *graph, const struct dot_options *options,
			 FILE *out);

/* Writes what marshal.load() of every Python 3 reads: {(file, line, name): (cc, nc, tt, ct,
 * callers)}, in seconds.  are_calls: what the graph counts are exact calls; else cc and nc are
 * numbers of samples, and an entry without time says so.  A function that was called before the
 * start has one call, as readers divide by it.  unit_seconds: one unit of the profile's values. */
int call_graph_write_pstats(const struct call_graph *graph, double unit_seconds, bool are_calls,
			    FILE *out);

/* Writes Callgrind format 1.  event: the values' name, without blanks. */
int call_graph_write_callgrind(const struct call_graph *graph, const char *event, FILE *out);

#endif
