/* SPDX-License-Identifier: BSD-2-Clause */
/* The resident memory of each process, from profiles of kind resident: the last figures of a range,
 * how they grew, and the peak. */
#ifndef QUERY_PROCESS_MEMORY_H
#define QUERY_PROCESS_MEMORY_H

#include <stddef.h>
#include <stdint.h>

#include "base/kinds.h"
#include "query/input.h"

struct process_memory {
	int64_t pid;			/* 0: of several processes */
	const char *comm;		/* of the profile */
	int64_t bytes[PP_MEMORY_COUNT]; /* in the last window that the process was in */
	uint64_t seen_ns;		/* when that began */
	int64_t peak_bytes;
	int64_t growth_bytes, growth_ns; /* in which time; 0: there was one reading only */
	int64_t processes;
};

/* What a row had in the last window that it was in. */
struct row_memory {
	uint64_t start_ns;
	int64_t bytes;
};

/* Release with process_memories_release(). */
struct process_memories {
	struct row_memory *row; /* owned; by row of the profile */
	size_t row_capacity;
	struct process_memory *process; /* owned */
	uint32_t count;
	struct process_memory others; /* those without rows of their own, in the last window */
	int64_t unread;		      /* processes whose memory was not read */
};

void process_memories_release(struct process_memories *memories);
/* Returns how to read the windows of a selection for them; where there are none, there is no
 * input. */
struct input_options process_memories_input(struct process_memories *memories,
					    const struct select *select);
/* Lists the processes of the profile, once; its strings are borrowed, and the larger ones come
 * first.  Returns 0 or -ENOMEM. */
int process_memories_fill(struct process_memories *memories, const struct profile *profile);

int64_t process_memory_bytes(const struct process_memory *process); /* INT64_MAX at most */
/* Adds the memory of processes to that of others. */
void process_memory_add(struct process_memory *sum, const struct process_memory *process);
/* Returns by how many bytes a process grew a minute, less than 0 when it shrank; NAN: there was one
 * reading only. */
double process_memory_growth(const struct process_memory *process);

#endif
