/* SPDX-License-Identifier: BSD-2-Clause */
/* sources: probes/cuda_budget.c drain/hash_set.c base/index_table.c */
#include "probes/cuda_budget.h"

#include <cmocka.h>

#include "probes/probe_governor.h"

#define SECOND 1000000000ULL
#define PERCENT 10000U /* ppm */

static struct cuda_budget *budget;

static int set_up(void **state)
{
	(void)state;
	return cuda_budget_new(PERCENT, &budget);
}

static int tear_down(void **state)
{
	(void)state;
	cuda_budget_free(budget);
	return 0;
}

/* Emulated hits take 500 ns, stepped ones 10 us.  Launches were on for the share that is set. */
static struct cuda_budget_now look(void)
{
	struct cuda_budget_period period = {.elapsed_ns = SECOND,
					    .hit_ns = {500, 10000, 500, 10000}};
	struct cuda_budget_now now;

	cuda_budget_get_now(budget, &now);
	for (uint32_t i = 0; i < PP_CUDA_LAUNCHES; i++)
		period.on_ns[i] = SECOND / PROBE_SHARE_FULL * now.share_ppm[i];
	(void)cuda_budget_look(budget, &period);
	cuda_budget_get_now(budget, &now);
	return now;
}

/* A thread's hits since it began. */
static void note(uint32_t tgid, uint32_t launches, uint32_t dear, uint32_t others)
{
	const struct pp_cuda_hits hits = {.of = {launches, dear, others, 0}};

	assert_int_equal(cuda_budget_note(budget, tgid, &hits), 0);
}

static void look__what_fits_stays_on(void **state)
{
	struct cuda_budget_now now;

	(void)state;
	note(1, 1000000, 0, 0); /* of a time before we looked */
	now = look();
	assert_int_equal(now.share_ppm[PP_CUDA_HIT_LAUNCH], PROBE_SHARE_FULL);
	note(1, 1019000, 0, 0);
	now = look();
	assert_int_equal(now.share_ppm[PP_CUDA_HIT_LAUNCH], PROBE_SHARE_FULL);
	assert_int_equal(now.hits[PP_CUDA_HIT_LAUNCH], 19000);
	assert_int_equal(now.tgid, 0);
}

static void look__share_is_that_of_the_busiest_process(void **state)
{
	struct cuda_budget_now now;

	(void)state;
	note(1, 0, 0, 0);
	note(2, 0, 0, 0);
	look();
	note(1, 10000, 0, 0);
	/* Two threads, together 4 % of a CPU. */
	note(2, 30000, 0, 0);
	note(2, 50000, 0, 0);
	now = look();
	assert_in_range(now.share_ppm[PP_CUDA_HIT_LAUNCH], 249999, 250001);
	assert_int_equal(now.tgid, 2);
	assert_in_range(now.need_ppm, 4 * PERCENT - 1, 4 * PERCENT + 1);
	assert_int_equal(now.share_ppm[PP_CUDA_HIT_LAUNCH_DEAR], PROBE_SHARE_FULL);
}

static void look__dear_launches_are_given_up_first(void **state)
{
	struct cuda_budget_now now;

	(void)state;
	note(1, 0, 0, 0);
	look();
	/* 0.5 % and 2 %. */
	note(1, 10000, 2000, 0);
	now = look();
	assert_int_equal(now.share_ppm[PP_CUDA_HIT_LAUNCH], PROBE_SHARE_FULL);
	assert_in_range(now.share_ppm[PP_CUDA_HIT_LAUNCH_DEAR], 249999, 250001);
	/* No room is left: the least. */
	note(1, 50000, 2500, 0);
	now = look();
	assert_in_range(now.share_ppm[PP_CUDA_HIT_LAUNCH], 499999, 500001);
	assert_int_equal(now.share_ppm[PP_CUDA_HIT_LAUNCH_DEAR], PROBE_SHARE_MIN);
}

static void look__other_calls_stay_on_and_take_from_launches(void **state)
{
	struct cuda_budget_now now;

	(void)state;
	note(1, 0, 0, 0);
	look();
	note(1, 20000, 0, 10000);
	now = look();
	assert_in_range(now.share_ppm[PP_CUDA_HIT_LAUNCH], 499999, 500001);
	/* More than all: launches keep a tenth of the budget. */
	note(1, 30000, 0, 110000);
	now = look();
	assert_in_range(now.share_ppm[PP_CUDA_HIT_LAUNCH], 99999, 100001);
}

static void look__share_grows_slowly_once_there_are_fewer(void **state)
{
	uint32_t before = 250000;
	struct cuda_budget_now now;

	(void)state;
	note(1, 0, 0, 0);
	look();
	note(1, 80000, 0, 0);
	look();
	for (uint32_t i = 0; i < 20; i++) {
		note(1, 80000, 0, 0);
		now = look();
		assert_true(now.share_ppm[0] >= before && now.share_ppm[0] <= 2 * before);
		before = now.share_ppm[0];
	}
	assert_int_equal(before, PROBE_SHARE_FULL);
}

static void look__threads_that_end_are_no_hits(void **state)
{
	struct cuda_budget_now now;

	(void)state;
	note(1, 500000, 0, 0);
	look();
	note(1, 100, 0, 0);
	now = look();
	assert_int_equal(now.share_ppm[PP_CUDA_HIT_LAUNCH], PROBE_SHARE_FULL);
	assert_int_equal(now.hits[PP_CUDA_HIT_LAUNCH], 0);
	/* Counters of 32 bits wrap around. */
	note(1, UINT32_MAX, 0, 0);
	look();
	note(1, 999, 0, 0);
	now = look();
	assert_int_equal(now.hits[PP_CUDA_HIT_LAUNCH], 1000);
}

static void look__hits_while_a_link_goes_off_count_when_it_is_on_again(void **state)
{
	struct cuda_budget_period period = {.elapsed_ns = SECOND, .hit_ns = {500, 10000}};
	struct cuda_budget_now now;

	(void)state;
	note(1, 0, 0, 0);
	look();
	note(1, 20000, 0, 0);
	cuda_budget_look(budget, &period); /* it was off */
	note(1, 40000, 0, 0);
	period.on_ns[PP_CUDA_HIT_LAUNCH] = SECOND;
	cuda_budget_look(budget, &period);
	cuda_budget_get_now(budget, &now);
	assert_in_range(now.share_ppm[PP_CUDA_HIT_LAUNCH], 499999, 500001);
}

int main(void)
{
#define budget_test(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		budget_test(look__what_fits_stays_on),
		budget_test(look__share_is_that_of_the_busiest_process),
		budget_test(look__dear_launches_are_given_up_first),
		budget_test(look__other_calls_stay_on_and_take_from_launches),
		budget_test(look__share_grows_slowly_once_there_are_fewer),
		budget_test(look__threads_that_end_are_no_hits),
		budget_test(look__hits_while_a_link_goes_off_count_when_it_is_on_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
