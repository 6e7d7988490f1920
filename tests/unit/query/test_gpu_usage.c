/* SPDX-License-Identifier: BSD-2-Clause */
#include "query/machine.h"

#include <cmocka.h>
#include <string.h>

#include "gpu_rows.h"

static struct gpu_usage usage;

static int setup(void **state)
{
	(void)state;
	gpu_rows_open();
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	gpu_usage_release(&usage);
	gpu_rows_close();
	return 0;
}

static void usage__of_gpus_is_by_their_numbers(void **state)
{
	const struct gpu_usage_device *gpu;

	(void)state;
	GPU_ROW(.device = 10, .name = "A GPU", .gauge = "utilization", .sum = 6000, .readings = 10,
		.max = 710);
	GPU_ROW(.device = 10, .name = "A GPU", .gauge = "clock_event", .readings = 40);
	GPU_ROW(.device = 10, .name = "A GPU", .gauge = "clock_event", .reason = "sw_power_cap",
		.sum = 10 * GPU_SHARE_MAX);
	GPU_ROW(.device = 10, .name = "A GPU", .gauge = "later", .sum = 1, .readings = 1);
	GPU_ROW(.device = 9, .gauge = "power", .sum = -7, .readings = 1);
	assert_int_equal(gpu_usage_fill(&usage, profile, NULL), 0);
	assert_int_equal(usage.device_count, 2);
	assert_int_equal(usage.device[0].device, 9);
	assert_true(gpu_usage_mean(&usage.device[0].gauge[GPU_POWER]) <= 0);
	assert_int_equal(usage.device[0].reason_readings, 0);
	gpu = &usage.device[1];
	assert_string_equal(gpu->uuid, "GPU-10");
	assert_string_equal(gpu->name, "A GPU");
	assert_true(gpu_usage_mean(&gpu->gauge[GPU_UTILIZATION]) == 600);
	assert_int_equal(gpu->gauge[GPU_UTILIZATION].max, 710);
	assert_int_equal(gpu->gauge[GPU_POWER].readings, 0);
	assert_int_equal(gpu->reason_readings, 40);
	assert_true(gpu->reason[GPU_REASON_SW_POWER] == 10);
}

static void usage__processes_are_told_apart_by_gpu_and_name(void **state)
{
	(void)state;
	GPU_ROW(.pid = 7, .comm = "a", .gauge = "process_memory", .sum = 4000, .readings = 10);
	GPU_ROW(.pid = 7, .comm = "a", .gauge = "process_sm", .sum = 500, .readings = 1);
	GPU_ROW(.pid = 7, .comm = "a", .device = 1, .gauge = "process_memory", .sum = 900,
		.readings = 1);
	GPU_ROW(.pid = 7, .comm = "b", .gauge = "processes", .sum = 1, .readings = 1);
	GPU_ROW(.comm = RECORD_OTHERS, .gauge = "process_memory", .sum = 500, .readings = 1);
	assert_int_equal(gpu_usage_fill(&usage, profile, NULL), 0);
	assert_int_equal(usage.process_count, 3);
	assert_int_equal(usage.process[0].device, 1);
	assert_true(gpu_usage_mean(&usage.process[1].memory_bytes) == 400);
	assert_true(gpu_usage_mean(&usage.process[1].sm) == 500);
	assert_string_equal(usage.process[2].comm, "b");
	assert_int_equal(usage.process[2].memory_bytes.readings, 0);
	assert_true(usage.has_others);
	assert_int_equal(usage.device_count, 0);
}

static void usage__of_a_filter_only_its_processes(void **state)
{
	struct select select = {.pid_count = 1, .pid = {8}}, own = select;
	const struct input_options options = gpu_usage_input(&own);

	(void)state;
	assert_int_equal(own.pid_count, 0);
	assert_string_equal(options.kind, "gpu");
	GPU_ROW(.device = 1, .gauge = "power", .sum = 1, .readings = 1);
	GPU_ROW(.pid = 7, .comm = "a", .gauge = "process_memory", .sum = 1, .readings = 1);
	GPU_ROW(.pid = 8, .comm = "a", .gauge = "process_memory", .sum = 1, .readings = 1);
	GPU_ROW(.comm = RECORD_OTHERS, .gauge = "process_memory", .sum = 500, .readings = 1);
	assert_int_equal(gpu_usage_fill(&usage, profile, &select), 0);
	assert_int_equal(usage.device_count, 1);
	assert_int_equal(usage.process_count, 1);
	assert_int_equal(usage.process[0].pid, 8);
	assert_false(usage.has_others);
}

/* A hostile profile. */
static void usage__has_a_bound(void **state)
{
	(void)state;
	for (unsigned int i = 0; i < GPU_USAGE_DEVICES_MAX + 3; i++) {
		GPU_ROW(.device = i, .gauge = "power", .sum = INT64_MAX, .readings = INT64_MAX);
		GPU_ROW(.device = i, .gauge = "sm_clock", .sum = 1, .readings = INT64_MIN);
	}
	assert_int_equal(gpu_usage_fill(&usage, profile, NULL), 0);
	assert_int_equal(usage.device_count, GPU_USAGE_DEVICES_MAX);
	assert_int_equal(usage.left_out, 3);
	assert_int_equal(usage.device[GPU_USAGE_DEVICES_MAX - 1].gauge[GPU_POWER].readings,
			 INT64_MAX);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(usage__of_gpus_is_by_their_numbers),
		TEST(usage__processes_are_told_apart_by_gpu_and_name),
		TEST(usage__of_a_filter_only_its_processes),
		TEST(usage__has_a_bound),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
