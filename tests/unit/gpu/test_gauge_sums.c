/* SPDX-License-Identifier: BSD-2-Clause */
#include "gpu/gauge_sums.h"

#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct gauge_sums *sums;
static struct gauges_round round_;

static int setup(void **state)
{
	(void)state;
	sums = calloc(1, sizeof(*sums));
	memset(&round_, 0, sizeof(round_));
	return !sums;
}

static int teardown(void **state)
{
	(void)state;
	free(sums);
	return 0;
}

static struct gauges_device *add_device(uint32_t index, const char *uuid)
{
	struct gauges_round_device *device = &round_.device[round_.device_count++];

	device->index = index;
	snprintf(device->gpu.uuid, sizeof(device->gpu.uuid), "%s", uuid);
	return &device->gpu;
}

static void set(struct gauges_device *gpu, enum gpu_gauge gauge, uint64_t value)
{
	gpu->has |= 1ULL << gauge;
	gpu->value[gauge] = value;
}

static void add_process(uint32_t device, uint32_t pid, uint64_t bytes, uint32_t sm)
{
	round_.process[round_.process_count++] = (struct gauges_round_process){
		device, {.pid = pid, .memory_bytes = bytes, .sm = sm}};
}

static void sums__are_of_what_was_known(void **state)
{
	struct gauges_device *gpu = add_device(2, "GPU-2");
	const struct gauge_sum *power, *active;

	(void)state;
	for (uint64_t second = 0; second < 3; second++) {
		set(gpu, GPU_POWER, 10 * second);
		if (second == 1)
			set(gpu, GPU_SM_ACTIVE, 355);
		else
			gpu->has &= ~(1ULL << GPU_SM_ACTIVE);
		gauge_sums_add(sums, &round_);
	}
	assert_int_equal(sums->device[0].index, 2);
	assert_string_equal(sums->device[0].last.uuid, "GPU-2");
	assert_int_equal(sums->device[0].rounds, 3);
	power = &sums->device[0].gauge[GPU_POWER];
	assert_int_equal(power->sum, 30);
	assert_int_equal(power->count, 3);
	assert_int_equal(power->max, 20);
	/* A second without it does not make the mean smaller. */
	active = &sums->device[0].gauge[GPU_SM_ACTIVE];
	assert_int_equal(active->sum, 355);
	assert_int_equal(active->count, 1);
	assert_int_equal(sums->device[0].gauge[GPU_TENSOR_ACTIVE].count, 0);
	assert_int_equal(sums->device[0].reason_rounds, 0);
}

static void reasons__are_counted_in_the_readings_that_have_some(void **state)
{
	struct gauges_device *gpu = add_device(0, "");
	const struct gauge_sums_device *of = &sums->device[0];

	(void)state;
	gauge_sums_add(sums, &round_); /* not known in this one */
	gpu->has_reasons = 1;
	for (unsigned int second = 0; second < 4; second++) {
		gpu->reasons = second ? 0x4 : 0x4 | 1ULL << 40;
		gauge_sums_add(sums, &round_);
	}
	assert_int_equal(of->reason_rounds, 4);
	assert_int_equal(of->reason[GPU_REASON_SW_POWER], 4);
	assert_int_equal(of->reason[GPU_REASON_OTHER], 1);
	assert_int_equal(of->reason[GPU_REASON_IDLE], 0);
}

/* After a driver was loaded again another GPU may have the index. */
static void devices__are_told_apart_by_their_uuid(void **state)
{
	(void)state;
	add_device(0, "GPU-a");
	gauge_sums_add(sums, &round_);
	snprintf(round_.device[0].gpu.uuid, GPU_UUID_BYTES, "GPU-b");
	gauge_sums_add(sums, &round_);
	assert_int_equal(sums->device_count, 2);
	for (unsigned int i = 0; i < 2 * GAUGES_DEVICES_MAX; i++) {
		snprintf(round_.device[0].gpu.uuid, GPU_UUID_BYTES, "GPU-%u", i);
		gauge_sums_add(sums, &round_);
	}
	assert_int_equal(sums->device_count, GAUGES_DEVICES_MAX);
	gauge_sums_reset(sums);
	assert_int_equal(sums->device_count, 0);
}

static void processes__have_the_sums_of_their_own_seconds(void **state)
{
	const struct gauge_sums_process *of = sums->process;

	(void)state;
	add_device(0, "");
	add_process(0, 7, 100, 500);
	add_process(0, 8, GAUGES_UNKNOWN_BYTES, GAUGES_UNKNOWN_SM);
	gauge_sums_add(sums, &round_);
	round_.process_count = 0;
	gauge_sums_add(sums, &round_);
	add_process(0, 7, 300, 0);
	gauge_sums_add(sums, &round_);
	assert_int_equal(of[0].pid, 7);
	assert_int_equal(of[0].rounds, 2);
	assert_int_equal(of[0].memory_bytes.sum, 400);
	assert_int_equal(of[0].sm.sum, 500);
	assert_int_equal(of[0].sm.max, 500);
	assert_int_equal(of[1].pid, 8);
	assert_int_equal(of[1].memory_bytes.count + of[1].sm.count, 0);
}

static void device_of__is_known_where_it_is_one(void **state)
{
	(void)state;
	add_device(0, "");
	add_device(3, "");
	add_process(3, 7, 1, 1);
	add_process(0, 8, 1, 1);
	add_process(3, 8, 1, 1);
	gauge_sums_add(sums, &round_);
	assert_int_equal(gauge_sums_device_of(sums, 7), 3);
	assert_int_equal(gauge_sums_device_of(sums, 8), -EMFILE);
	assert_int_equal(gauge_sums_device_of(sums, 9), -ENOENT);
	/* It may be among those that found no room, too. */
	sums->left_out = 1;
	assert_int_equal(gauge_sums_device_of(sums, 7), -EMFILE);
	assert_int_equal(gauge_sums_device_of(sums, 9), -ENOENT);
}

/* One file of a long run sees more processes than there is room for. */
static void processes__that_ended_leave_their_room(void **state)
{
	(void)state;
	add_device(0, "");
	for (uint32_t second = 0; second < 4; second++) {
		round_.process_count = 0;
		add_process(0, 1, 1, 1);
		for (uint32_t i = 0; i < GAUGES_PROCESSES_MAX / 2; i++)
			add_process(0, 1000 * (second + 1) + i, 1, 1);
		gauge_sums_add(sums, &round_);
		assert_true(sums->process_count <= GAUGES_PROCESSES_MAX);
		assert_int_equal(gauge_sums_device_of(sums, 1000 * (second + 1)), 0);
	}
	assert_int_equal(sums->process[0].pid, 1);
	assert_int_equal(sums->process[0].rounds, 4);
	assert_int_equal(gauge_sums_device_of(sums, 1000), -ENOENT);
}

static void left_out__is_the_most_of_a_round(void **state)
{
	(void)state;
	round_.left_out = 5;
	gauge_sums_add(sums, &round_);
	round_.left_out = 3;
	gauge_sums_add(sums, &round_);
	assert_int_equal(sums->left_out, 5);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(sums__are_of_what_was_known),
		TEST(reasons__are_counted_in_the_readings_that_have_some),
		TEST(devices__are_told_apart_by_their_uuid),
		TEST(processes__have_the_sums_of_their_own_seconds),
		TEST(device_of__is_known_where_it_is_one),
		TEST(processes__that_ended_leave_their_room),
		TEST(left_out__is_the_most_of_a_round),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
