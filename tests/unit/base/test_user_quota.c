/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/user_quota.h"

#include <cmocka.h>
#include <errno.h>

static void take__user_may_hold_as_much_as_is_left(void **state)
{
	struct user_quota quota = {.total = 100};

	(void)state;
	assert_int_equal(user_quota_take(&quota, 1000, 51), -EDQUOT);
	assert_int_equal(user_quota_take(&quota, 1000, 50), 0);
	assert_int_equal(user_quota_take(&quota, 1000, 1), -EDQUOT);
	assert_int_equal(user_quota_take(&quota, 1001, 25), 0);
	assert_int_equal(user_quota_take(&quota, 1001, 1), -EDQUOT);
	assert_int_equal(user_quota_held(&quota, 1000), 50);
	assert_int_equal(quota.used, 75);
	assert_int_equal(quota.refused, 3);
	/* What is given back is there for all. */
	user_quota_give(&quota, 1000, 50);
	assert_int_equal(quota.users, 1);
	assert_int_equal(user_quota_take(&quota, 1001, 25), 0);
	user_quota_release(&quota);
}

static void take__root_is_bounded_by_the_table(void **state)
{
	struct user_quota quota = {.total = 100};

	(void)state;
	assert_int_equal(user_quota_take(&quota, 0, 90), 0);
	assert_int_equal(user_quota_take(&quota, 0, 11), -ENOSPC);
	assert_int_equal(user_quota_take(&quota, 0, UINT64_MAX), -ENOSPC);
	assert_int_equal(user_quota_take(&quota, 1000, 5), 0);
	assert_int_equal(user_quota_take(&quota, 0, 5), 0);
	assert_int_equal(user_quota_take(&quota, 0, 1), -ENOSPC);
	user_quota_release(&quota);
}

static void greedy__is_who_holds_more_than_an_equal_share(void **state)
{
	struct user_quota quota = {.total = 90};

	(void)state;
	assert_false(user_quota_has_greedy(&quota));
	assert_false(user_quota_is_greedy(&quota, 1000));
	assert_int_equal(user_quota_note(&quota, 1000, 45), 0);
	assert_false(user_quota_is_greedy(&quota, 1000));
	assert_int_equal(user_quota_note(&quota, 1001, 10), 0);
	assert_true(user_quota_is_greedy(&quota, 1000));
	assert_false(user_quota_is_greedy(&quota, 1001));
	assert_true(user_quota_has_greedy(&quota));
	user_quota_give(&quota, 1000, 15);
	assert_false(user_quota_has_greedy(&quota));
	user_quota_release(&quota);
}

static void tell__names_each_refused_user_once(void **state)
{
	struct user_quota quota = {.total = 10};
	uint32_t uid = 0;

	(void)state;
	assert_false(user_quota_tell(&quota, &uid));
	assert_int_equal(user_quota_take(&quota, 1000, 4), 0);
	assert_false(user_quota_tell(&quota, &uid));
	assert_int_equal(user_quota_take(&quota, 1000, 4), -EDQUOT);
	user_quota_give(&quota, 1000, 4);
	assert_true(user_quota_tell(&quota, &uid));
	assert_int_equal(uid, 1000);
	assert_int_equal(user_quota_take(&quota, 1000, 11), -EDQUOT);
	assert_false(user_quota_tell(&quota, &uid));
	user_quota_refuse(&quota, 1001);
	assert_true(user_quota_tell(&quota, &uid));
	assert_int_equal(uid, 1001);
	user_quota_release(&quota);
}

static void give_each__takes_from_all_what_they_have(void **state)
{
	struct user_quota quota = {.total = 10};

	(void)state;
	assert_int_equal(user_quota_note(&quota, 0, 3), 0);
	assert_int_equal(user_quota_note(&quota, 1000, 8), 0);
	user_quota_give_each(&quota, 5);
	assert_int_equal(user_quota_held(&quota, 0), 0);
	assert_int_equal(user_quota_held(&quota, 1000), 3);
	assert_int_equal(quota.users, 1);
	user_quota_give_all(&quota);
	assert_int_equal(quota.used, 0);
	user_quota_release(&quota);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(take__user_may_hold_as_much_as_is_left),
		cmocka_unit_test(take__root_is_bounded_by_the_table),
		cmocka_unit_test(greedy__is_who_holds_more_than_an_equal_share),
		cmocka_unit_test(give_each__takes_from_all_what_they_have),
		cmocka_unit_test(tell__names_each_refused_user_once),
	};

	return cmocka_run_group_tests_name("base/user_quota", tests, NULL, NULL);
}
