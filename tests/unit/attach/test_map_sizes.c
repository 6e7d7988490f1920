/* SPDX-License-Identifier: BSD-2-Clause */
#include "attach/map_sizes.h"

#include <unistd.h>

#include <cmocka.h>

#include <pyprofd/limits.h>

#include "base/cleanup.h"
#include "base/clock.h"

#define MIB (1ULL << 20)
#define SHARD_BYTES ((uint64_t)PP_ROW_SHARD_ROWS * sizeof(uint32_t))

static struct map_sizes_options machine(uint32_t online, uint32_t possible)
{
	return (struct map_sizes_options){.cpu_count = possible,
					  .online_count = online,
					  .hz = 99,
					  .interval_ns = 10 * NS_PER_SEC,
					  .waits = true};
}

static bool is_pow2(uint32_t value)
{
	return value && !(value & (value - 1));
}

static const uint32_t cpu_counts[] = {1, 2, 3, 4, 5, 8, 64, 240, 512, 4096};

static void map_sizes__two_cpus_have_the_tables_that_were_measured(void **state)
{
	/* docs/design/tables.md. */
	const struct map_sizes_options options = machine(2, 2);
	struct map_sizes sizes;

	(void)state;
	map_sizes_compute(&options, &sizes);
	assert_int_equal(sizes.counts, 4096);
	assert_int_equal(sizes.waits, 8192);
	assert_int_equal(sizes.wakes, 8192);
	assert_int_equal(sizes.coarse, 1024);
	assert_int_equal(sizes.sent, 16384);
	assert_int_equal(sizes.codes, 16384);
	assert_int_equal(sizes.stacks_bytes, 1 << 20);
	assert_int_equal(sizes.timeline_bytes, 4 << 20);
	assert_int_equal(sizes.processes, 8192);
	assert_int_equal(sizes.threads, 16384);
	assert_int_equal(sizes.places, 2);
	assert_int_equal(sizes.map_chunks, 2048);
}

static void map_sizes__large_machine_has_larger_ones(void **state)
{
	const struct map_sizes_options options = machine(64, 64);
	struct map_sizes sizes;

	(void)state;
	map_sizes_compute(&options, &sizes);
	assert_int_equal(sizes.counts, 32768); /* 99 x 64 x 10 / 2 = 31,680 samples */
	assert_int_equal(sizes.waits, 1 << 18);
	assert_int_equal(sizes.wakes, 1 << 17);
	assert_int_equal(sizes.coarse, 1 << 14);
	assert_int_equal(sizes.sent, 380160); /* 99 x 64 x 10 x 6 */
	assert_int_equal(sizes.codes, 1 << 18);
	assert_int_equal(sizes.stacks_bytes, 16 << 20);
	assert_int_equal(sizes.timeline_bytes, 32 << 20);
	assert_int_equal(sizes.processes, 65536);
	assert_int_equal(sizes.threads, 131072);
	assert_int_equal(sizes.map_chunks, 2048 + 60 * 1024);
}

/* What the kernel side or the kernel counts on, whatever the machine is and is asked for. */
static void map_sizes__bounds_hold_on_every_machine(void **state)
{
	static const uint32_t rates[] = {1, 99, 1999, 9999};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cpu_counts); i++)
		for (size_t k = 0; k < ARRAY_SIZE(rates); k++) {
			struct map_sizes_options options = machine(cpu_counts[i], cpu_counts[i]);
			const uint64_t samples = 10ULL * rates[k] * cpu_counts[i];
			struct map_sizes sizes;

			options.hz = rates[k];
			map_sizes_compute(&options, &sizes);
			assert_true(is_pow2(sizes.threads));
			assert_true(is_pow2(sizes.stacks_bytes));
			assert_true(is_pow2(sizes.timeline_bytes));
			assert_int_equal(sizes.stacks_bytes % (uint32_t)sysconf(_SC_PAGESIZE), 0);
			assert_true(sizes.stacks_bytes <= 16 << 20);
			assert_true(sizes.timeline_bytes <= 32 << 20);
			assert_true(sizes.counts >= samples / 2 || sizes.counts == 1 << 19);
			assert_true(sizes.counts <= 1 << 19);
			assert_in_range(sizes.sent, 16384, 1 << 20);
			assert_in_range(sizes.waits, 8192, 1 << 18);
			assert_in_range(sizes.processes, 8192, 1 << 17);
			assert_in_range(sizes.threads, 16384, 131072);
			assert_in_range(sizes.map_chunks, 2048, 1 << 17);
		}
}

/* A longer window of the highest rate on many CPUs does not wrap around. */
static void map_sizes__samples_of_a_long_window_do_not_wrap(void **state)
{
	struct map_sizes_options options = machine(4096, 4096);
	struct map_sizes sizes;

	(void)state;
	options.hz = 9999;
	options.interval_ns = 3600 * NS_PER_SEC;
	map_sizes_compute(&options, &sizes);
	assert_int_equal(sizes.counts, 1 << 19);
	assert_int_equal(sizes.sent, 1 << 20);
}

static void map_sizes__cpus_that_may_come_have_places_up_to_the_possible_ones(void **state)
{
	static const struct {
		uint32_t online, possible, places;
	} row[] = {{2, 240, 6}, {2, 4, 4}, {1, 1, 1}, {64, 240, 80}, {64, 70, 70}};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(row); i++) {
		const struct map_sizes_options options = machine(row[i].online, row[i].possible);
		struct map_sizes sizes;

		map_sizes_compute(&options, &sizes);
		assert_int_equal(sizes.places, row[i].places);
	}
}

static void map_sizes__without_waits_threads_have_no_room(void **state)
{
	struct map_sizes_options options = machine(64, 64);
	struct map_sizes sizes;

	(void)state;
	options.waits = false;
	map_sizes_compute(&options, &sizes);
	assert_int_equal(sizes.threads, 1);
	assert_int_equal(sizes.waits, 1);
	assert_int_equal(sizes.counts, 32768);
}

static void map_sizes_row_shards__take_what_the_other_maps_leave(void **state)
{
	const struct map_sizes_options small = machine(2, 2), large = machine(64, 64);

	(void)state;
	assert_int_equal(map_sizes_row_shards(&small, 40 * MIB - 9 * SHARD_BYTES), 9);
	assert_int_equal(map_sizes_row_shards(&small, 40 * MIB - 9 * SHARD_BYTES + 1), 8);
	/* 60 CPUs more have 600 MiB more. */
	assert_int_equal(map_sizes_row_shards(&large, 640 * MIB - 100 * SHARD_BYTES), 100);
}

static void map_sizes_row_shards__are_between_bounds(void **state)
{
	const struct map_sizes_options small = machine(2, 2), eight = machine(8, 8),
				       large = machine(512, 512);

	(void)state;
	assert_int_equal(map_sizes_row_shards(&small, 100 * MIB), 4);
	assert_int_equal(map_sizes_row_shards(&small, 0), 12);
	assert_int_equal(map_sizes_row_shards(&eight, 0), 24);
	assert_int_equal(map_sizes_row_shards(&large, 0), PP_MAX_ROW_SHARDS);
}

static void map_sizes_row_shards__are_half_of_a_budget(void **state)
{
	struct map_sizes_options options = machine(2, 2);

	(void)state;
	options.budget_bytes = 20 * SHARD_BYTES;
	assert_int_equal(map_sizes_row_shards(&options, 100 * MIB), 10);
	options.budget_bytes = 1;
	assert_int_equal(map_sizes_row_shards(&options, 0), 2);
	options.budget_bytes = UINT64_MAX;
	assert_int_equal(map_sizes_row_shards(&options, 0), PP_MAX_ROW_SHARDS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(map_sizes__two_cpus_have_the_tables_that_were_measured),
		cmocka_unit_test(map_sizes__large_machine_has_larger_ones),
		cmocka_unit_test(map_sizes__bounds_hold_on_every_machine),
		cmocka_unit_test(map_sizes__samples_of_a_long_window_do_not_wrap),
		cmocka_unit_test(map_sizes__cpus_that_may_come_have_places_up_to_the_possible_ones),
		cmocka_unit_test(map_sizes__without_waits_threads_have_no_room),
		cmocka_unit_test(map_sizes_row_shards__take_what_the_other_maps_leave),
		cmocka_unit_test(map_sizes_row_shards__are_between_bounds),
		cmocka_unit_test(map_sizes_row_shards__are_half_of_a_budget),
	};

	return cmocka_run_group_tests_name("attach/map_sizes", tests, NULL, NULL);
}
