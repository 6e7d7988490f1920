/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* bpf/lib/budget.bpf.h: when the share of walked events is halved and doubled, how much is saved up
 * and owed, and which events are walked. */
#include "host.h"

#include <lib/budget.bpf.h>

#define INCOME_NS 50000U /* in each period */
#define STARTED_NS (7ULL * PP_BUDGET_PERIOD_NS)

struct adjusted {
	int64_t credit_ns;
	uint64_t spent_ns;
	uint32_t shift, periods; /* 2^shift: one event in so many is walked; that passed */
	int64_t new_credit_ns;
	uint32_t new_shift;
};

/* The credit holds at most 2 ms and the debt as much; half of the credit doubles the share. */
static const struct adjusted adjusted[] = {
	/* More was spent than came in, and no credit is left: the share is halved. */
	{-60000, 50001, 3, 1, -10000, 4},
	{-250000, 150001, 3, 3, -100000, 4},
	{-60000, 50001, 13, 1, -10000, 14},
	{-60000, 50001, 14, 1, -10000, 14},
	/* Just what came in was spent. */
	{-60000, 50000, 3, 1, -10000, 3},
	{-250000, 150000, 3, 3, -100000, 3},
	/* A debt alone does not lower the share, and neither does spending while there is
	 * credit. */
	{-60000, 0, 3, 1, -10000, 3},
	{-50000, 60000, 3, 1, 0, 3},
	{-50001, 60000, 3, 1, -1, 4},
	{100000, 60000, 3, 1, 150000, 3},
	/* Each period with more than half of the credit doubles it. */
	{750000, 0, 3, 1, 800000, 3},
	{950000, 0, 3, 1, 1000000, 3},
	{950001, 0, 3, 1, 1000001, 2},
	{1000000, 0, 3, 2, 1100000, 1},
	{1000000, 0, 3, 3, 1150000, 0},
	{1000000, 0, 3, 4, 1200000, 0},
	{1000000, 0, 0, 1, 1050000, 0},
	/* Both have an end. */
	{1940000, 0, 0, 1, 1990000, 0},
	{1960000, 0, 0, 1, 2000000, 0},
	{-2040000, 60000, 3, 1, -1990000, 4},
	{-2060000, 60000, 3, 1, -2000000, 4},
};

static void budget_adjust__weighs_what_was_spent(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(adjusted) / sizeof(adjusted[0]); i++) {
		const struct adjusted *wanted = &adjusted[i];
		const uint64_t now_ns =
			STARTED_NS + (uint64_t)wanted->periods * PP_BUDGET_PERIOD_NS + 1;
		struct budget budget = {.started_ns = STARTED_NS,
					.credit_ns = wanted->credit_ns,
					.spent_ns = wanted->spent_ns,
					.shift = wanted->shift};

		budget_adjust(&budget, now_ns, INCOME_NS);
		if (budget.credit_ns != wanted->new_credit_ns || budget.shift != wanted->new_shift)
			fail_msg("case %zu: credit %lld, shift %u", i, (long long)budget.credit_ns,
				 budget.shift);
		assert_int_equal(budget.spent_ns, 0);
		assert_int_equal(budget.started_ns, now_ns);
	}
}

static void budget_adjust__makes_up_for_4096_periods(void **state)
{
	static const struct {
		uint64_t periods;
		int64_t credit_ns;
	} cases[] = {{4095, 40950}, {4096, 40960}, {4097, 40960}, {100000, 40960}};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct budget budget = {.started_ns = STARTED_NS};

		budget_adjust(&budget, STARTED_NS + cases[i].periods * PP_BUDGET_PERIOD_NS, 10);
		assert_int_equal(budget.credit_ns, cases[i].credit_ns);
	}
}

static void budget_tick__pays_at_the_end_of_a_period(void **state)
{
	const struct budget before = {.started_ns = STARTED_NS, .credit_ns = 100, .spent_ns = 5};
	struct budget budget = before;

	(void)state;
	host->config.switch_budget_ns = 300;
	host->config.sample_budget_ns = 500;
	budget_tick_of_switches(&budget, STARTED_NS + PP_BUDGET_PERIOD_NS - 1);
	assert_memory_equal(&budget, &before, sizeof(budget));
	budget_tick_of_samples(&budget, STARTED_NS + PP_BUDGET_PERIOD_NS - 1);
	assert_memory_equal(&budget, &before, sizeof(budget));
	budget_tick_of_switches(&budget, STARTED_NS + PP_BUDGET_PERIOD_NS);
	assert_int_equal(budget.credit_ns, 400);
	assert_int_equal(budget.started_ns, STARTED_NS + PP_BUDGET_PERIOD_NS);
	budget = before;
	budget_tick_of_samples(&budget, STARTED_NS + PP_BUDGET_PERIOD_NS);
	assert_int_equal(budget.credit_ns, 600);
	assert_int_equal(budget.started_ns, STARTED_NS + PP_BUDGET_PERIOD_NS);
}

/* A walk takes 190 us at most; twice that is charged when it took longer. */
static void budget_spend__charges_at_most_twice_a_walk(void **state)
{
	static const uint64_t cases[][2] = {{0, 0},	      {7, 7},
					    {379999, 379999}, {380000, 380000},
					    {380001, 380000}, {1ULL << 60, 380000}};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct budget budget = {.credit_ns = 1000000, .spent_ns = 1000};

		budget_spend(&budget, cases[i][0]);
		assert_int_equal(budget.spent_ns, 1000 + cases[i][1]);
		assert_int_equal(budget.credit_ns, 1000000 - (int64_t)cases[i][1]);
	}
}

/* Those are taken whose random number is a multiple of 2^shift. */
static void budget_takes__one_in_2_to_the_shift(void **state)
{
	(void)state;
	for (uint32_t shift = 0; shift <= BUDGET_MAX_SHIFT; shift++) {
		const struct budget budget = {.shift = shift};
		uint32_t taken = 0;

		for (uint32_t i = 0; i < 1U << 17; i++) {
			const uint64_t state_before = host->random;
			const uint32_t random = bpf_get_prandom_u32();
			uint32_t weight_shift = 99;
			bool takes;

			host->random = state_before;
			takes = budget_takes(&budget, &weight_shift);
			host->random = state_before;
			bpf_get_prandom_u32();
			assert_int_equal(takes, random % (1U << shift) == 0);
			assert_int_equal(weight_shift, shift);
			taken += takes;
		}
		assert_true(taken > 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		host_test(budget_adjust__weighs_what_was_spent),
		host_test(budget_adjust__makes_up_for_4096_periods),
		host_test(budget_tick__pays_at_the_end_of_a_period),
		host_test(budget_spend__charges_at_most_twice_a_walk),
		host_test(budget_takes__one_in_2_to_the_shift),
	};

	return cmocka_run_group_tests_name("bpf/budget", tests, NULL, NULL);
}
