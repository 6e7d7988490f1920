/* SPDX-License-Identifier: BSD-2-Clause */
/* Adds the gauges of GPUs (gpu/gauges.h) as rows of kind gpu to profiles, or sends them to clients
 * that watch. */
#ifndef GPU_GAUGE_RECORDS_H
#define GPU_GAUGE_RECORDS_H

struct gauge_sums;
struct record_sink;

/* The rows of each GPU, and of processes: the largest of each user come first, users in turn.  In
 * profiles those beyond RECORD_PROCESSES_MAX share their rows, as do those that are not profiled;
 * clients get neither.  Returns 0 or -ENOMEM. */
int gauge_records_put(const struct gauge_sums *sums, const struct record_sink *sink);

#endif
