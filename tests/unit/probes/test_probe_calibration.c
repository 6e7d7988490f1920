/* SPDX-License-Identifier: BSD-2-Clause */
#include "probes/probe_calibration.h"

#include <cmocka.h>
#include <elf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "attach/probe_links.h"
#include "base/cleanup.h"

#if defined(__aarch64__)
#define MACHINE EM_AARCH64
#else
#define MACHINE EM_X86_64
#endif

/* probes/probe_calibration.c */
void probe_calibration_emulated(void);
void probe_calibration_long_nop(void);
void probe_calibration_single_step(void);

static const struct probe_calibration empty = {.program = -1};

static void expect_cost(void (*function)(void), enum probe_cost cost)
{
	assert_int_equal(probe_instruction_cost(MACHINE, (const uint8_t *)function, 9), cost);
}

static void probe_calibrate__functions_begin_with_an_instruction_of_their_class(void **state)
{
	(void)state;
	expect_cost(probe_calibration_emulated, PROBE_COST_EMULATED);
	expect_cost(probe_calibration_long_nop, PROBE_COST_LONG_NOP);
	expect_cost(probe_calibration_single_step, PROBE_COST_SINGLE_STEP);
}

/* Returns whether this machine lets the test attach probes. */
static bool may_probe(void)
{
	OWNED_FD int program = probe_trial_load_empty(false);

	if (program >= 0)
		return true;
	print_message("no program for uprobes can be loaded: %d\n", program);
	return false;
}

static void probe_calibrate__a_hit_costs_more_than_a_call_and_a_step_most(void **state)
{
	struct probe_prices prices = {};

	(void)state;
	if (!may_probe())
		skip();
	assert_int_equal(probe_calibrate(&empty, &prices), 0);
	assert_true(prices.is_measured);
	for (unsigned int i = 0; i < PROBE_COSTS; i++)
		assert_in_range(prices.hit_ns[i], 30, 1000000);
	assert_in_range(prices.return_ns, 30, 1000000);
	assert_true(prices.hit_ns[PROBE_COST_SINGLE_STEP] > prices.hit_ns[PROBE_COST_EMULATED]);
}

static void probe_calibrate__nothing_stays_attached(void **state)
{
	struct probe_prices first = {}, second = {};

	(void)state;
	if (!may_probe())
		skip();
	assert_int_equal(probe_calibrate(&empty, &first), 0);
	assert_int_equal(probe_calibrate(&empty, &second), 0);
	/* Were the first probes still there, new ones would cost hardly more. */
	assert_true(second.hit_ns[PROBE_COST_SINGLE_STEP] >
		    first.hit_ns[PROBE_COST_SINGLE_STEP] / 4);
}

static void probe_calibrate__descriptor_that_is_no_program_fails(void **state)
{
	const struct probe_calibration wrong = {.program = 0};
	struct probe_prices prices = {.hit_ns[0] = 7};

	(void)state;
	if (!may_probe())
		skip();
	assert_int_not_equal(probe_calibrate(&wrong, &prices), 0);
	assert_int_equal(prices.hit_ns[0], 7);
	assert_false(prices.is_measured);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			probe_calibrate__functions_begin_with_an_instruction_of_their_class),
		cmocka_unit_test(probe_calibrate__a_hit_costs_more_than_a_call_and_a_step_most),
		cmocka_unit_test(probe_calibrate__nothing_stays_attached),
		cmocka_unit_test(probe_calibrate__descriptor_that_is_no_program_fails),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
