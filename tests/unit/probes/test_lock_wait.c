/* SPDX-License-Identifier: BSD-2-Clause */
#include "probes/lock_wait.h"

#include <cmocka.h>

#include "attach/mapping_locks.h"
#include "base/clock.h"

static unsigned int looks_left; /* at which somebody keeps a lock */
uint32_t mapping_locks_holder(int link)
{
	assert_int_equal(link, 5);
	if (!looks_left)
		return 0;
	looks_left--;
	return 4711;
}

static void tell__says_once_who_has_kept_a_lock_for_a_second(void **state)
{
	struct lock_wait wait = {};
	uint32_t holder = 0;

	(void)state;
	lock_wait_note(&wait, 4711, NS_PER_SEC);
	assert_false(lock_wait_tell(&wait, 2 * NS_PER_SEC, &holder));
	lock_wait_note(&wait, 4711, 2 * NS_PER_SEC);
	assert_true(lock_wait_tell(&wait, 2 * NS_PER_SEC + 1, &holder));
	assert_int_equal(holder, 4711);
	assert_false(lock_wait_tell(&wait, 9 * NS_PER_SEC, &holder));
}

static void tell__says_nothing_of_who_has_let_go(void **state)
{
	struct lock_wait wait = {};
	uint32_t holder;

	(void)state;
	lock_wait_note(&wait, 4711, NS_PER_SEC);
	lock_wait_note(&wait, 0, 2 * NS_PER_SEC);
	assert_false(lock_wait_tell(&wait, 9 * NS_PER_SEC, &holder));
	lock_wait_note(&wait, 4711, 9 * NS_PER_SEC);
	assert_false(lock_wait_tell(&wait, 10 * NS_PER_SEC, &holder));
}

static void begin__waits_until_a_lock_is_let_go(void **state)
{
	(void)state;
	looks_left = 2;
	assert_int_equal(lock_wait_begin(5), 0);
	assert_int_equal(looks_left, 0);
}

static void begin__ends_beside_a_lock_that_is_kept(void **state)
{
	(void)state;
	looks_left = 1000;
	assert_int_equal(lock_wait_begin(5), 4711);
	assert_in_range(looks_left, 900, 999);
	looks_left = 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(tell__says_once_who_has_kept_a_lock_for_a_second),
		cmocka_unit_test(tell__says_nothing_of_who_has_let_go),
		cmocka_unit_test(begin__waits_until_a_lock_is_let_go),
		cmocka_unit_test(begin__ends_beside_a_lock_that_is_kept),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
