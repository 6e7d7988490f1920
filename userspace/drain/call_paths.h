/* SPDX-License-Identifier: BSD-2-Clause */
/* What exact calls, and exact lines, have counted (include/pyprofd/calls.h).  Of calls the kernel
 * side's nodes are read at a window's end, and what is new becomes counters, whose stacks are the
 * nodes' paths.  Equal paths of a process are one stack, and of a thread one counter.  Bounded by
 * the kernel side's table. One thread. */
#ifndef DRAIN_CALL_PATHS_H
#define DRAIN_CALL_PATHS_H

#include <stdbool.h>
#include <stdint.h>

#include <pyprofd/calls.h>

#include "base/cleanup.h"
#include "drain/hash_set.h"

struct counts;
struct dictionary;
struct call_paths;
int call_paths_new(struct call_paths **ret_paths);
void call_paths_free(struct call_paths *paths);
DEFINE_OWNED(struct call_paths, call_paths)

/* Notes what a node has counted up to now.  Returns 0 or -ENOMEM. */
int call_paths_note(struct call_paths *paths, uint64_t node, const struct pp_call_node *now);
/* Notes a thread: the time from its last event to the window's end belongs to its top. */
void call_paths_note_thread(struct call_paths *paths, const struct pp_call_thread *thread,
			    uint64_t ended_ns);
/* Adds what was noted and not yet counted to `counts` (PP_KIND_CALL), with the stacks that it
 * needs. Of a path deeper than a stack may be, frames in the middle are left out; one whose caller
 * is not known ends there and says so.  Returns 0 or -ENOMEM. */
int call_paths_count(struct call_paths *paths, struct dictionary *dictionary,
		     struct counts *counts);

/* Does all of this with the kernel side's tables.  is_alive tells whether a thread still runs: the
 * time of others has ended before the window.  Returns 0; -ENOMEM; -errno. */
struct call_tables {
	int nodes, threads; /* descriptors */
	uint64_t ended_ns;  /* of the window, CLOCK_MONOTONIC */
	bool (*is_alive)(void *context, const struct pp_call_thread *thread);
	void *context;
};
int call_paths_collect(struct call_paths *paths, const struct call_tables *tables,
		       struct dictionary *dictionary, struct counts *counts);

/* Makes room in the kernel side's table: takes off the nodes of threads that have ended, which are
 * counted with the next window.  Returns how many were taken off, or -errno. */
int call_paths_tidy(struct call_paths *paths, const struct call_tables *tables);

/* ---- exact lines ----
 * What they have counted: the kernel side's rows are read at a window's end, and what is new
 * becomes counters, whose stacks have one frame, the line's.  Bounded by the kernel
 * side's table.  `rows` is any set (drain/hash_set.h), and has nothing else.  One thread. */

/* Notes what a line has counted up to now.  Returns 0 or -ENOMEM. */
int line_rows_note(struct hash_set *rows, uint64_t id, const struct pp_line_row *now);
/* Notes the line that a thread is in: the time since its last event, up to the window's end, is
 * that line's. */
void line_rows_note_run(struct hash_set *rows, const struct pp_line_run *run, uint64_t ended_ns);
/* Adds what was noted and not yet counted to `counts` (PP_KIND_LINE), with the stacks that it
 * needs.  Returns 0 or -ENOMEM. */
int line_rows_count(struct hash_set *rows, struct dictionary *dictionary, struct counts *counts);

/* Does all of this with the kernel side's tables.  is_alive tells whether a thread still runs.
 * Returns 0; -ENOMEM; -errno. */
struct line_tables {
	int rows, runs;	   /* descriptors */
	uint64_t ended_ns; /* of the window, CLOCK_MONOTONIC */
	bool (*is_alive)(uint32_t tgid, uint32_t tid);
};
int line_rows_collect(struct hash_set *rows, const struct line_tables *tables,
		      struct dictionary *dictionary, struct counts *counts);

#endif
