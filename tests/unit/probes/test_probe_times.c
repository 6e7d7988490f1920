/* SPDX-License-Identifier: BSD-2-Clause */
#include "probes/probe_times.h"

#include <cmocka.h>

#include "base/budget.h"

#define SECOND 1000000000ULL
#define START (100 * SECOND)
#define ONE (1U << PP_GATE_SCALE_SHIFT)

/* Probes 3 and 4, which goes with 3. */
static struct probe_times times;

static int set_up(void **state)
{
	(void)state;
	probe_times_begin(&times, SECOND);
	probe_times_add(&times, 3, 3, START);
	probe_times_add(&times, 4, 3, START);
	return 0;
}

static bool apply(uint32_t probe, uint64_t now_ns, uint64_t own_ns, struct pp_gate *ret_gate)
{
	const struct probe_pace_point point = {.time_ns = now_ns, .own_ns = own_ns};

	return probe_times_apply(&times, probe, &point, ret_gate);
}

static void are_used__once_one_is_there(void **state)
{
	struct probe_times none;

	(void)state;
	probe_times_begin(&none, SECOND);
	assert_false(probe_times_are_used(&none));
	assert_true(probe_times_are_used(&times));
}

static void look__full_share_stays_on(void **state)
{
	struct pp_gate gate;

	(void)state;
	assert_int_equal(probe_times_look(&times, START + 9 * SECOND, 7), 0);
	assert_false(apply(3, START + 9 * SECOND, 0, &gate));
	assert_int_equal(probe_times_next_ns(&times), UINT64_MAX);
	assert_int_equal(probe_times_on_ns(&times, 3, START + 9 * SECOND), 9 * SECOND);
}

static void look__share_goes_off_at_once_and_on_once_a_period(void **state)
{
	struct pp_gate gate;
	uint64_t now_ns = START + SECOND;

	(void)state;
	probe_times_set_share(&times, 3, 250000, now_ns);
	probe_times_set_share(&times, 4, 1, now_ns); /* it has its leader's */
	assert_int_equal(probe_times_look(&times, now_ns, UINT32_MAX), 1 << 3 | 1 << 4);
	assert_true(apply(3, now_ns, 0, &gate));
	assert_int_equal(gate.until_ns, 1);
	assert_true(apply(4, now_ns, 0, &gate));
	/* As late in the period as can be. */
	assert_int_equal(probe_times_next_ns(&times), now_ns + 3 * SECOND / 4);
	now_ns += 3 * SECOND / 4;
	assert_int_equal(probe_times_look(&times, now_ns - 1, 0), 1 << 3 | 1 << 4);
	assert_int_equal(probe_times_look(&times, now_ns, 0), 0);
	assert_true(apply(3, now_ns + 5, 0, &gate));
	assert_int_equal(gate.from_ns, now_ns + 5);
	assert_int_equal(gate.until_ns, now_ns + 5 + SECOND / 4);
	assert_int_equal(gate.scale, 4 * ONE);
	assert_true(apply(4, now_ns + 5, 0, &gate));
	assert_false(apply(4, now_ns + 7, 0, &gate));
	/* And the next one as early. */
	assert_int_equal(probe_times_look(&times, now_ns + 5 + SECOND / 4, 0), 1 << 3 | 1 << 4);
	assert_in_range(probe_times_next_ns(&times), now_ns + SECOND / 4 - 1,
			now_ns + SECOND / 4 + 10);
	assert_int_equal(probe_times_on_ns(&times, 3, now_ns + SECOND), SECOND + SECOND / 4);
}

static void look__periods_that_were_missed_count(void **state)
{
	struct pp_gate gate;
	uint64_t now_ns = START;

	(void)state;
	probe_times_set_share(&times, 3, 500000, now_ns);
	(void)probe_times_look(&times, now_ns, 0);
	(void)apply(3, now_ns, 0, &gate);
	(void)probe_times_look(&times, now_ns, 0);
	(void)apply(3, now_ns, 0, &gate);
	/* The thread was held up for two periods and a half. */
	now_ns += 3 * SECOND + SECOND / 2;
	(void)probe_times_look(&times, now_ns, 0);
	assert_true(apply(3, now_ns, 0, &gate));
	(void)probe_times_look(&times, now_ns, 0);
	assert_true(apply(3, now_ns, 0, &gate));
	assert_int_equal(gate.scale, 2 * 3 * ONE);
}

static void look__full_share_again_is_on_for_good(void **state)
{
	struct pp_gate gate;

	(void)state;
	probe_times_set_share(&times, 3, 100000, START);
	(void)probe_times_look(&times, START, UINT32_MAX);
	(void)apply(3, START, 0, &gate);
	probe_times_set_share(&times, 3, BUDGET_FULL, START + 1000);
	assert_int_equal(probe_times_look(&times, START + 1000, 0), 0);
	assert_true(apply(3, START + 1000, 0, &gate));
	assert_int_equal(gate.until_ns, 0);
	assert_int_equal(probe_times_on_ns(&times, 3, START + 1000 + SECOND), SECOND);
}

/* While it is on, the program does a third of what it does otherwise. */
static void apply__slower_program_counts_for_more(void **state)
{
	const uint64_t on_ns = SECOND / 4;
	uint64_t now_ns = START, own_ns = 0;
	struct pp_gate gate;

	(void)state;
	probe_times_set_share(&times, 3, 250000, now_ns);
	(void)probe_times_look(&times, now_ns, 0);
	(void)apply(3, now_ns, own_ns, &gate);
	for (unsigned int i = 0; i < 4; i++) {
		struct probe_pace_point close;

		(void)probe_times_look(&times, now_ns, 0);
		(void)apply(3, now_ns, own_ns, &gate);
		close = (struct probe_pace_point){now_ns + on_ns, own_ns + on_ns / 3};
		(void)probe_times_look(&times, close.time_ns, 0);
		probe_times_close(&times, &close);
		(void)apply(3, close.time_ns, close.own_ns, &gate);
		now_ns += SECOND;
		own_ns += on_ns / 3 + 3 * on_ns;
	}
	(void)probe_times_look(&times, now_ns, 0);
	assert_true(apply(3, now_ns, own_ns, &gate));
	/* All in all it does 10 twelfths, and meanwhile 4. */
	assert_in_range(gate.scale, 4 * ONE * 249 / 100, 4 * ONE * 251 / 100);
	/* Other programs: nothing is known of them. */
	probe_times_restart_paces(&times);
	(void)probe_times_look(&times, now_ns + on_ns, 0);
	(void)apply(3, now_ns + on_ns, own_ns + on_ns / 3, &gate);
	(void)probe_times_look(&times, now_ns + SECOND, 0);
	assert_true(apply(3, now_ns + SECOND, own_ns + 3 * on_ns, &gate));
	assert_int_equal(gate.scale, 4 * ONE);
}

static void on_ns__open_gate_has_been_on_until_now(void **state)
{
	struct pp_gate gate;
	uint64_t now_ns = START + SECOND;

	(void)state;
	probe_times_set_period(&times, 3, 4 * SECOND);
	probe_times_set_share(&times, 3, 500000, now_ns);
	probe_times_look(&times, now_ns, 0);
	assert_true(apply(3, now_ns, 0, &gate));
	assert_int_equal(probe_times_on_ns(&times, 3, now_ns), SECOND);
	now_ns = probe_times_next_ns(&times);
	probe_times_look(&times, now_ns, 0);
	assert_true(apply(3, now_ns, 0, &gate));
	assert_int_equal(gate.until_ns - gate.from_ns, 2 * SECOND);
	assert_int_equal(probe_times_on_ns(&times, 3, now_ns + SECOND / 2), SECOND + SECOND / 2);
	assert_int_equal(probe_times_on_ns(&times, 3, now_ns + 2 * SECOND), 3 * SECOND);
}

static void apply__probe_without_pace_stands_for_what_the_times_say(void **state)
{
	struct pp_gate gate = {};
	uint64_t own_ns = 0, now_ns = START + SECOND;

	(void)state;
	probe_times_leave_pace(&times, 3);
	probe_times_set_share(&times, 3, 500000, now_ns);
	/* The programs take three times as much CPU time while it is on. */
	for (uint32_t i = 0; i < 20; i++) {
		const uint64_t before_ns = now_ns;
		const struct probe_pace_point now = {.time_ns = now_ns, .own_ns = own_ns};

		probe_times_look(&times, now_ns, 0);
		probe_times_close(&times, &now);
		(void)apply(3, now_ns, own_ns, &gate);
		if (gate.until_ns > 1)
			assert_int_equal(gate.scale, 2 * ONE);
		now_ns = probe_times_next_ns(&times);
		own_ns += (now_ns - before_ns) * (gate.until_ns > 1 ? 3 : 1);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(are_used__once_one_is_there, set_up),
		cmocka_unit_test_setup(look__full_share_stays_on, set_up),
		cmocka_unit_test_setup(look__share_goes_off_at_once_and_on_once_a_period, set_up),
		cmocka_unit_test_setup(look__periods_that_were_missed_count, set_up),
		cmocka_unit_test_setup(look__full_share_again_is_on_for_good, set_up),
		cmocka_unit_test_setup(apply__slower_program_counts_for_more, set_up),
		cmocka_unit_test_setup(on_ns__open_gate_has_been_on_until_now, set_up),
		cmocka_unit_test_setup(apply__probe_without_pace_stands_for_what_the_times_say,
				       set_up),
	};

	return cmocka_run_group_tests_name("agent/probe_times", tests, NULL, NULL);
}
