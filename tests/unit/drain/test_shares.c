/* SPDX-License-Identifier: BSD-2-Clause */
/* sources: drain/shares.c */
#include "drain/shares.h"

#include <cmocka.h>
#include <errno.h>

static const struct share_holder first = {.id = {.tgid = 70, .generation = 1}};
static const struct share_holder first_again = {.id = {.tgid = 70, .generation = 2}};
static const struct share_holder second = {.id = {.tgid = 71, .generation = 1}};

/* A process that has x may take y more when x + y are free. */
static void shares_take__as_much_as_is_still_free(void **state)
{
	struct shares shares = {.max_bytes = 100};

	(void)state;
	assert_int_equal(shares_take(&shares, &first, 40), 0);
	assert_int_equal(shares_take(&shares, &first, 21), -ENOSPC);
	assert_int_equal(shares.used_bytes, 40);
	assert_int_equal(shares_take(&shares, &first, 20), 0);
	assert_int_equal(shares.used_bytes, 60);
	assert_int_equal(shares_take(&shares, &first, 1), -ENOSPC);
	/* The next program of the same pid is another process. */
	assert_int_equal(shares_take(&shares, &first_again, 41), -ENOSPC);
	assert_int_equal(shares_take(&shares, &first_again, 20), 0);
	assert_int_equal(shares.used_bytes, 80);
	assert_int_equal(shares_take(&shares, &second, 21), -ENOSPC);
	assert_int_equal(shares_take(&shares, &second, 10), 0);
	assert_int_equal(shares.used_bytes, 90);
	assert_int_equal(shares_take(&shares, &second, 1), -ENOSPC);
	shares_release(&shares);
}

static void shares_take__all_at_once_leaves_nothing(void **state)
{
	struct shares shares = {.max_bytes = 100};

	(void)state;
	assert_int_equal(shares_take(&shares, &first, 101), -ENOSPC);
	assert_int_equal(shares.used_bytes, 0);
	assert_int_equal(shares_take(&shares, &first, 100), 0);
	assert_int_equal(shares_take(&shares, &second, 1), -ENOSPC);
	assert_false(shares_take_common(&shares, 1));
	assert_int_equal(shares.used_bytes, 100);
	shares_release(&shares);
}

/* Many processes of one user have no more than one; the next user has what is left. */
static void shares_take__users_excess_is_that_users_loss(void **state)
{
	struct shares shares = {.max_bytes = 1000};
	struct share_holder greedy = {.user = 1000}, other = {.id = {.tgid = 7}, .user = 1001};
	int err = 0;

	(void)state;
	for (greedy.id.tgid = 100; !err; greedy.id.tgid++)
		err = shares_take(&shares, &greedy, 10);
	assert_int_equal(err, -EDQUOT);
	assert_in_range(shares.used_bytes, 400, 510);
	greedy.id.tgid = 99;
	assert_int_equal(shares_take(&shares, &greedy, 10), -EDQUOT);
	assert_int_equal(shares_take(&shares, &other, 200), 0);
	/* Root is not bounded as a user. */
	for (uint32_t i = 0; i < 10; i++) {
		const struct share_holder root = {.id = {.tgid = 200 + i}};

		assert_int_equal(shares_take(&shares, &root, 20), 0);
	}
	/* What stays is counted again for the same user. */
	shares_reset(&shares);
	shares_recount(&shares, &greedy, 600);
	greedy.id.tgid = 98;
	assert_int_equal(shares_take(&shares, &greedy, 10), -EDQUOT);
	assert_int_equal(shares_take(&shares, &other, 10), 0);
	shares_release(&shares);
}

/* Two processes of a user together as one, to the byte. */
static void shares_take__user_takes_as_much_as_is_still_free(void **state)
{
	struct shares shares = {.max_bytes = 100};
	const struct share_holder one = {.id = {.tgid = 5}, .user = 1000},
				  two = {.id = {.tgid = 6}, .user = 1000};

	(void)state;
	assert_int_equal(shares_take(&shares, &one, 40), 0);
	assert_int_equal(shares_take(&shares, &two, 21), -EDQUOT);
	assert_int_equal(shares_take(&shares, &two, 20), 0);
	assert_int_equal(shares.used_bytes, 60);
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
	shares_recount(&shares, &first, 20);
	assert_int_equal(shares.used_bytes, 20);
	shares_recount(&shares, &first, 20);
	assert_int_equal(shares.used_bytes, 40);
	assert_int_equal(shares_take(&shares, &first, 21), -ENOSPC);
	assert_int_equal(shares_take(&shares, &first, 20), 0);
	shares_recount(&shares, &second, 140);
	assert_int_equal(shares.used_bytes, 200);
	/* More than the budget is used: nothing is free. */
	assert_int_equal(shares_take(&shares, &first_again, 1), -ENOSPC);
	assert_false(shares_take_common(&shares, 1));
	assert_int_equal(shares.used_bytes, 200);
	shares_release(&shares);
}

static void shares_is_greedy__above_a_quarter(void **state)
{
	struct shares shares = {.max_bytes = 100};

	(void)state;
	assert_false(shares_is_greedy(&shares, first.id));
	assert_int_equal(shares_take(&shares, &first, 25), 0);
	assert_false(shares_is_greedy(&shares, first.id));
	assert_int_equal(shares_take(&shares, &first, 1), 0);
	assert_true(shares_is_greedy(&shares, first.id));
	assert_false(shares_is_greedy(&shares, first_again.id));
	shares_recount(&shares, &first_again, 26);
	assert_true(shares_is_greedy(&shares, first_again.id));
	shares_release(&shares);
}

static void shares_reset__begins_at_nothing(void **state)
{
	struct shares shares = {.max_bytes = 100};

	(void)state;
	assert_int_equal(shares_take(&shares, &first, 30), 0);
	assert_int_equal(shares_take(&shares, &second, 30), 0);
	shares_reset(&shares);
	assert_int_equal(shares.used_bytes, 0);
	assert_int_equal(shares.max_bytes, 100);
	assert_false(shares_is_greedy(&shares, first.id));
	assert_int_equal(shares_take(&shares, &first, 100), 0);
	shares_release(&shares);
	assert_int_equal(shares.used_bytes, 0);
	assert_null(shares.process);
	assert_null(shares.user);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(shares_take__as_much_as_is_still_free),
		cmocka_unit_test(shares_take__all_at_once_leaves_nothing),
		cmocka_unit_test(shares_take__users_excess_is_that_users_loss),
		cmocka_unit_test(shares_take__user_takes_as_much_as_is_still_free),
		cmocka_unit_test(shares_take_common__only_the_whole_budget_bounds_it),
		cmocka_unit_test(shares_recount__has_no_bound),
		cmocka_unit_test(shares_is_greedy__above_a_quarter),
		cmocka_unit_test(shares_reset__begins_at_nothing),
	};

	return cmocka_run_group_tests_name("drain/shares", tests, NULL, NULL);
}
