/* SPDX-License-Identifier: BSD-2-Clause */
/* What windows of kind wall say, as `top` shows it: process -> function -> line, and the waits of each. */
#ifndef READER_TOP_MODEL_H
#define READER_TOP_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pprof/profile_read.h"
#include "reader/coverage.h"
#include "render/code_table.h"

enum top_level { TOP_PROCESS, TOP_FUNCTION, TOP_LINE, TOP_WAIT };

#define TOP_NONE UINT32_MAX

struct top_row {
	enum top_level level;
	uint32_t parent; /* TOP_NONE: of a process */
	uint32_t child, sibling; /* the first, and the next of the same parent; TOP_NONE */
	uint32_t code;	 /* of a function, or of a line's own table */
	int64_t pid;	 /* of a process */
	uint32_t name;	 /* string: of a process or wait */
	/* By itself: of a function what it runs in C and in the kernel is its own. */
	int64_t cpu_ns, gil_ns, wait_ns; /* gil: it held it, running or not */
	int64_t total_ns;		 /* of a function: on the CPU, with what it calls */
	uint64_t last_sample;		 /* that was added to total_ns: recursion counts once */
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

/* by_leaf: time belongs to the innermost frame, be it native or the kernel's; else to the innermost
 * Python function, and without any to what is outside of the kernel. */
int top_model_new(bool by_leaf, struct top_model **ret_model);
void top_model_free(struct top_model *model);
DEFINE_OWNED(struct top_model, top_model)
/* A window: a pprof file of kind wall.  0; -EBADMSG; -ENOMEM; -errno. */
int top_model_add(struct top_model *model, const char *file, size_t size, bool has_waits);

void top_model_times(const struct top_model *model, uint64_t *ret_end_wall_ns,
		     uint64_t *ret_duration_ns);
/* "only 14.0 % of ... is in it", or "". */
const char *top_model_coverage(const struct top_model *model, char buffer[COVERAGE_BYTES]);
/* "step", "python3", "gil"; never with control codes. */
const char *top_model_name(const struct top_model *model, const struct top_row *row);

#endif
