/* SPDX-License-Identifier: BSD-2-Clause */
/* And the weights of include/pyprofd/probe.h, which the kernel side computes. */
#include "drain/free_debts.h"

#include <math.h>
#include <stdlib.h>

#include <cmocka.h>

static struct pp_block block_of(uint64_t stack, uint64_t bytes)
{
	return (struct pp_block){
		.key = {.user_stack = stack, .id = {.tgid = 7}}, .objects = 1, .bytes = bytes};
}

static void take__pays_blocks_of_the_same_stack_until_the_debt_is_paid(void **state)
{
	OWNED(free_debts) struct free_debts *debts = NULL;
	const struct pp_block block = block_of(1, 1000), other = block_of(3, 1000);

	(void)state;
	assert_int_equal(free_debts_new(&debts), 0);
	assert_false(free_debts_take(debts, &block, 0, 0));
	assert_true(free_debts_take(debts, &block, 2000, UINT32_MAX));
	assert_false(free_debts_take(debts, &other, 0, 0));
	assert_true(free_debts_take(debts, &block, 2000, UINT32_MAX));
	assert_false(free_debts_take(debts, &block, 2000, 0));
	/* It has grown. */
	assert_true(free_debts_take(debts, &block, 3000, UINT32_MAX));
}

static void take__rest_pays_by_chance(void **state)
{
	const struct pp_block block = block_of(1, 1000);

	(void)state;
	for (unsigned int below = 0; below < 2; below++) {
		OWNED(free_debts) struct free_debts *debts = NULL;
		const uint32_t quarter = UINT32_MAX / 4;

		assert_int_equal(free_debts_new(&debts), 0);
		assert_int_equal(free_debts_take(debts, &block, 250,
						 below ? quarter - 9 : quarter + 9),
				 below);
		assert_false(free_debts_take(debts, &block, 250, 0));
	}
}

static void take__debt_that_began_anew_is_paid(void **state)
{
	OWNED(free_debts) struct free_debts *debts = NULL;
	const struct pp_block block = block_of(1, 1000);

	(void)state;
	assert_int_equal(free_debts_new(&debts), 0);
	assert_true(free_debts_take(debts, &block, 1000, 0));
	/* The kernel side has dropped it and counts from 0 again. */
	assert_false(free_debts_take(debts, &block, 400, 0));
	assert_true(free_debts_take(debts, &block, 1400, 0));
}

static void take__more_stacks_than_are_kept_do_no_harm(void **state)
{
	OWNED(free_debts) struct free_debts *debts = NULL;

	(void)state;
	assert_int_equal(free_debts_new(&debts), 0);
	for (uint64_t stack = 1; stack < 3 * PP_DEBTS_MAX; stack++) {
		const struct pp_block block = block_of(stack, 8);

		assert_true(free_debts_take(debts, &block, 8, 0));
	}
}

static void alloc_weight__is_one_by_the_chance(void **state)
{
	static const uint64_t sizes[] = {1,	  16,	   513,	    4096,    65536,  1 << 18,
					 1 << 19, 1 << 20, 3 << 20, 4500000, 8388607};

	(void)state;
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		const double chance = -expm1(-(double)sizes[i] / PP_ALLOC_MEAN_BYTES);
		const double weight = (double)pp_alloc_weight(sizes[i]) / 65536;

		/* Sizes of a few bytes have few bits. */
		assert_true(fabs(weight * chance - 1) < (sizes[i] < 16 ? 4e-3 : 3e-4));
	}
	assert_int_equal(pp_alloc_weight(0), 0);
	assert_int_equal(pp_alloc_weight(PP_ALLOC_SURE_BYTES), 65536);
	assert_int_equal(pp_alloc_weight(PP_ALLOC_SIZE_MAX), 65536);
}

/* Blocks of which one byte in a mean is drawn, by the distribution itself. */
static void alloc_weight__sums_are_right(void **state)
{
	static const uint64_t sizes[] = {700, 30000, 400000, 2000000};
	struct drand48_data random;
	double left = 0, got = 0, all = 0, draw;

	(void)state;
	srand48_r(14, &random);
	for (unsigned int i = 0; i < 400000; i++) {
		const uint64_t size = sizes[i % 4];

		all += (double)size;
		if (left >= (double)size) {
			left -= (double)size;
			continue;
		}
		got += (double)size * (double)pp_alloc_weight(size) / 65536;
		drand48_r(&random, &draw);
		left = -log(1 - draw) * PP_ALLOC_MEAN_BYTES;
	}
	assert_true(fabs(got / all - 1) < 0.01);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(take__pays_blocks_of_the_same_stack_until_the_debt_is_paid),
		cmocka_unit_test(take__rest_pays_by_chance),
		cmocka_unit_test(take__debt_that_began_anew_is_paid),
		cmocka_unit_test(take__more_stacks_than_are_kept_do_no_harm),
		cmocka_unit_test(alloc_weight__is_one_by_the_chance),
		cmocka_unit_test(alloc_weight__sums_are_right),
	};

	return cmocka_run_group_tests_name("drain/free_debts", tests, NULL, NULL);
}
