/* SPDX-License-Identifier: BSD-2-Clause */
/* The rows of the views of `pyprof gpu` that are not by process: lines of a table
 * (reader/gpu_table.h) of all processes, added up. */
#ifndef READER_GPU_GROUPS_H
#define READER_GPU_GROUPS_H

#include "reader/gpu_table.h"

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
