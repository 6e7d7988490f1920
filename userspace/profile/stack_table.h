/* SPDX-License-Identifier: BSD-2-Clause */
/* Frames -> location ids -> stack ids, each stored once.  Ids count from 0. */
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

/* All zero is an empty table. */
struct stack_table {
	struct frame *location; /* distinct frames */
	uint32_t location_count, location_capacity;
	struct index_table location_index;
	struct stack *stack;
	uint32_t stack_count, stack_capacity;
	struct index_table stack_index;
	struct stack_chunk *chunk; /* where the stacks' location ids lie */
};

void stack_table_release(struct stack_table *table);
/* Frames leaf first, borrowed for the call.  0; -E2BIG above UINT32_MAX frames; -ENOMEM. */
int stack_table_add(struct stack_table *table, const struct frame *frame, size_t frame_count,
		    uint32_t *ret_stack);
/* The same in steps: a frame's id, then a stack of such ids. */
int stack_table_add_location(struct stack_table *table, const struct frame *frame,
			     uint32_t *ret_id);
int stack_table_add_ids(struct stack_table *table, const uint32_t *location, size_t count,
			uint32_t *ret_stack);

#endif
