/* SPDX-License-Identifier: BSD-2-Clause */
/* sources: query/gpu_usage.c profile/gauge_line.c base/index_table.c */
#include "query/gpu_usage.h"

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"

static struct gpu_usage usage;

static int teardown(void **state)
{
	(void)state;
	gpu_usage_release(&usage);
	return 0;
}

static void add_line(const struct gauge_line *line)
{
	char text[GAUGE_LINE_CHARS];

	gauge_line_format(line, text);
	assert_int_equal(gpu_usage_add(&usage, text), 0);
}

static struct gauge_line line_of(uint64_t device, uint64_t seconds, uint64_t mean)
{
	struct gauge_line line = {.device = device, .seconds = seconds, .has_reasons = true};

	snprintf(line.uuid, sizeof(line.uuid), "GPU-%u", (unsigned int)device);
	gauge_line_set_name(&line, "A GPU");
	line.gauge[GPU_UTILIZATION] = (struct gpu_figures){true, mean, mean - 10, mean + 10};
	return line;
}

static void usage__means_are_weighted_by_seconds(void **state)
{
	struct gauge_line line = line_of(1, 10, 300);
	const struct gpu_usage_device *device;

	(void)state;
	line.reason_share[GPU_REASON_SW_POWER] = GPU_SHARE_MAX;
	add_line(&line);
	line = line_of(1, 30, 700);
	line.gauge[GPU_SM_ACTIVE] = (struct gpu_figures){true, 50, 50, 50};
	add_line(&line);
	line = line_of(0, 10, 100);
	line.has_reasons = false;
	add_line(&line);
	gpu_usage_sort(&usage);
	assert_int_equal(usage.device_count, 2);
	device = &usage.device[1];
	assert_string_equal(device->uuid, "GPU-1");
	assert_string_equal(device->name, "A GPU");
	assert_true(gpu_usage_mean(&device->gauge[GPU_UTILIZATION]) == 600);
	assert_int_equal(device->gauge[GPU_UTILIZATION].min, 290);
	assert_int_equal(device->gauge[GPU_UTILIZATION].max, 710);
	/* By the seconds in which it was known. */
	assert_true(gpu_usage_mean(&device->gauge[GPU_SM_ACTIVE]) == 50);
	assert_true(device->gauge[GPU_POWER].seconds <= 0);
	assert_true(device->reason[GPU_REASON_SW_POWER] == 10 && device->reason_seconds == 40);
	assert_true(usage.device[0].reason_seconds <= 0);
}

static void usage__processes_are_told_apart_by_gpu_and_name(void **state)
{
	static const char *const comments[] = {
		"gpu pid=7 comm=a device=0 seconds=10 memory=100 sm=50.0",
		"gpu pid=7 comm=a device=1 seconds=10 memory=900 sm=absent",
		"gpu pid=7 comm=a device=0 seconds=30 memory=500 sm=absent",
		"gpu pid=7 comm=b device=0 seconds=30 memory=500 sm=absent",
		"gpu others=3 memory=500 sm=absent",
		"gpu nonsense",
		"memory pid=1",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(comments); i++)
		assert_int_equal(gpu_usage_add(&usage, comments[i]), 0);
	gpu_usage_sort(&usage);
	assert_int_equal(usage.process_count, 3);
	assert_int_equal(usage.process[0].device, 1);
	assert_true(gpu_usage_mean(&usage.process[2].memory_bytes) == 400);
	assert_true(gpu_usage_mean(&usage.process[2].sm) == 500);
	assert_true(usage.has_others);
	assert_int_equal(usage.device_count, 0);
}

static void usage__of_a_filter_only_its_processes(void **state)
{
	struct select select = {.pid_count = 1, .pid = {8}};

	(void)state;
	usage.select = &select;
	add_line(&(struct gauge_line){.device = 1, .seconds = 1});
	assert_int_equal(
		gpu_usage_add(&usage, "gpu pid=7 comm=a device=0 seconds=1 memory=1 sm=1.0"), 0);
	assert_int_equal(
		gpu_usage_add(&usage, "gpu pid=8 comm=a device=0 seconds=1 memory=1 sm=1.0"), 0);
	assert_int_equal(gpu_usage_add(&usage, "gpu others=3 memory=500 sm=absent"), 0);
	assert_int_equal(usage.device_count, 1);
	assert_int_equal(usage.process_count, 1);
	assert_int_equal(usage.process[0].pid, 8);
	assert_false(usage.has_others);
}

/* A hostile profile. */
static void usage__has_a_bound(void **state)
{
	char text[128];

	(void)state;
	for (uint64_t i = 0; i < GPU_USAGE_DEVICES_MAX + 3; i++)
		add_line(&(struct gauge_line){.device = i, .seconds = UINT64_MAX});
	for (unsigned int i = 1; i < GPU_USAGE_PROCESSES_MAX + 3; i++) {
		snprintf(text, sizeof(text), "gpu pid=%u comm=a device=0 seconds=1 memory=1 sm=1.0",
			 i);
		assert_int_equal(gpu_usage_add(&usage, text), 0);
	}
	assert_int_equal(usage.device_count, GPU_USAGE_DEVICES_MAX);
	assert_int_equal(usage.process_count, GPU_USAGE_PROCESSES_MAX);
	assert_int_equal(usage.left_out, 3 + 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(usage__means_are_weighted_by_seconds, teardown),
		cmocka_unit_test_teardown(usage__processes_are_told_apart_by_gpu_and_name,
					  teardown),
		cmocka_unit_test_teardown(usage__of_a_filter_only_its_processes, teardown),
		cmocka_unit_test_teardown(usage__has_a_bound, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
