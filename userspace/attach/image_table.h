/* SPDX-License-Identifier: BSD-2-Clause */
/* Processes' tables in the kernel: from struct process (its mappings) to map sets and images.  A map
 * set is shared by the processes that fork made, until one of them maps something.  One thread. */
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

/* Publishes what changed: finds the files of all mappings, writes a new map set, sets the image.
 * flags: enum pp_image_flag.  Returns 0; -ENOSPC: no room for the map set (counted, the process is
 * sampled without user frames); -ENOMEM. */
int image_table_publish(struct image_table *table, struct process *process, uint16_t flags);
/* The first half of it, which also works for a dead process: mapping.file and bias of all mappings.
 * 0; -ENOMEM. */
int image_table_find_files(struct image_table *table, struct process *process);
/* A child made by fork: shares the parent's set.  Publish it later if its mappings differ. */
int image_table_fork(struct image_table *table, const struct process *parent,
		     struct process *child);
/* The process has ended: gives back its image, map set and files, and still knows its interpreter. */
void image_table_retire(struct image_table *table, struct process *process);
/* Gives back all that a process holds (process->tables becomes NULL). */
void image_table_release(struct image_table *table, struct process *process);
/* Once a second or so, at least 10 ms apart: chunks of replaced sets become free. */
void image_table_tick(struct image_table *table);

/* What is known of one process's interpreter. */
struct process_python {
	struct file *file; /* NULL: none */
	uint64_t bias;
	bool is_musl;
	bool is_checked;    /* the self-test has spoken */
	uint8_t failed_tests; /* of a program that may have changed while it was looked at */
	bool is_refused;    /* ... against it: no Python frames of this process */
	const char *reason; /* why there are no Python frames; NULL: there are */
};
/* The interpreter file of a record's number, 1 + index in pythons[].  NULL: there is none. */
struct file *image_table_interpreter(const struct image_table *table, uint32_t python);
/* What is known of it; NULL. */
const struct python_info *image_table_python_info(const struct image_table *table,
						  uint32_t python);
/* NULL when the process was never published. */
struct process_python *image_table_python(struct process *process);
uint16_t image_table_flags(const struct process *process);

struct image_table_stats {
	uint64_t chunks_used, chunks_total, sets_refused;
};
void image_table_get_stats(const struct image_table *table, struct image_table_stats *ret_stats);
/* File and bias at an address of the process: 0; -ENOENT. */
int process_find_mapping(const struct process *process, uint64_t address,
			 const struct mapping **ret_mapping);

#endif
