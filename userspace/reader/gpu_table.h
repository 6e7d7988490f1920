/* SPDX-License-Identifier: BSD-2-Clause */
/* What processes had the GPU do, as the samples of a profile of kind cuda have it.  A call is what
 * one process did by one function with one kernel on one device, and its sums are exact; lines are
 * the places in the program that its sums are divided among, by the stacks that were seen. */
#ifndef READER_GPU_TABLE_H
#define READER_GPU_TABLE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/index_table.h"
#include "profile/cuda_sums.h"
#include "profile/profile_data.h"
#include "query/select.h"
#include "render/code_table.h"
#include "render/table.h"

/* In the order of kinds.h.  Those from GPU_LIVE on are levels at the end of the last window: bytes
 * and blocks that are live, at the stacks that allocated them.  They are divided among nothing. */
enum gpu_value { GPU_CALLS, GPU_HOST, GPU_WAIT, GPU_BYTES, GPU_LIVE, GPU_BLOCKS, GPU_VALUES };

/* X(id, name, what a head says) */
#define GPU_CLASSES(X)                                                                             \
	X(LAUNCH, "launch", "launches")                                                            \
	X(GRAPH, "graph", "graph launches")                                                        \
	X(COLLECTIVE, "collective", "collectives")                                                 \
	X(COPY, "copy", "copies")                                                                  \
	X(FILL, "fill", "fills")                                                                   \
	X(SYNC, "sync", "synchronisations")                                                        \
	X(ALLOC, "alloc", "allocations")                                                           \
	X(FREE, "free", "frees")                                                                   \
	X(OTHER, "other", "other calls")
#define GPU_ENUM_CLASS(id, ...) GPU_##id,
enum gpu_class { GPU_CLASSES(GPU_ENUM_CLASS) GPU_CLASS_COUNT };

/* What tells calls apart; compared and hashed as bytes.  Numbers but pid are ids of the profile's
 * strings. */
struct gpu_about {
	int64_t pid; /* 0: not known */
	uint32_t comm, device, api, direction, kernel, pad;
};

struct gpu_call {
	struct gpu_about is;
	enum gpu_class class;
	uint32_t process; /* number of its process and device, in the table's order */
	int64_t value[GPU_VALUES];
	/* Of its rows of kind cuda_calls.  They are the call's own when the calls are as many;
	 * NULL: none. */
	const struct cuda_sums *sums;
	bool is_whole;	   /* the sums are of these calls */
	double spread;	   /* as of struct cuda_sums, of the call's own calls; NAN: not known */
	double unevenness; /* of bytes among the calls: as cuda_sums_unevenness() */
	uint32_t first_line, line_count;
};

/* What rows of kind cuda_calls say of it. */
struct gpu_total {
	struct gpu_about about;
	struct cuda_sums sums;
};

struct gpu_line {
	uint32_t call, code;
	uint32_t stack; /* the one that most of it comes from */
	int64_t stack_calls, stack_host;
	int64_t value[GPU_VALUES];
};

/* Release with gpu_table_release(). */
struct gpu_table {
	struct profile *profile; /* borrowed; strings may be added */
	struct code_table code;
	struct gpu_call *call; /* owned, by process, device, class and weight */
	uint32_t call_count, call_capacity;
	struct index_table call_index;
	struct id_map call_of_set; /* by label set */
	struct gpu_line *line;	   /* owned; those of a call lie together, the heaviest first */
	uint32_t line_count, line_capacity;
	struct index_table line_index;
	struct gpu_total *total; /* owned */
	uint32_t total_count, total_capacity;
	struct index_table total_index;
	int64_t all[GPU_VALUES];
	bool has_live; /* the profile tells what is live */
};

#define GPU_NO_STACK UINT32_MAX

void gpu_table_release(struct gpu_table *table);
/* Adds the samples of a profile to a zeroed table.  Returns 0; -ENOMEM; -EPROTO: its sample types
 * are not those of kind cuda. */
int gpu_add_samples(struct gpu_table *table, struct profile *profile);
/* Adds the rows of a profile of kind cuda_calls; NULL: there are none.  Returns 0 or -ENOMEM. */
int gpu_add_totals(struct gpu_table *table, const struct profile *records);
/* Sets the sums of each call to those of its total.  Where a user's stacks were more than his share
 * of a profile (docs/design/shares.md), samples have lost the labels that say what was called: with
 * adds_left_out what the totals have and no sample does is added, as calls of "[stack left out]".
 * Returns 0 or -ENOMEM. */
int gpu_take_totals(struct gpu_table *table, bool adds_left_out);
/* Returns the place in a stack that called a function of CUDA: the innermost line of Python, else
 * the innermost function that is not CUDA's; 0 in a stack of nothing else. */
uint32_t gpu_stack_place(const struct profile *profile, const struct stack *stack, const char *api);

/* Return what a class is called: "sync"; "synchronisations". */
const char *gpu_class_name(enum gpu_class class);
const char *gpu_class_head(enum gpu_class class);
enum gpu_class gpu_class_of(const char *api);
/* Returns a text of the profile. */
const char *gpu_text(const struct gpu_table *table, uint32_t string);

/* ---- the table, in order, and what its figures are (gpu_table.c) ---- */

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

/* ---- what is shown ---- */

struct gpu_shown {
	const struct gpu_table *table;
	const struct gpu_groups *groups; /* of views other than GPU_VIEW_ALL */
	enum gpu_view view;
	uint64_t duration_ns; /* that was recorded */
	uint32_t rows;	      /* 0: all */
	bool color;
	bool is_scaled; /* launches were counted for a part of the time */
};

/* Writes tables for programs, and as Markdown: `lines`, `calls` and `times`, or `rows` of another
 * view.  Columns that end with _error are the standard errors of what is divided by stacks; they
 * are empty, null or NULL where they are not known.  Returns 0 or -ENOMEM. */
int gpu_put_tables(const struct gpu_shown *shown, struct table *table);

#endif
