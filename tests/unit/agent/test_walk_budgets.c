/* SPDX-License-Identifier: BSD-2-Clause */
/* sources: agent/walk_budgets.c */
#include "agent/walk_budgets.h"

#include <cmocka.h>
#include <setjmp.h>
#include <stdarg.h>

#include <pyprofd/limits.h>

#define SAMPLES_AND_WAITS (PP_CAPTURE_CPU | PP_CAPTURE_OFFCPU)
#define PERCENT_NS (PP_BUDGET_PERIOD_NS / 100)

static struct walk_budgets budgets_at(uint32_t hz, uint32_t events, uint32_t ppm)
{
	const struct options options = {
		.hz = hz, .events = events, .max_cpu_ppm = 4 * ppm, .duration_ns = 1};

	return walk_budgets_of(&options, 4);
}

static void walk_budgets__follow_the_rate_within_their_bounds(void **state)
{
	(void)state;
	assert_int_equal(budgets_at(1, SAMPLES_AND_WAITS, 0).sample_ns, PERCENT_NS);
	assert_int_equal(budgets_at(99, SAMPLES_AND_WAITS, 0).sample_ns, PERCENT_NS);
	assert_int_equal(budgets_at(1999, SAMPLES_AND_WAITS, 0).sample_ns, 999500);
	assert_int_equal(budgets_at(10000, SAMPLES_AND_WAITS, 0).sample_ns, 20 * PERCENT_NS);
	assert_int_equal(budgets_at(10000, SAMPLES_AND_WAITS, 0).switch_ns, PERCENT_NS / 2);
}

static void walk_budgets__of_a_run_with_an_end_are_the_cap(void **state)
{
	struct walk_budgets budgets = budgets_at(99, SAMPLES_AND_WAITS, 30000);

	(void)state;
	assert_int_equal(budgets.sample_ns, 2 * PERCENT_NS);
	assert_int_equal(budgets.switch_ns, PERCENT_NS);
	budgets = budgets_at(9999, PP_CAPTURE_CPU, 1000);
	assert_int_equal(budgets.sample_ns, PERCENT_NS / 10);
	assert_int_equal(budgets.switch_ns, 0);
	budgets = budgets_at(99, SAMPLES_AND_WAITS | PP_CAPTURE_MEM, 40000);
	assert_int_equal(budgets.memory_ns, PERCENT_NS);
	assert_int_equal(budgets.switch_ns, PERCENT_NS);
	assert_int_equal(budgets.sample_ns, 2 * PERCENT_NS);
}

static void walk_budgets__of_memory_is_a_percent_when_it_is_captured(void **state)
{
	(void)state;
	assert_int_equal(budgets_at(99, PP_CAPTURE_MEM, 0).memory_ns, PERCENT_NS);
	assert_int_equal(budgets_at(99, SAMPLES_AND_WAITS, 0).memory_ns, 0);
	assert_int_equal(budgets_at(99, SAMPLES_AND_WAITS, 40000).memory_ns, 0);
}

/* Nobody has asked for it by name: a quarter, and never each page. */
static void walk_budgets__of_memory_by_default_is_less(void **state)
{
	struct options options = {
		.hz = 99, .events = PP_CAPTURES_DEFAULT, .events_are_default = true};

	(void)state;
	assert_int_equal(walk_budgets_of(&options, 4).memory_ns, PERCENT_NS / 4);
	assert_int_equal(walk_budgets_of(&options, 4).memory_shift_min, 3);
	options.events_are_default = false;
	assert_int_equal(walk_budgets_of(&options, 4).memory_ns, PERCENT_NS);
	assert_int_equal(walk_budgets_of(&options, 4).memory_shift_min, 0);
}

static void walk_budgets__share_the_cap_of_a_core(void **state)
{
	/* 1.5 % of each of 4 CPUs, where 2 % of a core are allowed. */
	const struct options options = {
		.hz = 99, .events = SAMPLES_AND_WAITS, .max_cpu_ppm = 20000};
	struct options wide = options;
	struct walk_budgets budgets = walk_budgets_of(&options, 4);

	(void)state;
	assert_int_equal(budgets.sample_ns, PERCENT_NS * 3333 / 10000);
	assert_int_equal(budgets.switch_ns, PERCENT_NS * 1666 / 10000);
	budgets = walk_budgets_of(&options, 1);
	assert_int_equal(budgets.sample_ns, PERCENT_NS);
	assert_int_equal(budgets.switch_ns, PERCENT_NS / 2);
	wide.duration_ns = 1;
	budgets = walk_budgets_of(&wide, 2);
	/* Each part is rounded down. */
	assert_in_range(budgets.sample_ns + budgets.switch_ns, PERCENT_NS - 20, PERCENT_NS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(walk_budgets__follow_the_rate_within_their_bounds),
		cmocka_unit_test(walk_budgets__of_a_run_with_an_end_are_the_cap),
		cmocka_unit_test(walk_budgets__of_memory_is_a_percent_when_it_is_captured),
		cmocka_unit_test(walk_budgets__of_memory_by_default_is_less),
		cmocka_unit_test(walk_budgets__share_the_cap_of_a_core),
	};

	return cmocka_run_group_tests_name("agent/walk_budgets", tests, NULL, NULL);
}
