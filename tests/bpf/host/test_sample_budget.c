/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* How many samples are walked, which are weighted, swallowed or unseen, and the time that each
 * takes. */
#include "sample.h"

static struct pp_count samples_at_1000_hz(uint32_t count, uint64_t ns_a_reading)
{
	struct pp_count counted = {};

	begin();
	sampled.sample_period = 1000000;
	host->ns_a_reading = ns_a_reading;
	for (uint32_t i = 0; i < count; i++) {
		host->now_ns += sampled.sample_period;
		sample_now();
		host_drop_records();
	}
	the_key(0, &counted);
	return counted;
}

static void sample__all_are_taken_within_the_budget(void **state)
{
	const struct pp_count counted = samples_at_1000_hz(1000, 10000);

	(void)state;
	assert_int_equal(counted.samples, 1000);
	assert_int_equal(counted.weight, 1000 * 1000000ULL);
	assert_int_equal(host->losses[PP_LOSS_SAMPLES_WEIGHTED], 0);
}

/* A fifth of a millisecond or more each, of which a hundredth is paid. */
static void sample__beyond_the_budget_stand_for_others(void **state)
{
	const uint32_t due = 20000;
	const struct pp_count counted = samples_at_1000_hz(due, 200000);

	(void)state;
	assert_true(counted.samples < due / 4);
	assert_true(counted.samples > due / 100);
	assert_true(host->losses[PP_LOSS_SAMPLES_WEIGHTED] > counted.samples / 2);
	/* One in 16 or more: a standard deviation of at most 3 %. */
	assert_true(counted.weight > due * 1000000ULL * 88 / 100);
	assert_true(counted.weight < due * 1000000ULL * 112 / 100);
}

static uint64_t runs_of(enum pp_program program)
{
	uint64_t runs = 0;

	for (uint32_t bucket = 0; bucket < PP_TIME_BUCKETS; bucket++)
		runs += host->times[program].count[bucket];
	return runs;
}

#define GRID_NS 100000

/* An event that comes `late_ns` after the point `number` of the grid. */
static void sample_at(uint64_t number, uint64_t late_ns)
{
	host->now_ns = 5000000000 + number * GRID_NS + late_ns;
	sample_now();
	host_drop_records();
}

static struct pp_count counted_at_all(void)
{
	struct pp_count count = {};

	the_key(0, &count);
	return count;
}

static void begin_grid(void)
{
	begin();
	host->timer = (struct pp_sample_timer){.started_ns = 1, .period_ns = GRID_NS};
	sampled.sample_period = GRID_NS;
	sample_at(1, 1000);
}

static void swallowed__periods_are_the_next_samples(void **state)
{
	(void)state;
	begin_grid();
	host->ns_a_reading = 250000; /* a walk of 0.25 ms: from the first reading to the last */
	sample_at(2, 0);
	host->ns_a_reading = 0;
	/* Due at 3 and 4, while it was walked. */
	assert_in_range(host->sampling.ended_ns - host->sampling.due_ns, 200000, 290000);
	sample_at(5, 500);
	sample_at(6, 0);
	assert_int_equal(counted_at_all().samples, 4);
	assert_int_equal(counted_at_all().weight, 6 * GRID_NS);
	assert_int_equal(host->losses[PP_LOSS_SAMPLES_SWALLOWED], 0);
	assert_int_equal(host->losses[PP_LOSS_SAMPLES_UNSEEN], 0);
}

static void swallowed__periods_of_nobody_are_counted(void **state)
{
	(void)state;
	begin_grid();
	host->ns_a_reading = 250000;
	sample_at(2, 0);
	host->ns_a_reading = 0;
	host->task.pid = 75;
	sample_at(5, 0);
	assert_int_equal(host->losses[PP_LOSS_SAMPLES_SWALLOWED], 2);
}

static void unseen__samples_are_counted_and_nobodys(void **state)
{
	(void)state;
	begin_grid();
	sample_at(9, 0); /* not walked at 2 to 8: the walk at 1 was short */
	assert_int_equal(host->losses[PP_LOSS_SAMPLES_UNSEEN], 7);
	sample_at(10, 90000); /* late, but there */
	sample_at(11, 0);
	sample_at(12, 30000);
	sample_at(13, 90000);
	sample_at(14, 0);
	assert_int_equal(host->losses[PP_LOSS_SAMPLES_UNSEEN], 7);
	/* Meanwhile it waited, and the CPU was idle or another's. */
	host->task.nvcsw++;
	sample_at(30, 0);
	host->task.pid = 75;
	sample_at(40, 0);
	assert_int_equal(host->losses[PP_LOSS_SAMPLES_UNSEEN], 7);
	assert_int_equal(host->losses[PP_LOSS_SAMPLES_SWALLOWED], 0);
}

/* Nobody knows where cycles would have come. */
static void unseen__samples_of_another_clock_are_not_told(void **state)
{
	(void)state;
	begin_grid();
	host->timer.period_ns = 0;
	sample_at(9, 0);
	assert_int_equal(host->losses[PP_LOSS_SAMPLES_UNSEEN], 0);
	assert_int_equal(counted_at_all().weight, 2 * GRID_NS);
}

static void restart__gives_the_next_sample_the_time_that_was_cut(void **state)
{
	const uint64_t at_ns = 5000000000 + 3 * GRID_NS + GRID_NS / 4;

	(void)state;
	begin_grid();
	sample_at(2, 0);
	sample_at(3, 0);
	host->timer = (struct pp_sample_timer){.started_ns = at_ns, .period_ns = 2 * GRID_NS};
	for (uint64_t i = 1; i <= 3; i++) {
		host->now_ns = at_ns + i * 2 * GRID_NS;
		sample_now();
		host_drop_records();
	}
	/* All of the time up to the last one, and no sample that others kept from coming. */
	assert_int_equal(counted_at_all().samples, 6);
	assert_int_equal(counted_at_all().weight, 3 * GRID_NS + GRID_NS / 4 + 6 * GRID_NS);
	assert_int_equal(host->losses[PP_LOSS_SAMPLES_UNSEEN], 0);
	assert_int_equal(host->losses[PP_LOSS_SAMPLES_SWALLOWED], 0);
}

/* Half a period where the event before was the idle task's, nothing where the first one was. */
static void restart__beside_idle_time_is_right_on_average(void **state)
{
	const uint64_t first_ns = 5000000000 + 9 * GRID_NS + GRID_NS / 4;
	const uint64_t second_ns = first_ns + 9 * GRID_NS;

	(void)state;
	begin_grid();
	host->task.nvcsw++;
	host->timer.started_ns = first_ns;
	host->now_ns = first_ns + GRID_NS;
	sample_now();
	assert_int_equal(counted_at_all().weight, 2 * GRID_NS + GRID_NS / 2);
	host->task.nvcsw++;
	host->timer.started_ns = second_ns;
	host->now_ns = second_ns + 4 * GRID_NS;
	sample_now();
	assert_int_equal(counted_at_all().weight, 3 * GRID_NS + GRID_NS / 2);
	assert_int_equal(host->losses[PP_LOSS_SAMPLES_UNSEEN], 0);
}

static void unseen__pause_is_none(void **state)
{
	(void)state;
	begin_grid();
	sample_at(20000, 0);
	assert_int_equal(host->losses[PP_LOSS_SAMPLES_UNSEEN], 0);
}

static void sample__its_time_is_kept(void **state)
{
	uint32_t bucket = 0;

	(void)state;
	begin();
	host->ns_a_reading = 30000;
	sample_now();
	assert_int_equal(runs_of(PP_PROGRAM_SAMPLE), 1);
	while (!host->times[PP_PROGRAM_SAMPLE].count[bucket])
		bucket++;
	/* As much as its own budget pays. */
	assert_in_range(host->sampling.budget.spent_ns, pp_time_end_ns(bucket - 1),
			pp_time_end_ns(bucket) - 1);
	assert_in_range(host->sampling.budget.spent_ns, 30000, 200000);
	sample_now();
	assert_int_equal(runs_of(PP_PROGRAM_SAMPLE), 2);
	assert_int_equal(runs_of(PP_PROGRAM_SWITCH), 0);
}

static void times__bucket_holds_its_time(void **state)
{
	const uint64_t longest_ns = pp_time_end_ns(PP_TIME_BUCKETS - 1);

	(void)state;
	for (uint64_t ns = 0; ns < 2 * longest_ns; ns += 1 + ns / 50) {
		uint32_t bucket = time_bucket(ns);

		assert_true(bucket < PP_TIME_BUCKETS);
		assert_true(ns < pp_time_end_ns(bucket) || bucket == PP_TIME_BUCKETS - 1);
		assert_true(!bucket || ns >= pp_time_end_ns(bucket - 1));
	}
	assert_int_equal(time_bucket(UINT64_MAX), PP_TIME_BUCKETS - 1);
	/* 250 us and 100 us lie near an end. */
	assert_int_equal(pp_time_end_ns(time_bucket(240000)), 245760);
	assert_int_equal(pp_time_end_ns(time_bucket(98000)), 98304);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		host_test(sample__all_are_taken_within_the_budget),
		host_test(sample__beyond_the_budget_stand_for_others),
		host_test(swallowed__periods_are_the_next_samples),
		host_test(swallowed__periods_of_nobody_are_counted),
		host_test(unseen__samples_are_counted_and_nobodys),
		host_test(unseen__samples_of_another_clock_are_not_told),
		host_test(unseen__pause_is_none),
		host_test(restart__gives_the_next_sample_the_time_that_was_cut),
		host_test(restart__beside_idle_time_is_right_on_average),
		host_test(sample__its_time_is_kept),
		host_test(times__bucket_holds_its_time),
	};

	return cmocka_run_group_tests_name("bpf/sample_budget", tests, NULL, NULL);
}
