/* SPDX-License-Identifier: BSD-2-Clause */
#include "reader/program_times.h"

#include <cmocka.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

static bool add(struct program_times *times, const char *fact, uint64_t runs)
{
	return program_times_add(times, fact, strlen(fact), runs);
}

static void program_times__quantiles_are_the_ends_of_buckets(void **state)
{
	struct program_times times = {};

	(void)state;
	assert_int_equal(program_times_ns(&times, PP_PROGRAM_SWITCH, 0.5), 0);
	assert_true(add(&times, "on_switch_45056", 600));
	assert_true(add(&times, "on_switch_45056", 399)); /* of another window */
	assert_true(add(&times, "on_switch_98304", 1));
	assert_true(add(&times, "on_cpu_sample_245760", 1));
	assert_int_equal(program_times_runs(&times, PP_PROGRAM_SWITCH), 1000);
	assert_int_equal(program_times_ns(&times, PP_PROGRAM_SWITCH, 0.5), 45056);
	assert_int_equal(program_times_ns(&times, PP_PROGRAM_SWITCH, 0.999), 45056);
	assert_int_equal(program_times_ns(&times, PP_PROGRAM_SWITCH, 0.9995), 98304);
	assert_int_equal(program_times_ns(&times, PP_PROGRAM_SWITCH, 1), 98304);
	assert_int_equal(program_times_ns(&times, PP_PROGRAM_SAMPLE, 0.5), 245760);
	assert_int_equal(program_times_runs(&times, PP_PROGRAM_WAKING), 0);
}

static void program_times__other_facts_are_left(void **state)
{
	struct program_times times = {};

	(void)state;
	assert_false(add(&times, "samples", 5));
	assert_false(add(&times, "on_switch", 5));
	assert_false(add(&times, "on_switch_", 5));
	assert_false(add(&times, "on_switch_12345", 5)); /* no bucket ends there */
	assert_false(add(&times, "on_switch_45056x", 5));
	assert_int_equal(program_times_runs(&times, PP_PROGRAM_SWITCH), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(program_times__quantiles_are_the_ends_of_buckets),
		cmocka_unit_test(program_times__other_facts_are_left),
	};

	return cmocka_run_group_tests_name("reader/program_times", tests, NULL, NULL);
}
