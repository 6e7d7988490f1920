/* SPDX-License-Identifier: BSD-2-Clause */
#include <cmocka.h>
#include <string.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/index_table.h"
#include "base/saturating.h"

static void array_reserve__keeps_what_is_there(void **state)
{
	uint64_t *array = NULL;
	size_t count = 0, capacity = 0;

	(void)state;
	while (count < 1000) {
		assert_int_equal(ARRAY_RESERVE(array, count, capacity), 0);
		assert_true(capacity > count);
		array[count] = count;
		count++;
	}
	for (size_t i = 0; i < count; i++)
		assert_int_equal(array[i], i);
	free(array);
}

static void array_reserve__with_room_moves_nothing(void **state)
{
	uint8_t *array = NULL, *before;
	uint32_t count = 0, capacity = 0;

	(void)state;
	assert_int_equal(ARRAY_RESERVE(array, count, capacity), 0);
	before = array;
	for (; count < capacity; count++)
		assert_int_equal(ARRAY_RESERVE(array, count, capacity), 0);
	assert_ptr_equal(array, before);
	assert_int_equal(capacity, ARRAY_IS_TIGHT(0) ? 1 : ARRAY_FIRST_CAPACITY);
	free(array);
}

/* A count of eight bits must not wrap round to a small array. */
static void array_reserve__ends_at_the_largest_count(void **state)
{
	uint8_t *array = NULL, count = 0, capacity = 0;
	int err = 0;

	(void)state;
	while (!(err = ARRAY_RESERVE(array, count, capacity)))
		count = capacity;
	assert_int_equal(err, -ENOMEM);
	assert_int_equal(count, capacity);
	assert_true(capacity > 128);
	free(array);
}

static void id_map__gives_back_what_was_set(void **state)
{
	struct id_map map = {};
	uint32_t index = 77;

	(void)state;
	assert_false(id_map_find(&map, 0, &index));
	assert_int_equal(id_map_reserve(&map, 3), 0);
	assert_false(id_map_find(&map, 2, &index));
	id_map_set(&map, 2, 0);
	assert_int_equal(id_map_reserve(&map, 100), 0);
	assert_true(id_map_find(&map, 2, &index));
	assert_int_equal(index, 0);
	index = 77;
	assert_false(id_map_find(&map, 99, &index));
	assert_false(id_map_find(&map, 100, &index));
	assert_int_equal(index, 77);
	/* Fewer than there are take no room away. */
	assert_int_equal(id_map_reserve(&map, 1), 0);
	assert_true(id_map_find(&map, 2, &index));
	id_map_release(&map);
	assert_false(id_map_find(&map, 2, &index));
}

static void add_saturating__stops_at_both_ends(void **state)
{
	(void)state;
	assert_true(add_saturating(INT64_MAX - 1, 1) == INT64_MAX);
	assert_true(add_saturating(INT64_MAX, 1) == INT64_MAX);
	assert_true(add_saturating(INT64_MIN, -1) == INT64_MIN);
	assert_true(add_saturating(INT64_MIN, 1) == INT64_MIN + 1);
	assert_true(add_saturating(-2, 3) == 1);
}

static void grouped__items_of_a_group_keep_their_order(void **state)
{
	static const struct {
		char name;
		uint32_t group;
	} item[] = {{'a', 2}, {'b', 0}, {'c', 2}, {'d', 0}, {'e', 3}};
	static const char *const wanted[] = {"bd", "", "ac", "e"};
	CLEANUP(grouped_release) struct grouped grouped = {0}, none = {0};

	(void)state;
	assert_int_equal(GROUPED_INIT(&grouped, item, group, ARRAY_SIZE(item), 4), 0);
	for (uint32_t g = 0; g < 4; g++) {
		assert_int_equal(grouped.first[g + 1] - grouped.first[g], strlen(wanted[g]));
		for (uint32_t i = 0; wanted[g][i]; i++)
			assert_int_equal(item[grouped.item[grouped.first[g] + i]].name,
					 wanted[g][i]);
	}
	assert_int_equal(grouped_init(&none, NULL, 8, 4, 0, 0), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(grouped__items_of_a_group_keep_their_order),
		cmocka_unit_test(array_reserve__keeps_what_is_there),
		cmocka_unit_test(array_reserve__with_room_moves_nothing),
		cmocka_unit_test(array_reserve__ends_at_the_largest_count),
		cmocka_unit_test(id_map__gives_back_what_was_set),
		cmocka_unit_test(add_saturating__stops_at_both_ends),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
