/* SPDX-License-Identifier: BSD-2-Clause */
#include "profile/gpu_gauges.h"

#include <cmocka.h>
#include <stddef.h>

static void names__are_found_again(void **state)
{
	(void)state;
	for (unsigned int i = 0; i < GPU_GAUGE_COUNT; i++)
		assert_int_equal(gpu_gauge_find(gpu_gauges[i].name), i);
	for (unsigned int i = 0; i < GPU_REASON_COUNT; i++)
		assert_int_equal(gpu_reason_find(gpu_reasons[i].name), i);
	assert_int_equal(gpu_gauge_find(""), GPU_GAUGE_COUNT);
	assert_int_equal(gpu_reason_find("power"), GPU_REASON_COUNT);
	assert_string_equal(gpu_gauges[GPU_POWER].unit, "0.1 W");
}

static void masks__have_each_bit_once(void **state)
{
	uint64_t all = 0;

	(void)state;
	for (unsigned int i = 0; i < GPU_REASON_COUNT; i++) {
		const uint64_t mask = gpu_reason_mask((enum gpu_reason)i);

		assert_int_equal(all & mask, 0);
		all |= mask;
	}
	assert_true(all == UINT64_MAX);
	assert_int_equal(gpu_reason_mask(GPU_REASON_SW_POWER), 4);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names__are_found_again),
		cmocka_unit_test(masks__have_each_bit_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
