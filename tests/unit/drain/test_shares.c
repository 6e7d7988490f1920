/* SPDX-License-Identifier: BSD-2-Clause */
/* sources: drain/shares.c */
#include "drain/shares.h"

#include <cmocka.h>

static const struct pp_process_id first = {.tgid = 70, .generation = 1};
static const struct pp_process_id first_again = {.tgid = 70, .generation = 2};
static const struct pp_process_id second = {.tgid = 71, .generation = 1};

/* A process that has x may take y more when x + y are free. */
static void shares_take__as_much_as_is_still_free(void **state)
{
	struct shares shares = {.max_bytes = 100};

	(void)state;
	assert_true(shares_take(&shares, first, 40));
	assert_false(shares_take(&shares, first, 21));
	assert_int_equal(shares.used_bytes, 40);
	assert_true(shares_take(&shares, first, 20));
	assert_int_equal(shares.used_bytes, 60);
	assert_false(shares_take(&shares, first, 1));
	/* The next program of the same pid is another process. */
	assert_false(shares_take(&shares, first_again, 41));
	assert_true(shares_take(&shares, first_again, 20));
	assert_int_equal(shares.used_bytes, 80);
	assert_false(shares_take(&shares, second, 21));
	assert_true(shares_take(&shares, second, 10));
	assert_int_equal(shares.used_bytes, 90);
	assert_false(shares_take(&shares, second, 1));
	shares_release(&shares);
}

static void shares_take__all_at_once_leaves_nothing(void **state)
{
	struct shares shares = {.max_bytes = 100};

	(void)state;
	assert_false(shares_take(&shares, first, 101));
	assert_int_equal(shares.used_bytes, 0);
	assert_true(shares_take(&shares, first, 100));
	assert_false(shares_take(&shares, second, 1));
	assert_false(shares_take_common(&shares, 1));
	assert_int_equal(shares.used_bytes, 100);
	shares_release(&shares);
}

static void shares_take_common__only_the_whole_budget_bounds_it(void **state)
{
	struct shares shares = {.max_bytes = 10};

	(void)state;
	assert_true(shares_take_common(&shares, 4));
	assert_false(shares_take_common(&shares, 7));
	assert_int_equal(shares.used_bytes, 4);
	assert_true(shares_take_common(&shares, 6));
	assert_int_equal(shares.used_bytes, 10);
	assert_false(shares_take_common(&shares, 1));
	assert_true(shares_take_common(&shares, 0));
	shares_release(&shares);
}

static void shares_recount__has_no_bound(void **state)
{
	struct shares shares = {.max_bytes = 100};

	(void)state;
	shares_recount(&shares, first, 20);
	assert_int_equal(shares.used_bytes, 20);
	shares_recount(&shares, first, 20);
	assert_int_equal(shares.used_bytes, 40);
	assert_false(shares_take(&shares, first, 21));
	assert_true(shares_take(&shares, first, 20));
	shares_recount(&shares, second, 140);
	assert_int_equal(shares.used_bytes, 200);
	/* More than the budget is used: nothing is free. */
	assert_false(shares_take(&shares, first_again, 1));
	assert_false(shares_take_common(&shares, 1));
	assert_int_equal(shares.used_bytes, 200);
	shares_release(&shares);
}

static void shares_is_greedy__above_a_quarter(void **state)
{
	struct shares shares = {.max_bytes = 100};

	(void)state;
	assert_false(shares_is_greedy(&shares, first));
	assert_true(shares_take(&shares, first, 25));
	assert_false(shares_is_greedy(&shares, first));
	assert_true(shares_take(&shares, first, 1));
	assert_true(shares_is_greedy(&shares, first));
	assert_false(shares_is_greedy(&shares, first_again));
	shares_recount(&shares, first_again, 26);
	assert_true(shares_is_greedy(&shares, first_again));
	shares_release(&shares);
}

static void shares_reset__begins_at_nothing(void **state)
{
	struct shares shares = {.max_bytes = 100};

	(void)state;
	assert_true(shares_take(&shares, first, 30));
	assert_true(shares_take(&shares, second, 30));
	shares_reset(&shares);
	assert_int_equal(shares.used_bytes, 0);
	assert_int_equal(shares.max_bytes, 100);
	assert_false(shares_is_greedy(&shares, first));
	assert_true(shares_take(&shares, first, 100));
	shares_release(&shares);
	assert_int_equal(shares.used_bytes, 0);
	assert_null(shares.share);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(shares_take__as_much_as_is_still_free),
		cmocka_unit_test(shares_take__all_at_once_leaves_nothing),
		cmocka_unit_test(shares_take_common__only_the_whole_budget_bounds_it),
		cmocka_unit_test(shares_recount__has_no_bound),
		cmocka_unit_test(shares_is_greedy__above_a_quarter),
		cmocka_unit_test(shares_reset__begins_at_nothing),
	};

	return cmocka_run_group_tests_name("drain/shares", tests, NULL, NULL);
}
