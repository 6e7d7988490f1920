/* SPDX-License-Identifier: BSD-2-Clause */
/* sources: agent/site_numbers.c */
#include "agent/site_numbers.h"

#include <cmocka.h>
#include <stdlib.h>

#include "base/cleanup.h"

static struct site_numbers *all_taken(void)
{
	struct site_numbers *numbers = calloc(1, sizeof(*numbers));

	assert_non_null(numbers);
	for (uint32_t number = 1; number < PP_SITES_MAX; number++)
		assert_int_equal(site_numbers_take(numbers), number);
	return numbers;
}

static void take__gives_each_number_once_and_then_none(void **state)
{
	OWNED_MEM struct site_numbers *numbers = all_taken();

	(void)state;
	assert_int_equal(site_numbers_take(numbers), 0);
	assert_int_equal(site_numbers_take(numbers), 0);
}

static void take__prefers_a_fresh_number_to_one_given_back(void **state)
{
	OWNED_MEM struct site_numbers *numbers = calloc(1, sizeof(*numbers));

	(void)state;
	assert_non_null(numbers);
	assert_int_equal(site_numbers_take(numbers), 1);
	site_numbers_give(numbers, 1);
	assert_int_equal(site_numbers_take(numbers), 2);
}

static void take__takes_the_longest_free_first(void **state)
{
	OWNED_MEM struct site_numbers *numbers = all_taken();

	(void)state;
	site_numbers_give(numbers, 9);
	site_numbers_give(numbers, 4);
	assert_int_equal(site_numbers_take(numbers), 9);
	site_numbers_give(numbers, 9);
	assert_int_equal(site_numbers_take(numbers), 4);
	assert_int_equal(site_numbers_take(numbers), 9);
	assert_int_equal(site_numbers_take(numbers), 0);
}

static void give__all_numbers_come_back_many_times(void **state)
{
	OWNED_MEM struct site_numbers *numbers = all_taken();

	(void)state;
	for (unsigned int round = 0; round < 3; round++) {
		for (uint32_t number = 1; number < PP_SITES_MAX; number++)
			site_numbers_give(numbers, number);
		for (uint32_t number = 1; number < PP_SITES_MAX; number++)
			assert_int_equal(site_numbers_take(numbers), number);
		assert_int_equal(site_numbers_take(numbers), 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(take__gives_each_number_once_and_then_none),
		cmocka_unit_test(take__prefers_a_fresh_number_to_one_given_back),
		cmocka_unit_test(take__takes_the_longest_free_first),
		cmocka_unit_test(give__all_numbers_come_back_many_times),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
