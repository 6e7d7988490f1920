/* SPDX-License-Identifier: BSD-2-Clause */
/* Prints what sinks have done, in the text format of Prometheus. */
#ifndef PUSH_METRICS_H
#define PUSH_METRICS_H

#include <stdio.h>

#include "push/stats.h"

/* The metrics of sinks that are numbers of one sink: X(name, type, help, value of `stats`). */
#define PUSH_METRICS(X)                                                                            \
	X("pyprofd_push_bytes_total", "counter", "Bytes of bodies that the collector has taken.",  \
	  stats->bytes)                                                                            \
	X("pyprofd_push_windows_total", "counter", "Windows that were sent whole.",                \
	  stats->windows)                                                                          \
	X("pyprofd_push_repeated_requests_total", "counter",                                       \
	  "Requests whose answer was lost, which the collector may have twice.", stats->repeated)  \
	X("pyprofd_push_folded_series_total", "counter",                                           \
	  "Series of windows that were too many and went into other_services.", stats->folded)     \
	X("pyprofd_push_files_waiting", "gauge",                                                   \
	  "Files of the store that are still to be sent.", stats->files_left)                      \
	X("pyprofd_push_up", "gauge", "Whether the last request was taken.",                       \
	  (uint64_t)stats->works)

/* Writes all of them; nothing without sinks. */
void push_metrics_write(const struct push_stats *stats, size_t count, FILE *out);

#endif
