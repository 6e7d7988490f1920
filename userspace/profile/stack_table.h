/* SPDX-License-Identifier: BSD-2-Clause */
/* Stores each frame and each stack once: frames -> location ids -> stack ids.  Ids count from 0. */
#ifndef PROFILE_STACK_TABLE_H
#define PROFILE_STACK_TABLE_H

#include <stddef.h>
#include <stdint.h>

#include "base/index_table.h"
#include "symbolize/frame.h"

struct stack {
	const uint32_t *location; /* leaf first, owned by the table */
	uint32_t count;
};

struct stack_chunk;

/* A zeroed table is empty. */
struct stack_table {
	struct frame *location; /* distinct frames */
	uint32_t location_count, location_capacity;
	struct index_table location_index;
	struct stack *stack;
	uint32_t stack_count, stack_capacity;
	struct index_table stack_index;
	struct stack_chunk *chunk; /* memory of the stacks' location ids */
	size_t id_capacity;	   /* of all chunks */
};

void stack_table_release(struct stack_table *table);
/* Returns how many bytes of memory the table takes. */
size_t stack_table_bytes(const struct stack_table *table);
/* Adds a stack by its frames, leaf first, borrowed for the call.  Returns 0; -E2BIG above
 * UINT32_MAX frames; -ENOMEM. */
int stack_table_add(struct stack_table *table, const struct frame *frame, size_t frame_count,
		    uint32_t *ret_stack);
/* Add a stack in two steps: first each frame, which gives an id, then the stack of these ids. */
int stack_table_add_location(struct stack_table *table, const struct frame *frame,
			     uint32_t *ret_id);
int stack_table_add_ids(struct stack_table *table, const uint32_t *location, size_t count,
			uint32_t *ret_stack);

#endif
