/* SPDX-License-Identifier: BSD-2-Clause */
/* Writes processes' tables in the kernel: from struct process (its mappings) to map sets and
 * process contexts (struct pp_process_context).  Processes that came from one another by fork share
 * a map set until one of them maps something.  One thread. */
#ifndef ATTACH_CONTEXT_TABLE_H
#define ATTACH_CONTEXT_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <pyprofd/limits.h>

#include "attach/file_table.h"
#include "attach/kernel_side.h"
#include "base/cleanup.h"
#include "base/slice.h"
#include "base/user_quota.h"
#include "discover/process.h"

/* Interpreter files that have numbers at a time. */
#define PYTHON_SLOTS (PP_MAX_PYTHONS - 1) /* a record's byte is 1 + the index */

struct context_table;
int context_table_new(struct kernel_side *side, struct file_table *files,
		      struct context_table **ret_table);
void context_table_free(struct context_table *table);
DEFINE_OWNED(struct context_table, context_table)

/* Publishes what changed: finds the files of all mappings, writes a new map set, sets the process
 * context. flags: enum pp_context_flag.  Returns 0; -ENOSPC: no room for the map set (counted; the
 * process is sampled without user frames); -ENOMEM. */
int context_table_publish(struct context_table *table, struct process *process, uint16_t flags);
/* Returns true once a second while there are files that the child has not examined: they are to be
 * asked about again. */
bool context_table_is_due(struct context_table *table, uint64_t now_ns);
/* Asks about the files of a process that the child has not examined, until the slice is over.
 * Returns whether one has an answer: the process is to be published again. */
bool context_table_ask_again(struct context_table *table, const struct process *process,
			     const struct slice *slice);
/* Sets mapping.file and bias of all mappings; the first half of publishing, which also works for a
 * dead process.  Stops when the slice is over, after one new file at least; the next call goes on
 * there.  Returns 0; -EAGAIN: there are more; -ENOMEM. */
int context_table_find_files(struct context_table *table, struct process *process,
			     const struct slice *slice);
/* Sets up a child made by fork, which shares the parent's set.  Publish the child later if its
 * mappings differ. */
int context_table_fork(struct context_table *table, const struct process *parent,
		       struct process *child);
/* Frees an ended process's context, map set and files, but still knows its interpreter. */
void context_table_retire(struct context_table *table, struct process *process);
/* Frees all that a process holds (process->tables becomes NULL). */
void context_table_release(struct context_table *table, struct process *process);
/* Call it about once a second, at least 10 ms apart: makes chunks of replaced sets reusable. */
void context_table_tick(struct context_table *table);

/* Takes the numbers of interpreter files that no process has mapped since before_ns; call it before
 * file_table_tidy().  They are given out again after FILE_SLOT_REST_EPOCHS calls of end_epoch. */
void context_table_tidy(struct context_table *table, uint64_t before_ns);
void context_table_end_epoch(struct context_table *table);

/* What is known of a process's interpreter. */
struct process_python {
	struct file *file; /* NULL: none */
	uint64_t bias;
	bool is_musl;
	bool is_checked;      /* the self-test has succeeded or failed */
	uint8_t failed_tests; /* in a row, by a program that may have changed during the test */
	bool is_refused;      /* the self-test failed: no Python frames for this process */
	const char *reason;   /* why there are no Python frames; NULL: there are */
};
/* Returns the interpreter file of a record's number, 1 + index in pythons[].  NULL: none. */
struct file *context_table_interpreter(const struct context_table *table, uint32_t python);
/* Returns what is known of the interpreter; NULL: nothing. */
const struct python_info *context_table_python_info(const struct context_table *table,
						    uint32_t python);
/* Returns NULL when the process was never published. */
struct process_python *context_table_python(struct process *process);
uint16_t context_table_flags(const struct process *process);

struct context_table_stats {
	uint64_t chunks_used, chunks_total;
	/* Processes for whose mappings there was no room: walks end at once, and the agent
	 * completes what it has time for. */
	uint64_t sets_refused;
	uint64_t pythons_refused; /* interpreter files without a number */
};
void context_table_get_stats(const struct context_table *table,
			     struct context_table_stats *ret_stats);
/* Returns who holds how many numbers of interpreter files. */
struct user_quota *context_table_python_quota(struct context_table *table);
/* Returns who holds how much of map_sets[]. */
struct user_quota *context_table_sets_quota(struct context_table *table);
/* Finds the mapping at an address of the process.  Returns 0; -ENOENT. */
int process_find_mapping(const struct process *process, uint64_t address,
			 const struct mapping **ret_mapping);

#endif
