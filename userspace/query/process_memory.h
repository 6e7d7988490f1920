/* SPDX-License-Identifier: BSD-2-Clause */
/* Sums up the resident memory of each process, from the comments of profiles
 * (profile/memory_line.h): the first and the last figures of a range, and the peak. */
#ifndef QUERY_PROCESS_MEMORY_H
#define QUERY_PROCESS_MEMORY_H

#include <stddef.h>
#include <stdint.h>

#include "base/index_table.h"
#include "profile/memory_line.h"
#include "query/select.h"

/* The most processes with figures of their own.  A hostile profile may name more; those are counted
 * and left out. */
#define PROCESS_MEMORY_MAX 65536U

struct process_memory {
	struct memory_line first, last; /* equal when there was one reading */
	uint64_t peak_bytes;
};

/* Release with process_memories_release().  Begin with {.select = ...}. */
struct process_memories {
	const struct select
		*select; /* borrowed; its --pid and --comm choose processes; NULL: all */
	struct process_memory *process; /* owned */
	uint32_t count, capacity;
	struct index_table index;
	struct memory_line others; /* the last sum of processes without a line; others 0: none */
	uint64_t left_out;	   /* lines */
};

void process_memories_release(struct process_memories *memories);
/* Adds a comment; ignores those that are not of memory.  Comments may come in any order.  Returns 0
 * or -ENOMEM. */
int process_memories_add(struct process_memories *memories, const char *comment);
/* Returns by how many bytes a process grew a minute, less than 0 when it shrank; NAN: there was one
 * reading only. */
double process_memory_growth(const struct process_memory *process);
/* Puts the processes in order: the larger ones first.  Nothing may be added afterwards. */
void process_memories_sort(struct process_memories *memories);

#endif
