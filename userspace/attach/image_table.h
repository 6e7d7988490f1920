/* SPDX-License-Identifier: BSD-2-Clause */
/* Writes processes' tables in the kernel: from struct process (its mappings) to map sets and
 * process contexts (struct pp_image).  Processes that came from one another by fork share a map set
 * until one of them maps something.  One thread. */
#ifndef ATTACH_IMAGE_TABLE_H
#define ATTACH_IMAGE_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "attach/file_table.h"
#include "attach/kernel_side.h"
#include "base/cleanup.h"
#include "discover/process.h"

struct image_table;
int image_table_new(struct kernel_side *side, struct file_table *files,
		    struct image_table **ret_table);
void image_table_free(struct image_table *table);
DEFINE_OWNED(struct image_table, image_table)

/* Publishes what changed: finds the files of all mappings, writes a new map set, sets the process
 * context. flags: enum pp_image_flag.  Returns 0; -ENOSPC: no room for the map set (counted; the
 * process is sampled without user frames); -ENOMEM. */
int image_table_publish(struct image_table *table, struct process *process, uint16_t flags);
/* Sets mapping.file and bias of all mappings; the first half of publishing, which also works for a
 * dead process.  Returns 0; -ENOMEM. */
int image_table_find_files(struct image_table *table, struct process *process);
/* Sets up a child made by fork, which shares the parent's set.  Publish the child later if its
 * mappings differ. */
int image_table_fork(struct image_table *table, const struct process *parent,
		     struct process *child);
/* Frees an ended process's context, map set and files, but still knows its interpreter. */
void image_table_retire(struct image_table *table, struct process *process);
/* Frees all that a process holds (process->tables becomes NULL). */
void image_table_release(struct image_table *table, struct process *process);
/* Call it about once a second, at least 10 ms apart: makes chunks of replaced sets reusable. */
void image_table_tick(struct image_table *table);

/* What is known of a process's interpreter. */
struct process_python {
	struct file *file; /* NULL: none */
	uint64_t bias;
	bool is_musl;
	bool is_checked;    /* the self-test has succeeded or failed */
	uint8_t failed_tests; /* in a row, by a program that may have changed during the test */
	bool is_refused;    /* the self-test failed: no Python frames for this process */
	const char *reason; /* why there are no Python frames; NULL: there are */
};
/* Returns the interpreter file of a record's number, 1 + index in pythons[].  NULL: none. */
struct file *image_table_interpreter(const struct image_table *table, uint32_t python);
/* Returns what is known of the interpreter; NULL: nothing. */
const struct python_info *image_table_python_info(const struct image_table *table,
						  uint32_t python);
/* Returns NULL when the process was never published. */
struct process_python *image_table_python(struct process *process);
uint16_t image_table_flags(const struct process *process);

struct image_table_stats {
	uint64_t chunks_used, chunks_total, sets_refused;
};
void image_table_get_stats(const struct image_table *table, struct image_table_stats *ret_stats);
/* Finds the mapping at an address of the process.  Returns 0; -ENOENT. */
int process_find_mapping(const struct process *process, uint64_t address,
			 const struct mapping **ret_mapping);

#endif
