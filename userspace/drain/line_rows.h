/* SPDX-License-Identifier: BSD-2-Clause */
/* What exact lines have counted (include/pyprofd/calls.h): the kernel side's rows are read at a
 * window's end, and what is new becomes counters, whose stacks have one frame, the line's.  Bounded
 * by the kernel side's table.  One thread. */
#ifndef DRAIN_LINE_ROWS_H
#define DRAIN_LINE_ROWS_H

#include <stdbool.h>
#include <stdint.h>

#include <pyprofd/calls.h>

#include "base/cleanup.h"

struct counts;
struct dictionary;
struct line_rows;
int line_rows_new(struct line_rows **ret_rows);
void line_rows_free(struct line_rows *rows); /* NULL is allowed */
DEFINE_OWNED(struct line_rows, line_rows)

/* Notes what a line has counted up to now.  Returns 0 or -ENOMEM. */
int line_rows_note(struct line_rows *rows, uint64_t id, const struct pp_line_row *now);
/* Notes the line that a thread is in: the time since its last event, up to the window's end, is
 * that line's. */
void line_rows_note_run(struct line_rows *rows, const struct pp_line_run *run, uint64_t ended_ns);
/* Adds what was noted and not yet counted to `counts` (PP_KIND_LINE), with the stacks that it
 * needs.  Returns 0 or -ENOMEM. */
int line_rows_count(struct line_rows *rows, struct dictionary *dictionary, struct counts *counts);

/* Does all of this with the kernel side's tables.  is_alive tells whether a thread still runs.
 * Returns 0; -ENOMEM; -errno. */
struct line_tables {
	int rows, runs;	   /* descriptors */
	uint64_t ended_ns; /* of the window, CLOCK_MONOTONIC */
	bool (*is_alive)(uint32_t tgid, uint32_t tid);
};
int line_rows_collect(struct line_rows *rows, const struct line_tables *tables,
		      struct dictionary *dictionary, struct counts *counts);

#endif
