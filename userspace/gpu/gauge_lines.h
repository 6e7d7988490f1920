/* SPDX-License-Identifier: BSD-2-Clause */
/* Tells the gauges of GPUs (gpu/gauges.h) in the comments of profiles, and to clients that watch:
 * a line a GPU, and a bounded number of lines of processes. */
#ifndef GPU_GAUGE_LINES_H
#define GPU_GAUGE_LINES_H

#include <stdbool.h>

#include <pyprofd/kinds.h>

struct gauge_sums;
struct process_table;
struct profiles;
struct top;

/* Whose processes' lines may be told; all is borrowed. */
struct gauge_lines_sources {
	const struct process_table *processes;
	bool is_filtered; /* those with PP_CONTEXT_MATCHES alone have lines of their own */
};
/* Writes the lines into the comments of the open profiles.  Processes beyond
 * GAUGE_PROCESS_LINES_MAX, and those that are not profiled, are summed up; the largest of each user
 * come first, users in turn.  sums NULL: there are none.  Returns 0 or -ENOMEM. */
int gauge_lines_describe(const struct gauge_sums *sums, const struct gauge_lines_sources *sources,
			 struct profiles *profiles);
/* Sends them to the clients of `top`: to each the processes that it may see. */
void gauge_lines_send(const struct gauge_sums *sums, const struct gauge_lines_sources *sources,
		      struct top *top);

#endif
