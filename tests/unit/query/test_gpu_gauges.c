/* SPDX-License-Identifier: BSD-2-Clause */
/* sources: query/gpu_gauges.c */
#include "query/gpu_gauges.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>

#include <cmocka.h>

static bool is(double value, double expected)
{
	return fabs(value - expected) < 1e-9;
}

static void add__windows_count_by_their_seconds(void **state)
{
	struct gpu_gauges gauges = {0};

	(void)state;
	gpu_gauges_add(&gauges, "gpu device=3 uuid=GPU-4 seconds=10 utilization=90.0,20.0,97.0 "
				"sm_active=absent sm_occupancy=20.0 name=NVIDIA sm_active=50.0");
	gpu_gauges_add(&gauges, "gpu device=3 uuid=GPU-4 seconds=30 utilization=50.0 "
				"sm_active=absent name=x");
	assert_int_equal(gauges.count, 1);
	assert_int_equal(gauges.device[0].device, 3);
	assert_true(is(gpu_gauges_mean(&gauges.device[0], GPU_GAUGES_UTILIZATION), 0.6));
	assert_true(isnan(gpu_gauges_mean(&gauges.device[0], GPU_GAUGES_ACTIVE)));
	assert_true(is(gpu_gauges_mean(&gauges.device[0], GPU_GAUGES_OCCUPANCY), 0.2));
}

static void add__other_comments_and_nonsense_are_ignored(void **state)
{
	static const char *const texts[] = {
		"gpu pid=12 comm=python3 device=0 seconds=10 utilization=50.0",
		"gpu others=44 seconds=1",
		"gpu device=x seconds=10 utilization=50.0",
		"gpu device=1",
		"gpu device=1 seconds=0 utilization=50.0",
		"gpu device=1 seconds=nan utilization=50.0",
		"gpu device=1 seconds=1e300 utilization=50.0",
		"gpu device=1seconds=10 utilization=50.0",
		"",
	};
	struct gpu_gauges gauges = {0};

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		gpu_gauges_add(&gauges, texts[i]);
	assert_int_equal(gauges.count, 0);
	gpu_gauges_add(&gauges, "gpu device=1 seconds=1 utilization=100.5 sm_active=-1 "
				"sm_occupancy=inf");
	for (unsigned int i = 0; i < GPU_GAUGES; i++)
		assert_true(isnan(gpu_gauges_mean(&gauges.device[0], i)));
}

static void add__no_more_gpus_than_there_is_room_for(void **state)
{
	struct gpu_gauges gauges = {0};
	char text[80];

	(void)state;
	for (unsigned int i = 0; i < 2 * GPU_GAUGES_DEVICES_MAX; i++) {
		snprintf(text, sizeof(text), "gpu device=%u seconds=1 utilization=5.0", i);
		gpu_gauges_add(&gauges, text);
	}
	assert_int_equal(gauges.count, GPU_GAUGES_DEVICES_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(add__windows_count_by_their_seconds),
		cmocka_unit_test(add__other_comments_and_nonsense_are_ignored),
		cmocka_unit_test(add__no_more_gpus_than_there_is_room_for),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
