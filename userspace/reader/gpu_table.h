/* SPDX-License-Identifier: BSD-2-Clause */
/* A table of what processes had the GPU do (reader/gpu_calls.h), with the comments' sums, in order,
 * and what its figures are. */
#ifndef READER_GPU_TABLE_H
#define READER_GPU_TABLE_H

#include "query/gpu_lines.h"
#include "reader/gpu_calls.h"

/* Fills a zeroed table, and puts it in order.  Returns 0; -ENOMEM; -EPROTO: the profile has other
 * sample types than kind cuda. */
int gpu_table_fill(struct gpu_table *table, struct profile *profile, struct gpu_lines *lines);

/* Returns the standard error of one of a line's values; NAN: it is not known. */
double gpu_line_error(const struct gpu_table *table, const struct gpu_line *line,
		      enum gpu_value value);
/* Returns by what calls and lines are ranked: their time on the host, and 1 us a call. */
double gpu_weight(const int64_t value[GPU_VALUES]);
/* Returns by what a call's lines are ranked: its time, else its calls. */
enum gpu_value gpu_call_rank(const struct gpu_call *call);
/* Returns a quantile of a call's times in ns; NAN: it is not known. */
double gpu_call_quantile(const struct gpu_call *call, double quantile);
/* Returns the mean of a call's times in ns; NAN: they are not measured. */
double gpu_call_mean(const struct gpu_call *call);
#endif
