/* SPDX-License-Identifier: BSD-2-Clause */
#include "collectors/series.h"

#include <stddef.h>

#include <cmocka.h>

#define ROOMS (PUSH_SERIES_MAX - 1)

/* Offers series with these hashes; returns how many are admitted. */
static uint32_t admit(struct push_known_series *known, uint64_t first, uint32_t count,
		      uint64_t user, uint64_t weight)
{
	uint32_t admitted = 0;

	for (uint64_t hash = first; hash < first + count; hash++)
		admitted += push_known_series_admit(known, hash, user, weight);
	return admitted;
}

static void push_known_series_admit__a_user_has_as_many_as_are_still_free(void **state)
{
	struct push_known_series known = {0};

	(void)state;
	assert_int_equal(admit(&known, 0, 1000, 11, 1), 249);
	assert_int_equal(admit(&known, 1000, 1000, 12, 1), 125);
	assert_int_equal(admit(&known, 2000, 1000, 13, 1), 62);
	/* Root has the rest, and what is known stays so. */
	assert_int_equal(admit(&known, 3000, 1000, PUSH_USER_ROOT, 1), ROOMS - 249 - 125 - 62);
	assert_int_equal(admit(&known, 0, 1000, 11, 1), 249);
	push_known_series_begin(&known, PUSH_SERIES_HOUR_MS);
	assert_int_equal(admit(&known, 5000, 1000, PUSH_USER_ROOT, 1), ROOMS);
}

static void push_known_series_admit__the_heavy_displace_the_lightest_of_who_has_more(void **state)
{
	struct push_known_series known = {0};

	(void)state;
	assert_int_equal(admit(&known, 0, 200, 11, 10), 200);
	assert_int_equal(admit(&known, 1000, 1000, PUSH_USER_ROOT, 20), ROOMS - 200);
	/* A new user: twice as heavy is not enough. */
	assert_int_equal(admit(&known, 3000, 1, 12, 21), 0);
	assert_int_equal(admit(&known, 3000, 1, 12, 22), 1);
	assert_int_equal(admit(&known, 4000, 60, 12, 1000), 60);
	/* Of them all were user 11's, which were lighter. */
	assert_int_equal(admit(&known, 1000, ROOMS - 200, PUSH_USER_ROOT, 0), ROOMS - 200);
	assert_int_equal(known.count, ROOMS);
}

/* Who makes heavy new names all the time has half of what may be displaced. */
static void push_known_series_admit__a_user_does_not_use_up_what_may_be_displaced(void **state)
{
	struct push_known_series known = {0};
	uint32_t admitted = 0;

	(void)state;
	assert_int_equal(admit(&known, 0, 1000, 11, 1), 249);
	for (uint32_t i = 0; i < 1000; i++)
		admitted += push_known_series_admit(&known, 5000 + i, 11, 10 + i);
	assert_int_equal(admitted, PUSH_SERIES_DISPLACED_MAX / 2);
	assert_int_equal(admit(&known, 10000, 1000, PUSH_USER_ROOT, 1), ROOMS - 249);
	assert_int_equal(admit(&known, 20000, 1000, PUSH_USER_ROOT, 1000000),
			 PUSH_SERIES_DISPLACED_MAX / 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(push_known_series_admit__a_user_has_as_many_as_are_still_free),
		cmocka_unit_test(
			push_known_series_admit__the_heavy_displace_the_lightest_of_who_has_more),
		cmocka_unit_test(
			push_known_series_admit__a_user_does_not_use_up_what_may_be_displaced),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
