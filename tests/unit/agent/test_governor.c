/* SPDX-License-Identifier: BSD-2-Clause */
/* sources: agent/governor.c */
#include "agent/governor.h"

#include <cmocka.h>

#define SECOND 1000000000ULL
#define WINDOW (10 * SECOND)

/* A clock and a counter of CPU time that the test moves. */
struct world {
	struct governor governor;
	uint64_t now_ns, spent_ns;
	uint32_t ppm; /* what the last look has found */
};

static struct world world_of(uint32_t cap_ppm)
{
	return (struct world){.governor.cap_ppm = cap_ppm, .now_ns = 5 * SECOND};
}

/* A window in which pyprofd takes so much of a core. */
static bool window(struct world *world, uint32_t ppm)
{
	world->now_ns += WINDOW;
	world->spent_ns += WINDOW / 1000000 * ppm;
	return governor_look(&world->governor, world->spent_ns, world->now_ns, &world->ppm);
}

static void look__first_one_only_begins(void **state)
{
	struct world world = world_of(10000);

	(void)state;
	assert_false(window(&world, 900000));
	assert_int_equal(world.governor.steps, 0);
	assert_true(window(&world, 20000));
	assert_int_equal(world.ppm, 20000);
}

static void look__at_the_cap_nothing_changes(void **state)
{
	struct world world = world_of(10000);

	(void)state;
	(void)window(&world, 0);
	assert_false(window(&world, 10000));
	assert_true(window(&world, 10001));
	assert_int_equal(world.governor.steps, 1);
}

static void look__steps_down_once_a_window_to_the_last(void **state)
{
	struct world world = world_of(10000);

	(void)state;
	(void)window(&world, 0);
	for (unsigned int i = 1; i <= GOVERNOR_STEPS_MAX; i++) {
		assert_true(window(&world, 50000));
		assert_int_equal(world.governor.steps, i);
	}
	assert_false(window(&world, 50000));
	assert_int_equal(world.governor.steps, GOVERNOR_STEPS_MAX);
}

static void look__comes_back_after_calm_windows_in_a_row(void **state)
{
	struct world world = world_of(10000);

	(void)state;
	(void)window(&world, 0);
	(void)window(&world, 20000);
	(void)window(&world, 20000);
	assert_int_equal(world.governor.steps, 2);
	assert_false(window(&world, 3999));
	assert_false(window(&world, 3999));
	/* Twice as much would be too near to the cap: it begins anew. */
	assert_false(window(&world, 4000));
	assert_false(window(&world, 3999));
	assert_false(window(&world, 3999));
	assert_true(window(&world, 3999));
	assert_int_equal(world.governor.steps, 1);
	assert_false(window(&world, 0));
	assert_false(window(&world, 0));
	assert_true(window(&world, 0));
	assert_int_equal(world.governor.steps, 0);
	assert_false(window(&world, 0));
}

static void look__cost_that_follows_the_rate_does_not_swing(void **state)
{
	struct world world = world_of(10000);
	unsigned int changes = 0;

	(void)state;
	(void)window(&world, 0);
	/* 3 % at the full rate: 0.75 % after two steps, 1.5 % after one. */
	for (int i = 0; i < 100; i++)
		changes += window(&world, 30000 >> world.governor.steps);
	assert_int_equal(world.governor.steps, 2);
	assert_int_equal(changes, 2);
}

static void look__without_a_cap_steps_are_taken_back(void **state)
{
	struct world world = world_of(10000);

	(void)state;
	(void)window(&world, 0);
	assert_true(window(&world, 20000));
	world.governor.cap_ppm = 0;
	assert_false(window(&world, 900000));
	assert_false(window(&world, 900000));
	assert_true(window(&world, 900000));
	assert_int_equal(world.governor.steps, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(look__first_one_only_begins),
		cmocka_unit_test(look__at_the_cap_nothing_changes),
		cmocka_unit_test(look__steps_down_once_a_window_to_the_last),
		cmocka_unit_test(look__comes_back_after_calm_windows_in_a_row),
		cmocka_unit_test(look__cost_that_follows_the_rate_does_not_swing),
		cmocka_unit_test(look__without_a_cap_steps_are_taken_back),
	};

	return cmocka_run_group_tests_name("agent/governor", tests, NULL, NULL);
}
