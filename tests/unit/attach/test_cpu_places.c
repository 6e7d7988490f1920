/* SPDX-License-Identifier: BSD-2-Clause */
#include "attach/map_sizes.h"

#include <cmocka.h>
#include <errno.h>

static void assign__cpus_with_holes_get_places_without(void **state)
{
	const uint32_t online[] = {0, 3, 239};
	uint64_t place[240] = {0};

	(void)state;
	assert_int_equal(cpu_places_assign(place, 240, 4, online, 3), 0);
	assert_int_equal(place[0], 1);
	assert_int_equal(place[3], 2);
	assert_int_equal(place[239], 3);
	assert_int_equal(place[1], 0);
}

static void assign__who_has_a_place_keeps_it(void **state)
{
	const uint32_t few[] = {0, 3}, more[] = {0, 1, 2, 3};
	uint64_t place[8] = {0};

	(void)state;
	assert_int_equal(cpu_places_assign(place, 8, 4, few, 2), 0);
	assert_int_equal(cpu_places_assign(place, 8, 4, more, 4), 0);
	assert_int_equal(place[0], 1);
	assert_int_equal(place[3], 2);
	assert_int_equal(place[1], 3);
	assert_int_equal(place[2], 4);
}

/* Walks on a CPU that goes and comes back find their memory as it was, unless another one needed
 * it. */
static void assign__a_cpu_that_went_gives_its_place_when_no_other_is_free(void **state)
{
	const uint32_t first[] = {0, 1}, gone[] = {0}, other[] = {0, 2}, third[] = {0, 2, 3},
		       all[] = {0, 1, 2, 3};
	uint64_t place[8] = {0};

	(void)state;
	assert_int_equal(cpu_places_assign(place, 8, 3, first, 2), 0);
	assert_int_equal(cpu_places_assign(place, 8, 3, gone, 1), 0);
	assert_int_equal(place[1], 2);
	assert_int_equal(cpu_places_assign(place, 8, 3, other, 2), 0);
	assert_int_equal(place[1], 2);
	assert_int_equal(place[2], 3);
	assert_int_equal(cpu_places_assign(place, 8, 3, third, 3), 0);
	assert_int_equal(place[1], 0);
	assert_int_equal(place[3], 2);
	assert_int_equal(cpu_places_assign(place, 8, 3, all, 4), -ENOSPC);
	assert_int_equal(place[0], 1);
	assert_int_equal(place[1], 0);
	assert_int_equal(place[2], 3);
}

static void assign__cpus_beyond_the_possible_ones_are_left_out(void **state)
{
	const uint32_t online[] = {0, 2, 9};
	uint64_t place[2] = {0};

	(void)state;
	assert_int_equal(cpu_places_assign(place, 2, 2, online, 3), 0);
	assert_int_equal(place[0], 1);
	assert_int_equal(place[1], 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(assign__cpus_with_holes_get_places_without),
		cmocka_unit_test(assign__who_has_a_place_keeps_it),
		cmocka_unit_test(assign__a_cpu_that_went_gives_its_place_when_no_other_is_free),
		cmocka_unit_test(assign__cpus_beyond_the_possible_ones_are_left_out),
	};

	return cmocka_run_group_tests_name("attach/cpu_places", tests, NULL, NULL);
}
