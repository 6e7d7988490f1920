/* SPDX-License-Identifier: BSD-2-Clause */
/* What processes had the GPU do, as the samples of a profile of kind cuda have it.  A call is what
 * one process did by one function with one kernel on one device, and its sums are exact; lines are
 * the places in the program that its sums are divided among, by the stacks that were seen. */
#ifndef READER_GPU_CALLS_H
#define READER_GPU_CALLS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/index_table.h"
#include "profile/cuda_sums.h"
#include "profile/profile_data.h"
#include "render/code_table.h"

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

#endif
