/* SPDX-License-Identifier: BSD-2-Clause */
/* A table of what processes had the GPU do (reader/gpu_calls.h), with exact totals, in order, and
 * what its figures are. */
#ifndef READER_GPU_TABLE_H
#define READER_GPU_TABLE_H

#include "query/select.h"
#include "reader/gpu_calls.h"

/* Fills a zeroed table, and puts it in order.  records: of kind cuda_calls; NULL: there are none.
 * select: by which samples were chosen; NULL: all.  Returns 0; -ENOMEM; -EPROTO: the profile has
 * other sample types than kind cuda. */
int gpu_table_fill(struct gpu_table *table, struct profile *profile, const struct profile *records,
		   const struct select *select);

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

/* The rows of the views of `pyprof gpu` that are not by process: lines of the table, of all
 * processes, added up. */

enum gpu_view {
	GPU_VIEW_ALL,	      /* the table itself */
	GPU_VIEW_SYNCS,	      /* by line and function: what waits for the device; most time first */
	GPU_VIEW_COPIES,      /* by line and direction; most bytes first */
	GPU_VIEW_KERNELS,     /* by kernel; most launches first */
	GPU_VIEW_COLLECTIVES, /* by line and function of NCCL; most bytes first */
	GPU_VIEW_MEMORY,      /* by line and function: what is live, then what was asked for */
};

struct gpu_group {
	uint32_t word;	/* string: the function, direction or kernel */
	uint32_t code;	/* by kernel: the line with most of its launches */
	uint32_t stack; /* the one that most of it comes from; GPU_NO_STACK */
	int64_t stack_weight;
	int64_t value[GPU_VALUES];
	double variance[GPU_VALUES]; /* of what is divided; NAN: not known */
	/* By kernel: those of the line. */
	int64_t line_value[GPU_VALUES];
	double line_variance[GPU_VALUES];
};

/* Release with gpu_groups_release(). */
struct gpu_groups {
	enum gpu_view view;
	struct gpu_group *group; /* owned; in order */
	uint32_t count, capacity;
	struct index_table index;
	int64_t all[GPU_VALUES];
};

void gpu_groups_release(struct gpu_groups *groups);
/* Fills zeroed groups with a view other than GPU_VIEW_ALL.  Returns 0 or -ENOMEM. */
int gpu_groups_fill(struct gpu_groups *groups, const struct gpu_table *table, enum gpu_view view);

#endif
