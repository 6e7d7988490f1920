/* SPDX-License-Identifier: BSD-2-Clause */
#include "profile/stack_table.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/array.h"

#define CHUNK_IDS 16384U

struct stack_chunk {
	struct stack_chunk *next;
	size_t used, size; /* ids */
	uint32_t id[];
};

void stack_table_release(struct stack_table *table)
{
	for (struct stack_chunk *chunk = table->chunk, *next; chunk; chunk = next) {
		next = chunk->next;
		free(chunk);
	}
	free(table->location);
	free(table->stack);
	index_table_release(&table->location_index);
	index_table_release(&table->stack_index);
	*table = (struct stack_table){0};
}

static bool location_equal(const void *context, uint32_t index, const void *key)
{
	const struct stack_table *table = context;
	const struct frame *a = &table->location[index], *b = key;

	return a->name == b->name && a->line == b->line && a->address == b->address &&
	       a->kind == b->kind && a->file == b->file && a->module == b->module &&
	       a->system_name == b->system_name && a->start_line == b->start_line;
}

int stack_table_add_location(struct stack_table *table, const struct frame *frame, uint32_t *ret_id)
{
	/* The padding before the address must not be hashed. */
	uint32_t hash = (uint32_t)XXH3_64bits_withSeed(
		frame, offsetof(struct frame, module) + sizeof(frame->module), frame->address);
	uint32_t id = table->location_count;
	int err;

	if (index_table_find(&table->location_index, hash, location_equal, table, frame, ret_id))
		return 0;
	err = ARRAY_RESERVE(table->location, table->location_count, table->location_capacity);
	if (err)
		return err;
	err = index_table_add(&table->location_index, hash, id);
	if (err)
		return err;
	table->location[table->location_count++] = *frame;
	*ret_id = id;
	return 0;
}

size_t stack_table_bytes(const struct stack_table *table)
{
	return table->location_capacity * sizeof(*table->location) +
	       table->stack_capacity * sizeof(*table->stack) +
	       table->id_capacity * sizeof(uint32_t) + index_table_bytes(&table->location_index) +
	       index_table_bytes(&table->stack_index);
}

/* Reserves room for `count` ids at the end of the newest chunk; nothing is added yet. */
static uint32_t *chunk_reserve(struct stack_table *table, size_t count)
{
	struct stack_chunk *chunk = table->chunk;

	if (!chunk || chunk->size - chunk->used < count) {
		size_t size = count > CHUNK_IDS ? count : CHUNK_IDS;

		chunk = malloc(sizeof(*chunk) + size * sizeof(chunk->id[0]));
		if (!chunk)
			return NULL;
		*chunk = (struct stack_chunk){.next = table->chunk, .size = size};
		table->chunk = chunk;
		table->id_capacity += size;
	}
	return chunk->id + chunk->used;
}

static bool stack_equal(const void *context, uint32_t index, const void *key)
{
	const struct stack_table *table = context;
	const struct stack *a = &table->stack[index], *b = key;

	return a->count == b->count &&
	       !memcmp(a->location, b->location, a->count * sizeof(a->location[0]));
}

/* Adds a stack of the ids in reserved memory; the memory is kept when the stack is new. */
static int add_reserved(struct stack_table *table, const uint32_t *ids, size_t count,
			uint32_t *ret_stack)
{
	struct stack stack = {.location = ids, .count = (uint32_t)count};
	uint32_t hash = (uint32_t)XXH3_64bits(ids, count * sizeof(*ids));
	int err;

	if (index_table_find(&table->stack_index, hash, stack_equal, table, &stack, ret_stack))
		return 0;
	err = ARRAY_RESERVE(table->stack, table->stack_count, table->stack_capacity);
	if (err)
		return err;
	err = index_table_add(&table->stack_index, hash, table->stack_count);
	if (err)
		return err;
	table->chunk->used += count;
	*ret_stack = table->stack_count;
	table->stack[table->stack_count++] = stack;
	return 0;
}

int stack_table_add(struct stack_table *table, const struct frame *frame, size_t frame_count,
		    uint32_t *ret_stack)
{
	uint32_t *ids;
	int err;

	if (frame_count > UINT32_MAX)
		return -E2BIG;
	ids = chunk_reserve(table, frame_count);
	if (!ids)
		return -ENOMEM;
	for (size_t i = 0; i < frame_count; i++) {
		err = stack_table_add_location(table, &frame[i], &ids[i]);
		if (err)
			return err;
	}
	return add_reserved(table, ids, frame_count, ret_stack);
}

int stack_table_add_ids(struct stack_table *table, const uint32_t *location, size_t count,
			uint32_t *ret_stack)
{
	uint32_t *ids;

	if (count > UINT32_MAX)
		return -E2BIG;
	ids = chunk_reserve(table, count);
	if (!ids)
		return -ENOMEM;
	if (count) /* otherwise location may be NULL */
		memcpy(ids, location, count * sizeof(*ids));
	return add_reserved(table, ids, count, ret_stack);
}
