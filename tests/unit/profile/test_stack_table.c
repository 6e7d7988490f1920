/* SPDX-License-Identifier: BSD-2-Clause */
#include <cmocka.h>
#include <errno.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "profile/stack_table.h"

#define CHUNK_IDS 16384U /* as in stack_table.c */

static uint32_t ids[CHUNK_IDS + 1];

static uint32_t add(struct stack_table *table, const uint32_t *id, size_t count)
{
	uint32_t stack;

	assert_int_equal(stack_table_add_ids(table, id, count, &stack), 0);
	return stack;
}

static void add__more_frames_than_can_be_counted_are_e2big(void **state)
{
	CLEANUP(stack_table_release) struct stack_table table = {};
	const struct frame frame = {};
	uint32_t stack = 77;

	(void)state;
	assert_int_equal(stack_table_add(&table, &frame, (size_t)UINT32_MAX + 1, &stack), -E2BIG);
	assert_int_equal(stack_table_add_ids(&table, ids, (size_t)UINT32_MAX + 1, &stack), -E2BIG);
	assert_int_equal(stack, 77);
	assert_int_equal(table.stack_count, 0);
	assert_null(table.chunk);
}

/* What was reserved for a stack that is known already is in the way of nothing. */
static void add__equal_stacks_are_one_whatever_was_written_behind(void **state)
{
	static const uint32_t one[] = {1}, long_one[] = {1, 0x02020202, 3, 4};
	CLEANUP(stack_table_release) struct stack_table table = {};
	uint32_t stacks[3];

	(void)state;
	stacks[0] = add(&table, NULL, 0);
	stacks[1] = add(&table, one, 1);
	stacks[2] = add(&table, long_one, 4);
	for (unsigned int i = 0; i < 4; i++) {
		assert_int_equal(add(&table, long_one, 4), stacks[2]);
		assert_int_equal(add(&table, NULL, 0), stacks[0]);
		assert_int_equal(add(&table, one, 1), stacks[1]);
		assert_int_equal(add(&table, long_one + 1, 2), 3);
		assert_int_equal(add(&table, NULL, 0), stacks[0]);
		assert_int_equal(add(&table, one, 1), stacks[1]);
	}
	assert_int_equal(table.stack_count, 4);
}

static void add__chunk_is_used_to_its_end(void **state)
{
	CLEANUP(stack_table_release) struct stack_table table = {};
	const struct stack_chunk *chunk;

	(void)state;
	add(&table, ids, CHUNK_IDS - 1);
	chunk = table.chunk;
	add(&table, ids, 1);
	assert_ptr_equal(table.chunk, chunk);
	add(&table, ids, 2);
	assert_ptr_not_equal(table.chunk, chunk);
	chunk = table.chunk;
	add(&table, ids, CHUNK_IDS - 2);
	assert_ptr_equal(table.chunk, chunk);
	add(&table, ids, CHUNK_IDS + 1);
	assert_ptr_not_equal(table.chunk, chunk);
	assert_int_equal(table.stack_count, 5);
}

static void release__leaves_an_empty_table(void **state)
{
	CLEANUP(stack_table_release) struct stack_table table = {};
	const struct frame frame = {.name = 5};
	uint32_t stack;

	(void)state;
	for (unsigned int i = 0; i < 2; i++) {
		assert_int_equal(stack_table_add(&table, &frame, 1, &stack), 0);
		assert_int_equal(stack, 0);
		assert_int_equal(table.location[0].name, 5);
		stack_table_release(&table);
		assert_null(table.location);
		assert_null(table.stack);
		assert_null(table.chunk);
		assert_int_equal(table.location_count, 0);
		assert_int_equal(table.stack_count, 0);
	}
}

/* 150,000 that differ in their module alone: they are found by their hashes, or this takes
 * hours. */
static void add_location__modules_are_hashed_too(void **state)
{
	CLEANUP(stack_table_release) struct stack_table table = {};
	uint32_t location;

	(void)state;
	for (unsigned int turn = 0; turn < 2; turn++) {
		for (uint32_t i = 0; i < 150000; i++) {
			const struct frame frame = {.name = 5, .module = i};

			assert_int_equal(stack_table_add_location(&table, &frame, &location), 0);
			assert_int_equal(location, i);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(add__more_frames_than_can_be_counted_are_e2big),
		cmocka_unit_test(add__equal_stacks_are_one_whatever_was_written_behind),
		cmocka_unit_test(add__chunk_is_used_to_its_end),
		cmocka_unit_test(release__leaves_an_empty_table),
		cmocka_unit_test(add_location__modules_are_hashed_too),
	};

	return cmocka_run_group_tests_name("profile/stack_table", tests, NULL, NULL);
}
