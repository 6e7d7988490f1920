/* SPDX-License-Identifier: BSD-2-Clause */
/* Aggregates windows of kind wall for `top`: process -> function -> line, and the waits of each. */
#ifndef READER_TOP_MODEL_H
#define READER_TOP_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pprof/profile_read.h"
#include "query/coverage.h"
#include "render/code_table.h"

enum top_level { TOP_PROCESS, TOP_FUNCTION, TOP_LINE, TOP_WAIT };

#define TOP_NONE UINT32_MAX

struct top_row {
	enum top_level level;
	uint32_t parent; /* TOP_NONE: it is a process */
	/* the first child, and the next row with the same parent; TOP_NONE */
	uint32_t child, sibling;
	uint32_t code; /* in the table of functions, or that of lines */
	int64_t pid;   /* of a process */
	uint32_t name; /* string: of a process or wait */
	/* Self times.  A function's include the native and kernel code that it runs. */
	int64_t cpu_ns, gil_ns, wait_ns; /* gil: time in which it held the GIL, on the CPU or not */
	int64_t total_ns;		 /* of a function: on the CPU, with its callees */
	uint64_t last_sample; /* the last sample added to total_ns: recursion counts once */
};

struct top_model {
	struct profile_reader *reader; /* owned */
	struct code_table function, line;
	bool by_leaf, has_waits;
	struct coverage coverage;
	struct top_row *row; /* owned */
	uint32_t count, capacity;
	struct index_table index;
	uint32_t first; /* process */
	uint32_t processes;
	uint64_t sample;
};

/* Creates a model.  by_leaf: time belongs to the innermost frame, native and kernel frames
 * included; else to the innermost Python function or, without one, to the innermost frame outside
 * of the kernel. */
int top_model_new(bool by_leaf, struct top_model **ret_model);
void top_model_free(struct top_model *model);
DEFINE_OWNED(struct top_model, top_model)
/* Adds a window: a pprof file of kind wall.  Returns 0; -EBADMSG; -ENOMEM; -errno. */
int top_model_add(struct top_model *model, const char *file, size_t size, bool has_waits);

void top_model_times(const struct top_model *model, uint64_t *ret_end_wall_ns,
		     uint64_t *ret_duration_ns);
/* Returns "only 14.0 % of ... is in it", or "". */
const char *top_model_coverage(const struct top_model *model, char buffer[COVERAGE_BYTES]);
/* Returns "step", "python3", "gil"; cleaned. */
const char *top_model_name(const struct top_model *model, const struct top_row *row);

#endif
