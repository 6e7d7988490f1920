/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/budget.h"

#include <cmocka.h>

#define SECOND 1000000000ULL
#define PERCENT 10000U /* ppm */
#define HIT_NS 1000U

static struct budget *budget;
static uint64_t on_ns[BUDGET_SOURCES_MAX]; /* since the start */

static void open_budget(uint32_t bound_ppm)
{
	assert_int_equal(budget_new(bound_ppm, &budget), 0);
	for (uint32_t i = 0; i < BUDGET_SOURCES_MAX; i++)
		on_ns[i] = 0;
}

static int tear_down(void **state)
{
	(void)state;
	budget_free(budget);
	budget = NULL;
	return 0;
}

static uint32_t share(uint32_t source)
{
	return budget_now(budget)->share_ppm[source];
}

static bool tick(void)
{
	for (uint32_t i = 0; i < BUDGET_SOURCES_MAX; i++)
		on_ns[i] += SECOND / BUDGET_FULL * share(i);
	return budget_tick(budget, SECOND, on_ns);
}

/* ---- one payer: sources 0, 1 and 2, of programs that take a whole CPU ---- */

static const struct budget_payer all;
static double programs; /* CPUs that they take without the sources */
static struct budget_use used[3];

static void set(uint32_t source, bool stays_on, uint32_t leader)
{
	const struct budget_source how = {
		.is_used = true, .stays_on = stays_on, .leader = leader, .hit_ns = HIT_NS};

	budget_set(budget, source, &how);
}

/* A second in which a source that is always on would be hit so often. */
static bool second(uint64_t first, uint64_t next, uint64_t last)
{
	const uint64_t hits[3] = {first, next, last};
	double spent_ns = 0;

	for (uint32_t i = 0; i < 3; i++) {
		const double on = share(i) / 1e6;

		used[i].hits += (uint32_t)(on * (double)hits[i]);
		spent_ns += on * (double)hits[i] * HIT_NS;
		assert_int_equal(budget_note(budget, &all, i, &used[i]), 0);
	}
	assert_int_equal(budget_set_time(budget, &all, (uint64_t)(programs * SECOND + spent_ns),
					 SECOND / 10),
			 0);
	return tick();
}

static int set_up(void **state)
{
	(void)state;
	open_budget(10 * PERCENT);
	programs = 1;
	for (uint32_t i = 0; i < 3; i++) {
		set(i, false, i);
		used[i] = (struct budget_use){.hits = UINT32_MAX - 5};
	}
	(void)second(0, 0, 0);
	return 0;
}

static void tick__below_the_bound_all_stay_on(void **state)
{
	(void)state;
	assert_false(second(50000, 49000, 0));
	assert_int_equal(budget_now(budget)->cost_ppm, 99000);
	assert_int_equal(budget_now(budget)->least_ppm, BUDGET_FULL);
	assert_int_equal(budget_now(budget)->hits[1], 49000);
}

static void tick__above_it_the_share_is_set_at_once(void **state)
{
	(void)state;
	/* Half a CPU: five times the bound. */
	assert_true(second(500000, 0, 0));
	assert_in_range(share(0), 199000, 201000);
	assert_int_equal(share(1), BUDGET_FULL);
	assert_int_equal(budget_now(budget)->least_ppm, share(0));
	(void)second(500000, 0, 0);
	assert_in_range(budget_now(budget)->cost_ppm, 99000, 101000);
	assert_in_range(share(0), 199000, 201000);
}

static void tick__who_needs_little_leaves_the_rest(void **state)
{
	(void)state;
	assert_true(second(500000, 10000, 500000));
	assert_int_equal(share(1), BUDGET_FULL);
	assert_in_range(share(0), 89000, 91000);
	assert_in_range(share(2), 89000, 91000);
}

static void tick__share_grows_step_by_step(void **state)
{
	(void)state;
	assert_true(second(1000000, 0, 0));
	assert_in_range(share(0), 99000, 101000);
	assert_true(second(0, 0, 0));
	assert_in_range(share(0), 124000, 126000);
	for (unsigned int i = 0; i < 11; i++)
		(void)second(0, 0, 0);
	assert_int_equal(share(0), BUDGET_FULL);
}

static void tick__source_that_was_off_keeps_its_share(void **state)
{
	(void)state;
	assert_true(second(1000000, 0, 0));
	assert_int_equal(budget_note(budget, &all, 0, &used[0]), 0);
	(void)budget_tick(budget, SECOND, on_ns);
	assert_in_range(share(0), 99000, 101000);
}

static void tick__bound_is_of_the_programs_time_and_not_of_the_sources(void **state)
{
	(void)state;
	programs = 0.5;
	assert_true(second(500000, 0, 0));
	assert_in_range(budget_now(budget)->cost_ppm, 990000, 1010000);
	assert_in_range(share(0), 99000, 101000);
}

static void tick__next_to_nothing_counts_as_the_least(void **state)
{
	(void)state;
	programs = 0.001;
	assert_false(second(9000, 0, 0));
}

static void tick__what_stays_on_is_told_and_leaves_less(void **state)
{
	(void)state;
	set(1, true, 1);
	assert_true(second(100000, 50000, 0));
	assert_int_equal(share(1), BUDGET_FULL);
	assert_in_range(share(0), 499000, 501000);
	/* More than all: the others keep a tenth of the bound. */
	assert_true(second(100000, 500000, 0));
	assert_int_equal(share(1), BUDGET_FULL);
	assert_in_range(share(0), 99000, 101000);
}

static void tick__followers_have_their_leaders_share(void **state)
{
	(void)state;
	set(1, false, 0);
	assert_true(second(100000, 100000, 0));
	assert_in_range(share(0), 499000, 501000);
	assert_int_equal(share(1), share(0));
}

static void tick__unused_source_costs_nothing(void **state)
{
	(void)state;
	budget_set(budget, 0, &(struct budget_source){.hit_ns = HIT_NS});
	assert_false(second(1000000, 0, 0));
	assert_int_equal(budget_now(budget)->cost_ppm, 0);
}

/* ---- a payer a process: launches, dear ones, and two kinds that stay on ---- */

static int set_up_processes(void **state)
{
	static const uint32_t hit_ns[] = {500, 10000, 500, 10000};

	(void)state;
	open_budget(PERCENT);
	for (uint32_t i = 0; i < 4; i++)
		budget_set(budget, i,
			   &(struct budget_source){.is_used = true,
						   .stays_on = i > 1,
						   .leader = i,
						   .rank = i == 1,
						   .hit_ns = hit_ns[i]});
	return 0;
}

/* A thread's hits since it began. */
static void note_of(uint32_t uid, uint32_t tgid, uint32_t launches, uint32_t dear, uint32_t others)
{
	const struct budget_payer payer = {.tgid = tgid, .uid = uid};
	const uint32_t hits[] = {launches, dear, others};

	for (uint32_t i = 0; i < 3; i++)
		assert_int_equal(
			budget_note(budget, &payer, i, &(struct budget_use){.hits = hits[i]}), 0);
}

static void note(uint32_t tgid, uint32_t launches, uint32_t dear, uint32_t others)
{
	note_of(1002, tgid, launches, dear, others);
}

static void tick__what_a_process_had_before_does_not_count(void **state)
{
	(void)state;
	note(1, 1000000, 0, 0);
	assert_false(tick());
	note(1, 1019000, 0, 0);
	assert_false(tick());
	assert_int_equal(budget_now(budget)->hits[0], 19000);
	assert_int_equal(budget_now(budget)->payer.tgid, 0);
}

static void tick__share_is_that_of_the_busiest_process(void **state)
{
	(void)state;
	note(1, 0, 0, 0);
	note(2, 0, 0, 0);
	tick();
	note(1, 10000, 0, 0);
	/* Two threads, together 4 % of a CPU. */
	note(2, 30000, 0, 0);
	note(2, 50000, 0, 0);
	assert_true(tick());
	assert_in_range(share(0), 249999, 250001);
	assert_int_equal(budget_now(budget)->payer.tgid, 2);
	assert_int_equal(budget_now(budget)->payer.uid, 1002);
	assert_in_range(budget_now(budget)->need_ppm, 4 * PERCENT - 1, 4 * PERCENT + 1);
	assert_int_equal(share(1), BUDGET_FULL);
}

/* Whoever comes first. */
static void tick__process_that_needs_most_is_told(void **state)
{
	(void)state;
	for (uint32_t i = 1; i <= 3; i++)
		note(i, 0, 0, 0);
	tick();
	for (uint32_t i = 1; i <= 3; i++)
		note(i, i == 2 ? 80000 : 40000, 0, 0);
	tick();
	assert_int_equal(budget_now(budget)->payer.tgid, 2);
	assert_in_range(budget_now(budget)->need_ppm, 4 * PERCENT - 1, 4 * PERCENT + 1);
	assert_in_range(share(0), 249999, 250001);
}

/* The worst one first, then a milder one, then one between them. */
static void tick__process_that_needs_most_is_told_wherever_it_stands(void **state)
{
	static const uint32_t launches[][3] = {{80000, 40000, 50000}, {40000, 80000, 50000},
					       {50000, 40000, 80000}, {40000, 50000, 80000},
					       {80000, 50000, 40000}, {50000, 80000, 40000}};

	for (size_t order = 0; order < 6; order++) {
		for (uint32_t i = 0; i < 3; i++)
			note(i + 1, 0, 0, 0);
		tick();
		for (uint32_t i = 0; i < 3; i++)
			note(i + 1, launches[order][i], 0, 0);
		tick();
		assert_int_equal(launches[order][budget_now(budget)->payer.tgid - 1], 80000);
		assert_in_range(share(0), 249999, 250001);
		tear_down(state);
		set_up_processes(state);
	}
}

static void tick__sources_of_a_higher_rank_are_given_up_first(void **state)
{
	(void)state;
	note(1, 0, 0, 0);
	tick();
	/* 0.5 % and 2 %. */
	note(1, 10000, 2000, 0);
	tick();
	assert_int_equal(share(0), BUDGET_FULL);
	assert_in_range(share(1), 249999, 250001);
	/* No room is left: the least. */
	note(1, 50000, 2500, 0);
	tick();
	assert_in_range(share(0), 499999, 500001);
	assert_int_equal(share(1), BUDGET_LEAST);
}

static void tick__what_stays_on_takes_from_the_rest_of_its_process(void **state)
{
	(void)state;
	note(1, 0, 0, 0);
	tick();
	note(1, 20000, 0, 10000);
	tick();
	assert_in_range(share(0), 499999, 500001);
	/* More than all: launches keep a tenth of the bound. */
	note(1, 30000, 0, 110000);
	tick();
	assert_in_range(share(0), 99999, 100001);
}

static void tick__share_grows_slowly_once_there_is_less(void **state)
{
	uint32_t before = 250000;

	(void)state;
	note(1, 0, 0, 0);
	tick();
	note(1, 80000, 0, 0);
	tick();
	for (uint32_t i = 0; i < 20; i++) {
		note(1, 80000, 0, 0);
		tick();
		assert_true(share(0) >= before && share(0) <= 2 * before);
		before = share(0);
	}
	assert_int_equal(before, BUDGET_FULL);
}

static void tick__threads_that_end_are_no_hits(void **state)
{
	(void)state;
	note(1, 500000, 0, 0);
	tick();
	note(1, 100, 0, 0);
	tick();
	assert_int_equal(share(0), BUDGET_FULL);
	assert_int_equal(budget_now(budget)->hits[0], 0);
	/* Counters of 32 bits wrap around. */
	note(1, UINT32_MAX, 0, 0);
	tick();
	note(1, 999, 0, 0);
	tick();
	assert_int_equal(budget_now(budget)->hits[0], 1000);
}

static void tick__hits_while_a_link_goes_off_count_when_it_is_on_again(void **state)
{
	(void)state;
	note(1, 0, 0, 0);
	tick();
	note(1, 20000, 0, 0);
	(void)budget_tick(budget, SECOND, on_ns); /* it was off */
	note(1, 40000, 0, 0);
	tick();
	assert_in_range(share(0), 499999, 500001);
}

static uint32_t gate_tgid, gate, gates;

static void on_gate(void *context, const struct budget_payer *payer, uint32_t source,
		    uint32_t gate_ppm)
{
	assert_ptr_equal(context, &gates);
	assert_int_equal(source, 0);
	gate_tgid = payer->tgid;
	gate = gate_ppm;
	gates++;
}

/* Who hits a source without pause takes it from no other user, and is thinned alone. */
static void tick__of_several_users_the_one_who_allows_most_decides(void **state)
{
	(void)state;
	for (uint32_t second = 0; second < 3; second++) {
		/* 4 % of a CPU, and next to nothing. */
		note_of(1001, 1, 80000 * second, 0, 0);
		note_of(1002, 2, 100 * second, 0, 0);
		note_of(1003, 3, 0, 0, 0); /* needs nothing */
		tick();
		assert_int_equal(share(0), BUDGET_FULL);
		assert_int_equal(budget_now(budget)->payer.tgid, 0);
	}
	gates = 0;
	budget_each_gate(budget, on_gate, &gates);
	assert_int_equal(gates, 1);
	assert_int_equal(gate_tgid, 1);
	assert_in_range(gate, 249999, 250001);
	budget_each_gate(budget, on_gate, &gates); /* once */
	assert_int_equal(gates, 1);
	/* Its hits are counted all the same, so that its part stays. */
	note_of(1001, 1, 240000, 0, 0);
	note_of(1002, 2, 300, 0, 0);
	tick();
	budget_each_gate(budget, on_gate, &gates);
	assert_int_equal(gates, 1);
	/* The other one has ended. */
	note_of(1001, 1, 320000, 0, 0);
	tick();
	assert_in_range(share(0), 249999, 250001);
	budget_each_gate(budget, on_gate, &gates);
	assert_int_equal(gates, 2);
	assert_in_range(gate, 499999, 500001);
}

/* Two users who take too much are no one's fault; what everybody hits is bounded for all. */
static void tick__entering_the_kernel_may_cost_others_too_much(void **state)
{
	struct budget_source everybodys = {.is_used = true, .is_everybodys = true, .hit_ns = 500};

	(void)state;
	for (uint32_t second = 0; second < 2; second++) {
		note_of(1001, 1, 80000 * second, 0, 0);
		note_of(1002, 2, 40000 * second, 0, 0);
		note_of(1003, 3, 100 * second, 0, 0);
		tick();
	}
	assert_in_range(share(0), 499999, 500001);
	assert_int_equal(budget_now(budget)->payer.tgid, 1);
	budget_set(budget, 0, &everybodys);
	note_of(1001, 1, 80000 + 40000, 0, 0);
	note_of(1002, 2, 40000 + 20000, 0, 0);
	note_of(1003, 3, 150, 0, 0);
	tick();
	assert_in_range(share(0), 249999, 250001);
}

/* What the program takes is less for the hits that are left out. */
static void tick__part_of_a_process_is_of_what_all_its_hits_would_take(void **state)
{
	const struct budget_payer busy = {.tgid = 1, .uid = 1001};
	struct budget_use use = {};
	double left = 1;

	(void)state;
	for (uint32_t second = 0; second < 6; second++) {
		assert_int_equal(budget_note(budget, &busy, 0, &use), 0);
		note_of(1002, 2, 100 * second, 0, 0);
		tick();
		gate = 0;
		budget_each_gate(budget, on_gate, &gates);
		if (gate)
			left = gate / 1e6;
		use.ns += (uint64_t)(0.04 * SECOND * left);
	}
	assert_in_range((uint32_t)(left * 1e6), 249000, 251000);
}

/* 1 % of a CPU for 10 s: a burst is none of the bound's business, and what goes on is. */
static void tick__what_is_saved_is_used_up_first(void **state)
{
	uint32_t hits = 0, second = 0;

	(void)state;
	budget_save(budget, 10ULL * SECOND);
	note(1, 0, 0, 0);
	tick();
	for (uint32_t i = 0; i < 20; i++) {
		note(1, hits += i % 10 ? 0 : 100000, 0, 0);
		tick();
		assert_int_equal(share(0), BUDGET_FULL);
	}
	do {
		note(1, hits += 80000, 0, 0);
		tick();
	} while (share(0) == BUDGET_FULL && second++ < 10);
	/* 4 % of a CPU, of 1 % a second and what was saved. */
	assert_in_range(second, 1, 3);
	assert_in_range(share(0), 200000, 300000);
}

static void tick__process_that_is_gone_is_forgotten(void **state)
{
	(void)state;
	note(1, 0, 0, 0);
	tick();
	note(1, 80000, 0, 0);
	tick();
	assert_int_equal(budget_now(budget)->payer.tgid, 1);
	assert_in_range(share(0), 249999, 250001);
	tick();
	assert_int_equal(budget_now(budget)->payer.tgid, 0);
	/* Twice as much at a time. */
	assert_in_range(share(0), 499998, 500002);
	/* Another one of that number begins anew. */
	note(1, 160000, 0, 0);
	tick();
	assert_int_equal(budget_now(budget)->payer.tgid, 0);
}

/* ---- nothing can be thinned ---- */

static int set_up_exact(void **state)
{
	(void)state;
	open_budget(100 * PERCENT);
	set(0, true, 0);
	return 0;
}

static void spend(uint32_t tgid, uint64_t ns, uint64_t time_ns)
{
	const struct budget_payer payer = {.tgid = tgid};

	assert_int_equal(budget_note(budget, &payer, 0, &(struct budget_use){.ns = ns}), 0);
	assert_int_equal(budget_set_time(budget, &payer, time_ns, 0), 0);
}

static void cost__is_that_of_the_process_that_pays_most(void **state)
{
	(void)state;
	spend(1, 0, SECOND);
	spend(2, 0, SECOND);
	assert_false(tick());
	spend(1, SECOND / 4, SECOND);
	spend(2, SECOND / 2, SECOND);
	assert_false(tick());
	assert_int_equal(budget_now(budget)->cost_ppm, 1000000);
	/* No time is left to the process itself. */
	spend(1, SECOND / 4 + SECOND, SECOND);
	spend(2, SECOND / 2, SECOND);
	(void)tick();
	assert_int_equal(budget_now(budget)->cost_ppm, UINT32_MAX);
	assert_int_equal(share(0), BUDGET_FULL);
}

static void own__time_without_a_cpu_is_none_of_the_process(void **state)
{
	(void)state;
	assert_int_equal(budget_own_ns(SECOND, 0), SECOND);
	assert_int_equal(budget_own_ns(SECOND, SECOND / 2), SECOND / 2);
	/* However late it is, a tenth is its own. */
	assert_int_equal(budget_own_ns(SECOND, 5 * SECOND), SECOND / 10);
	assert_int_equal(budget_own_ns(0, SECOND), 0);
}

int main(void)
{
#define one_test(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
#define process_test(name) cmocka_unit_test_setup_teardown(name, set_up_processes, tear_down)
	const struct CMUnitTest tests[] = {
		one_test(tick__below_the_bound_all_stay_on),
		one_test(tick__above_it_the_share_is_set_at_once),
		one_test(tick__who_needs_little_leaves_the_rest),
		one_test(tick__share_grows_step_by_step),
		one_test(tick__source_that_was_off_keeps_its_share),
		one_test(tick__bound_is_of_the_programs_time_and_not_of_the_sources),
		one_test(tick__next_to_nothing_counts_as_the_least),
		one_test(tick__what_stays_on_is_told_and_leaves_less),
		one_test(tick__followers_have_their_leaders_share),
		one_test(tick__unused_source_costs_nothing),
		process_test(tick__what_a_process_had_before_does_not_count),
		process_test(tick__share_is_that_of_the_busiest_process),
		process_test(tick__process_that_needs_most_is_told),
		process_test(tick__process_that_needs_most_is_told_wherever_it_stands),
		process_test(tick__sources_of_a_higher_rank_are_given_up_first),
		process_test(tick__what_stays_on_takes_from_the_rest_of_its_process),
		process_test(tick__share_grows_slowly_once_there_is_less),
		process_test(tick__threads_that_end_are_no_hits),
		process_test(tick__hits_while_a_link_goes_off_count_when_it_is_on_again),
		process_test(tick__of_several_users_the_one_who_allows_most_decides),
		process_test(tick__entering_the_kernel_may_cost_others_too_much),
		process_test(tick__part_of_a_process_is_of_what_all_its_hits_would_take),
		process_test(tick__what_is_saved_is_used_up_first),
		process_test(tick__process_that_is_gone_is_forgotten),
		cmocka_unit_test_setup_teardown(cost__is_that_of_the_process_that_pays_most,
						set_up_exact, tear_down),
		cmocka_unit_test(own__time_without_a_cpu_is_none_of_the_process),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
