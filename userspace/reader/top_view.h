/* SPDX-License-Identifier: BSD-2-Clause */
/* What `top` shows.  A model (top_model.c) adds up windows of kind wall: process -> function ->
 * line, and the waits of each.  A view (top_view.c) decides which of its rows are shown, in which
 * order, and handles keys; it knows no terminal. */
#ifndef READER_TOP_VIEW_H
#define READER_TOP_VIEW_H

#include <regex.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

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

struct profile_read_totals top_model_totals(const struct top_model *model);
/* Returns "only 14.0 % of ... is in it", or "". */
const char *top_model_coverage(const struct top_model *model, char buffer[COVERAGE_BYTES]);
/* Returns "step", "python3", "gil"; cleaned. */
const char *top_model_name(const struct top_model *model, const struct top_row *row);

/* ---- the view ---- */

#define TOP_FILTER_BYTES 128U

enum top_sort { TOP_BY_CPU, TOP_BY_GIL, TOP_BY_WAIT, TOP_BY_NAME };
extern const char *const top_sort_names[]; /* with NULL behind */

/* Release with top_view_release(). */
struct top_view {
	enum top_sort sort;
	unsigned int depth;	 /* 1: processes; 2: functions; 3: lines too */
	unsigned long functions; /* the most of a process */
	unsigned int lines;	 /* the most of a function */
	bool shows_idle;	 /* also shows processes with 0 in the sorted column */
	bool is_frozen, shows_help, wants_end;
	unsigned int first;	    /* number of rows scrolled past */
	unsigned int columns, rows; /* of the screen; 0: no limit */
	bool color, full_paths;
	bool is_typing; /* the user is typing a filter */
	char typed[TOP_FILTER_BYTES], filter[TOP_FILTER_BYTES];
	regex_t *regex;	   /* of the filter; owned; NULL: none */
	const char *error; /* about the text typed last; NULL */
};

void top_view_release(struct top_view *view);
/* Sets the filter, an extended regular expression; "": none.  Returns 0; -EINVAL: not an
 * expression, the old filter stays; -ENOMEM. */
int top_view_set_filter(struct top_view *view, const char *text);
/* Handles keys as a terminal sends them.  Returns whether something changed. */
bool top_view_keys(struct top_view *view, const char *keys, size_t size);
/* Prints whole lines, each ended by line_end.  model NULL: no data yet.  Returns 0 or -ENOMEM. */
int top_view_print(const struct top_view *view, const struct top_model *model, const char *line_end,
		   FILE *out);

#endif
