/* SPDX-License-Identifier: BSD-2-Clause */
/* sources: probes/probe_governor.c */
#include "probes/probe_governor.h"

#include <cmocka.h>

#define SECOND 1000000000ULL
#define HIT_NS 1000U

/* Probes 0, 1 and 2, each with a share of its own, of a program that takes a whole CPU. */
struct world {
	struct probe_governor governor;
	struct probe_costs costs;
	double programs; /* CPUs that they take without probes */
};

static struct world world_of(uint32_t bound_ppm)
{
	struct world world = {.governor = {.bound_ppm = bound_ppm, .count = 3}, .programs = 1};

	for (uint32_t i = 0; i < 3; i++)
		world.governor.probe[i] = (struct probe_governed){.is_used = true,
								  .leader = i,
								  .hit_ns = HIT_NS,
								  .share_ppm = PROBE_SHARE_FULL};
	return world;
}

/* A second in which a probe that is always on would be hit so often. */
static bool second(struct world *world, const uint64_t hits[3])
{
	double spent_ns = 0;

	for (uint32_t i = 0; i < 3; i++) {
		const double on = world->governor.probe[i].share_ppm / 1e6;

		world->costs.on_ns[i] += (uint64_t)(on * SECOND);
		world->costs.hits[i].hits += (uint64_t)(on * (double)hits[i]);
		spent_ns += on * (double)hits[i] * HIT_NS;
	}
	const struct probe_programs programs = {
		.elapsed_ns = SECOND,
		.cpu_ns = (uint64_t)(world->programs * SECOND + spent_ns),
		.least_ns = SECOND / 10};

	return probe_governor_look(&world->governor, &world->costs, &programs);
}

static uint32_t share(const struct world *world, uint32_t probe)
{
	return world->governor.probe[probe].share_ppm;
}

static void look__below_the_bound_all_stay_on(void **state)
{
	struct world world = world_of(100000);

	(void)state;
	assert_false(second(&world, (uint64_t[]){50000, 49000, 0}));
	assert_int_equal(world.governor.cost_ppm, 99000);
	assert_int_equal(share(&world, 0), PROBE_SHARE_FULL);
}

static void look__above_it_the_share_is_set_at_once(void **state)
{
	struct world world = world_of(100000);

	(void)state;
	/* Half a CPU: five times the bound. */
	assert_true(second(&world, (uint64_t[]){500000, 0, 0}));
	assert_in_range(share(&world, 0), 199000, 201000);
	assert_int_equal(share(&world, 1), PROBE_SHARE_FULL);
	(void)second(&world, (uint64_t[]){500000, 0, 0});
	assert_in_range(world.governor.cost_ppm, 99000, 101000);
	assert_in_range(share(&world, 0), 199000, 201000);
}

static void look__who_needs_little_leaves_the_rest(void **state)
{
	struct world world = world_of(100000);

	(void)state;
	assert_true(second(&world, (uint64_t[]){500000, 10000, 500000}));
	assert_int_equal(share(&world, 1), PROBE_SHARE_FULL);
	assert_in_range(share(&world, 0), 89000, 91000);
	assert_in_range(share(&world, 2), 89000, 91000);
}

static void look__share_grows_step_by_step(void **state)
{
	struct world world = world_of(100000);

	(void)state;
	assert_true(second(&world, (uint64_t[]){1000000, 0, 0}));
	assert_in_range(share(&world, 0), 99000, 101000);
	assert_true(second(&world, (uint64_t[]){0, 0, 0}));
	assert_in_range(share(&world, 0), 124000, 126000);
	for (unsigned int i = 0; i < 11; i++)
		(void)second(&world, (uint64_t[]){0, 0, 0});
	assert_int_equal(share(&world, 0), PROBE_SHARE_FULL);
}

static void look__probe_that_was_off_keeps_its_share(void **state)
{
	struct world world = world_of(100000);

	(void)state;
	assert_true(second(&world, (uint64_t[]){1000000, 0, 0}));
	world.costs.on_ns[1] += SECOND;
	(void)probe_governor_look(&world.governor, &world.costs,
				  &(struct probe_programs){SECOND, SECOND, 0});
	assert_in_range(share(&world, 0), 99000, 101000);
}

static void look__bound_is_of_the_programs_time_and_not_of_the_probes(void **state)
{
	struct world world = world_of(100000);

	(void)state;
	world.programs = 0.5;
	assert_true(second(&world, (uint64_t[]){500000, 0, 0}));
	assert_in_range(world.governor.cost_ppm, 990000, 1010000);
	assert_in_range(share(&world, 0), 99000, 101000);
	/* Next to nothing counts as a tenth of a CPU. */
	world = world_of(100000);
	world.programs = 0.001;
	assert_false(second(&world, (uint64_t[]){9000, 0, 0}));
}

static void look__what_stays_on_is_told_and_leaves_less(void **state)
{
	struct world world = world_of(100000);

	(void)state;
	world.governor.probe[1].stays_on = true;
	assert_true(second(&world, (uint64_t[]){100000, 50000, 0}));
	assert_int_equal(share(&world, 1), PROBE_SHARE_FULL);
	assert_in_range(share(&world, 0), 499000, 501000);
	assert_true(second(&world, (uint64_t[]){100000, 500000, 0}));
	assert_int_equal(share(&world, 1), PROBE_SHARE_FULL);
	assert_int_equal(share(&world, 0), PROBE_SHARE_MIN);
}

static void look__followers_have_their_leaders_share(void **state)
{
	struct world world = world_of(100000);

	(void)state;
	world.governor.probe[1].leader = 0;
	assert_true(second(&world, (uint64_t[]){100000, 100000, 0}));
	assert_in_range(share(&world, 0), 499000, 501000);
	assert_int_equal(share(&world, 1), share(&world, 0));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(look__below_the_bound_all_stay_on),
		cmocka_unit_test(look__above_it_the_share_is_set_at_once),
		cmocka_unit_test(look__who_needs_little_leaves_the_rest),
		cmocka_unit_test(look__share_grows_step_by_step),
		cmocka_unit_test(look__probe_that_was_off_keeps_its_share),
		cmocka_unit_test(look__bound_is_of_the_programs_time_and_not_of_the_probes),
		cmocka_unit_test(look__what_stays_on_is_told_and_leaves_less),
		cmocka_unit_test(look__followers_have_their_leaders_share),
	};

	return cmocka_run_group_tests_name("agent/probe_governor", tests, NULL, NULL);
}
