/* SPDX-License-Identifier: BSD-2-Clause */
#include "files/user_time.h"

#include <cmocka.h>

#include "base/clock.h"

#define NOW (1000 * NS_PER_SEC)

static void user_times__who_computes_too_much_waits(void **state)
{
	struct user_times times = {};

	(void)state;
	assert_true(user_times_allow(&times, 1000, NOW));
	user_times_add(&times, 1000, USER_TIME_BURST_NS - 1, NOW);
	assert_true(user_times_allow(&times, 1000, NOW));
	user_times_add(&times, 1000, 1 + NS_PER_SEC / USER_TIME_SHARE, NOW);
	assert_false(user_times_allow(&times, 1000, NOW));
	/* Others, and root. */
	assert_true(user_times_allow(&times, 1001, NOW));
	assert_true(user_times_allow(&times, 0, NOW));
	/* A second pays for a share of it. */
	assert_false(user_times_allow(&times, 1000, NOW + NS_PER_SEC));
	assert_true(user_times_allow(&times, 1000, NOW + NS_PER_SEC + USER_TIME_SHARE));
	/* All of it is paid, and no more. */
	assert_true(user_times_allow(&times, 1000, NOW + 1000 * NS_PER_SEC));
	user_times_add(&times, 1000, USER_TIME_BURST_NS, NOW + 1000 * NS_PER_SEC);
	assert_false(user_times_allow(&times, 1000, NOW + 1000 * NS_PER_SEC));
}

static void user_times__root_is_not_counted(void **state)
{
	struct user_times times = {};

	(void)state;
	user_times_add(&times, 0, 100 * USER_TIME_BURST_NS, NOW);
	assert_true(user_times_allow(&times, 0, NOW));
	assert_int_equal(times.user[0].owed_ns, 0);
}

static void user_times__each_user_has_what_that_user_used(void **state)
{
	struct user_times times = {};

	(void)state;
	for (unsigned int i = 0; i < 2; i++)
		for (uint32_t uid = 1000; uid < 1003; uid++) {
			assert_true(user_times_allow(&times, uid, NOW));
			user_times_add(&times, uid, USER_TIME_BURST_NS / 2, NOW);
		}
	for (uint32_t uid = 1000; uid < 1003; uid++)
		assert_false(user_times_allow(&times, uid, NOW));
}

static void user_times__many_users_do_not_hide_one(void **state)
{
	struct user_times times = {};

	(void)state;
	user_times_add(&times, 1000, USER_TIME_BURST_NS, NOW);
	for (uint32_t uid = 2000; uid < 2000 + 10 * USER_TIMES; uid++) {
		user_times_add(&times, uid, NS_PER_MS, NOW);
		assert_true(user_times_allow(&times, uid, NOW));
	}
	assert_false(user_times_allow(&times, 1000, NOW));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(user_times__who_computes_too_much_waits),
		cmocka_unit_test(user_times__root_is_not_counted),
		cmocka_unit_test(user_times__each_user_has_what_that_user_used),
		cmocka_unit_test(user_times__many_users_do_not_hide_one),
	};

	return cmocka_run_group_tests_name("files/user_time", tests, NULL, NULL);
}
