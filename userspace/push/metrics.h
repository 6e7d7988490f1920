/* SPDX-License-Identifier: BSD-2-Clause */
/* Prints what sinks have done, in the text format of Prometheus. */
#ifndef PUSH_METRICS_H
#define PUSH_METRICS_H

#include <stdio.h>

#include "push/stats.h"

/* X(name, COUNTER, GAUGE or HISTOGRAM, labels, where its values are (metrics.c), what it says) */
#define PUSH_METRICS(X)                                                                            \
	X("pyprofd_push_requests_total", COUNTER, "sink, code", REQUESTS,                          \
	  "Requests to collectors, by the status of the answer; none: no answer.")                 \
	X("pyprofd_push_dropped_profiles_total", COUNTER, "sink, reason", DROPS,                   \
	  "What was not sent, by reason: docs/collectors.md.")                                     \
	X("pyprofd_push_bytes_total", COUNTER, "sink", BYTES,                                      \
	  "Bytes of bodies that the collector has taken.")                                         \
	X("pyprofd_push_windows_total", COUNTER, "sink", WINDOWS, "Windows that were sent.")       \
	X("pyprofd_push_repeated_requests_total", COUNTER, "sink", REPEATED,                       \
	  "Requests whose answer was lost, which the collector may have twice.")                   \
	X("pyprofd_push_repeated_files_total", COUNTER, "sink", AGAIN,                             \
	  "Files sent again, as the clock was set back by more than ten minutes.")                 \
	X("pyprofd_push_folded_series_total", COUNTER, "sink", FOLDED,                             \
	  "Series of windows that were too many and went into other_services.")                    \
	X("pyprofd_push_files_waiting", GAUGE, "sink", WAITING,                                    \
	  "Files of the store that are still to be sent.")                                         \
	X("pyprofd_push_lag_seconds", GAUGE, "sink", LAG,                                          \
	  "How long ago the newest window ended that the collector has.")                          \
	X("pyprofd_push_up", GAUGE, "sink", WORKS, "1: the last request was taken; 0: not.")      \
	X("pyprofd_push_duration_seconds", HISTOGRAM, "sink", DURATIONS, "How long requests take.")

/* Writes all of them; nothing without sinks.  now_ms: since 1970. */
void push_metrics_write(const struct push_stats *stats, size_t count, uint64_t now_ms, FILE *out);

#endif
