/* SPDX-License-Identifier: BSD-2-Clause */
#include "probes/probed_file.h"

#include <cmocka.h>

static struct site_numbers the;

static struct site_numbers *none_taken(void)
{
	site_numbers_release(&the);
	site_numbers_init(&the);
	return &the;
}

static struct site_numbers *all_taken(void)
{
	struct site_numbers *numbers = none_taken();

	for (uint32_t number = 1; number < PP_SITES_MAX; number++)
		assert_int_equal(site_numbers_take(numbers, 0), number);
	return numbers;
}

static void take__gives_each_number_once_and_then_none(void **state)
{
	struct site_numbers *numbers = all_taken();

	(void)state;
	assert_int_equal(site_numbers_take(numbers, 0), 0);
	assert_int_equal(site_numbers_take(numbers, 0), 0);
}

static void take__prefers_a_fresh_number_to_one_given_back(void **state)
{
	struct site_numbers *numbers = none_taken();

	(void)state;
	assert_int_equal(site_numbers_take(numbers, 0), 1);
	site_numbers_give(numbers, 0, 1);
	assert_int_equal(site_numbers_take(numbers, 0), 2);
}

static void take__takes_the_longest_free_first(void **state)
{
	struct site_numbers *numbers = all_taken();

	(void)state;
	site_numbers_give(numbers, 0, 9);
	site_numbers_give(numbers, 0, 4);
	assert_int_equal(site_numbers_take(numbers, 0), 9);
	site_numbers_give(numbers, 0, 9);
	assert_int_equal(site_numbers_take(numbers, 0), 4);
	assert_int_equal(site_numbers_take(numbers, 0), 9);
	assert_int_equal(site_numbers_take(numbers, 0), 0);
}

static void give__all_numbers_come_back_many_times(void **state)
{
	struct site_numbers *numbers = all_taken();

	(void)state;
	for (unsigned int round = 0; round < 3; round++) {
		for (uint32_t number = 1; number < PP_SITES_MAX; number++)
			site_numbers_give(numbers, 0, number);
		for (uint32_t number = 1; number < PP_SITES_MAX; number++)
			assert_int_equal(site_numbers_take(numbers, 0), number);
		assert_int_equal(site_numbers_take(numbers, 0), 0);
	}
}

static void take__a_user_has_as_many_as_are_left_for_all_others(void **state)
{
	struct site_numbers *numbers = none_taken();
	uint32_t first = 0, second = 0;

	(void)state;
	while (site_numbers_take(numbers, 1000))
		first++;
	while (site_numbers_take(numbers, 1001))
		second++;
	assert_in_range(first, PP_SITES_MAX / 2 - 2, PP_SITES_MAX / 2);
	assert_in_range(second, PP_SITES_MAX / 4 - 2, PP_SITES_MAX / 4);
	assert_int_equal(numbers->quota.refused, 2);
	site_numbers_give(numbers, 1001, first + second);
	assert_int_not_equal(site_numbers_take(numbers, 1001), 0);
	assert_int_equal(site_numbers_take(numbers, 1001), 0);
	assert_int_not_equal(site_numbers_take(numbers, 0), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(take__gives_each_number_once_and_then_none),
		cmocka_unit_test(take__prefers_a_fresh_number_to_one_given_back),
		cmocka_unit_test(take__takes_the_longest_free_first),
		cmocka_unit_test(give__all_numbers_come_back_many_times),
		cmocka_unit_test(take__a_user_has_as_many_as_are_left_for_all_others),
	};

	const int failed = cmocka_run_group_tests(tests, NULL, NULL);

	site_numbers_release(&the);
	return failed;
}
