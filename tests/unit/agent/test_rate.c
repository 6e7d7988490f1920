/* SPDX-License-Identifier: BSD-2-Clause */
#include "agent/rate.h"

#include <cmocka.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <pyprofd/config.h>
#include <pyprofd/limits.h>

#include "attach/cpu_events.h"
#include "attach/kernel_side.h"
#include "options/options.h"

/* What the rate asks of the kernel. */
static struct {
	uint32_t hz;
	unsigned int calls;
	int err;
} events;
static struct pp_config config;

int cpu_events_set_hz(struct cpu_events *unused, uint32_t hz)
{
	(void)unused;
	events.calls++;
	if (!events.err)
		events.hz = hz;
	return events.err;
}

volatile struct pp_config *kernel_side_config(const struct kernel_side *unused)
{
	(void)unused;
	return &config;
}

uint32_t cpu_events_count(const struct cpu_events *unused)
{
	(void)unused;
	return 2;
}

/* The last line, and how many there were. */
static char told[256];
static unsigned int told_lines;

static void tell(const char *format, va_list arguments)
{
	vsnprintf(told, sizeof(told), format, arguments);
	told_lines++;
}

void log_line(enum log_level level, const char *format, ...)
{
	va_list arguments;

	(void)level;
	va_start(arguments, format);
	tell(format, arguments);
	va_end(arguments);
}

int log_line_errno(enum log_level level, int err, const char *format, ...)
{
	va_list arguments;

	(void)level;
	va_start(arguments, format);
	tell(format, arguments);
	va_end(arguments);
	return err;
}

static void assert_told(const char *text)
{
	if (told_lines != (text != NULL) || (text && !strstr(told, text)))
		fail_msg("%u lines, '%s' in place of '%s'", told_lines, told, text ?: "");
	told_lines = 0;
}

static struct rate rate_of(struct options *options)
{
	struct rate rate = {.options = options};

	events.calls = 0;
	events.err = 0;
	events.hz = options->hz;
	rate_init(&rate);
	return rate;
}

static void follow__changes_events_options_and_kernel_together(void **state)
{
	struct options options = {.hz = 99, .output_kind = OPTIONS_OUTPUT_DIRECTORY};
	struct rate rate = rate_of(&options);

	(void)state;
	rate_follow(&rate);
	assert_int_equal(events.calls, 0);
	rate_ask(&rate, 400, 0);
	rate_follow(&rate);
	assert_int_equal(events.hz, 400);
	assert_int_equal(options.hz, 400);
	/* 50 us a sample: 2 % of a period of 10 ms. */
	assert_int_equal(config.sample_budget_ns, 200000);
	rate_follow(&rate);
	assert_int_equal(events.calls, 1);
}

static void follow__failure_keeps_the_rate_and_is_told_once(void **state)
{
	struct options options = {.hz = 99, .output_kind = OPTIONS_OUTPUT_DIRECTORY};
	struct rate rate = rate_of(&options);

	(void)state;
	events.err = -EMFILE;
	rate_ask(&rate, 49, 0);
	told_lines = 0;
	rate_follow(&rate);
	assert_told("cannot sample at 49 Hz and stays at 99 Hz");
	rate_follow(&rate);
	assert_told(NULL);
	assert_int_equal(events.calls, 1);
	assert_int_equal(options.hz, 99);
	assert_int_equal(events.hz, 99);
}

static void govern__steps_change_rate_and_budgets_at_the_next_window(void **state)
{
	struct options options = {
		.hz = 100, .output_kind = OPTIONS_OUTPUT_DIRECTORY, .max_cpu_ppm = 10000};
	struct rate rate = rate_of(&options);
	const uint64_t second = 1000000000ULL;

	(void)state;
	told_lines = 0;
	rate_govern(&rate, 0, second);
	rate_follow(&rate);
	assert_int_equal(events.calls, 0);
	assert_told(NULL);
	/* 2 % of a core. */
	rate_govern(&rate, second / 50, 2 * second);
	assert_told("took 2.00 % of a core, more than --max-cpu 1.00: it goes down to 50 Hz");
	assert_int_equal(options.hz, 100);
	rate_follow(&rate);
	assert_int_equal(options.hz, 50);
	assert_int_equal(events.hz, 50);
	/* Half a percent of each of two CPUs. */
	assert_int_equal(config.sample_budget_ns, PP_BUDGET_PERIOD_NS / 200);
	/* Another rate is asked for: the step stays. */
	rate_ask(&rate, 200, 10000);
	rate_follow(&rate);
	assert_int_equal(options.hz, 100);
	/* Without a cap it comes back. */
	rate_ask(&rate, 200, 0);
	for (unsigned int i = 0; i < RATE_CALM_WINDOWS; i++)
		rate_govern(&rate, second / 50, (3 + i) * second);
	assert_told("took 0.00 % of a core: it goes back up to 200 Hz");
	rate_follow(&rate);
	assert_int_equal(options.hz, 200);
}

/* A step that fails is undone: without that, twice the rate would be asked for from then on. */
static void govern__step_that_fails_leaves_the_rate_as_it_was(void **state)
{
	struct options options = {
		.hz = 99, .output_kind = OPTIONS_OUTPUT_DIRECTORY, .max_cpu_ppm = 10000};
	struct rate rate = rate_of(&options);
	const uint64_t second = 1000000000ULL;

	(void)state;
	rate_govern(&rate, 0, second);
	rate_govern(&rate, second / 50, 2 * second);
	events.err = -EMFILE;
	rate_follow(&rate);
	assert_int_equal(events.calls, 1);
	events.err = 0;
	rate_govern(&rate, second / 50 + second / 200, 3 * second);
	rate_follow(&rate);
	assert_int_equal(options.hz, 99);
	assert_int_equal(rate.asked_hz, 99);
	/* The next step is tried. */
	rate_govern(&rate, second / 10, 4 * second);
	rate_follow(&rate);
	assert_int_equal(options.hz, 49);
}

static void govern__rate_never_falls_below_1_hz(void **state)
{
	struct options options = {
		.hz = 3, .output_kind = OPTIONS_OUTPUT_DIRECTORY, .max_cpu_ppm = 1000};
	struct rate rate = rate_of(&options);
	const uint64_t second = 1000000000ULL;

	(void)state;
	for (unsigned int i = 1; i <= RATE_STEPS_MAX + 3; i++) {
		told_lines = 0;
		rate_govern(&rate, i * second, i * second);
		/* The first look only begins; the one after the last step finds no more. */
		assert_int_equal(rate.is_floor_told, i > 1 + RATE_STEPS_MAX);
		assert_told(i == 1		      ? NULL
			    : i <= 1 + RATE_STEPS_MAX ? "it goes down to 1 Hz"
			    : i == 2 + RATE_STEPS_MAX ? "takes 100.00 % of a core at 1 Hz"
						      : NULL);
		rate_follow(&rate);
	}
	assert_int_equal(options.hz, 1);
	assert_true(rate.is_floor_told);
}

static void can_be__depends_on_start_and_output(void **state)
{
	struct options options = {.hz = 100, .output_kind = OPTIONS_OUTPUT_DIRECTORY};
	struct rate rate = rate_of(&options);

	(void)state;
	assert_true(rate_can_be(&rate, 1));
	assert_true(rate_can_be(&rate, 400));
	assert_false(rate_can_be(&rate, 401));
	options.output_kind = OPTIONS_OUTPUT_NONE;
	assert_true(rate_can_be(&rate, 50));
	options.output_kind = OPTIONS_OUTPUT_PPROF;
	assert_false(rate_can_be(&rate, 50));
	assert_true(rate_can_be(&rate, 100));
}

/* ---- steps ---- */

#define SECOND 1000000000ULL
#define WINDOW (10 * SECOND)

/* A clock and a counter of CPU time that the test moves. */
struct world {
	struct rate rate;
	uint64_t now_ns, spent_ns;
};

static struct world world_of(uint32_t cap_ppm)
{
	return (struct world){.rate = {.cap_ppm = cap_ppm, .asked_hz = 99}, .now_ns = 5 * SECOND};
}

/* A window in which pyprofd takes so much of a core.  Returns whether there is a step. */
static bool window(struct world *world, uint32_t ppm)
{
	const unsigned int before = world->rate.wanted_steps;

	world->now_ns += WINDOW;
	world->spent_ns += WINDOW / 1000000 * ppm;
	rate_govern(&world->rate, world->spent_ns, world->now_ns);
	return world->rate.wanted_steps != before;
}

static void govern__first_one_only_begins(void **state)
{
	struct world world = world_of(10000);

	(void)state;
	assert_false(window(&world, 900000));
	assert_int_equal(world.rate.wanted_steps, 0);
	assert_true(window(&world, 20000));
}

static void govern__at_the_cap_nothing_changes(void **state)
{
	struct world world = world_of(10000);

	(void)state;
	(void)window(&world, 0);
	assert_false(window(&world, 10000));
	assert_true(window(&world, 10001));
	assert_int_equal(world.rate.wanted_steps, 1);
}

static void govern__steps_down_once_a_window_to_the_last(void **state)
{
	struct world world = world_of(10000);

	(void)state;
	(void)window(&world, 0);
	for (unsigned int i = 1; i <= RATE_STEPS_MAX; i++) {
		assert_true(window(&world, 50000));
		assert_int_equal(world.rate.wanted_steps, i);
	}
	assert_false(window(&world, 50000));
	assert_int_equal(world.rate.wanted_steps, RATE_STEPS_MAX);
}

static void govern__comes_back_after_calm_windows_in_a_row(void **state)
{
	struct world world = world_of(10000);

	(void)state;
	(void)window(&world, 0);
	(void)window(&world, 20000);
	(void)window(&world, 20000);
	assert_int_equal(world.rate.wanted_steps, 2);
	assert_false(window(&world, 3999));
	assert_false(window(&world, 3999));
	/* Twice as much would be too near to the cap: it begins anew. */
	assert_false(window(&world, 4000));
	assert_false(window(&world, 3999));
	assert_false(window(&world, 3999));
	assert_true(window(&world, 3999));
	assert_int_equal(world.rate.wanted_steps, 1);
	assert_false(window(&world, 0));
	assert_false(window(&world, 0));
	assert_true(window(&world, 0));
	assert_int_equal(world.rate.wanted_steps, 0);
	assert_false(window(&world, 0));
}

static void govern__cost_that_follows_the_rate_does_not_swing(void **state)
{
	struct world world = world_of(10000);
	unsigned int changes = 0;

	(void)state;
	(void)window(&world, 0);
	/* 3 % at the full rate: 0.75 % after two steps, 1.5 % after one. */
	for (int i = 0; i < 100; i++)
		changes += window(&world, 30000 >> world.rate.wanted_steps);
	assert_int_equal(world.rate.wanted_steps, 2);
	assert_int_equal(changes, 2);
}

static void govern__without_a_cap_steps_are_taken_back(void **state)
{
	struct world world = world_of(10000);

	(void)state;
	(void)window(&world, 0);
	assert_true(window(&world, 20000));
	world.rate.cap_ppm = 0;
	assert_false(window(&world, 900000));
	assert_false(window(&world, 900000));
	assert_true(window(&world, 900000));
	assert_int_equal(world.rate.wanted_steps, 0);
}

/* ---- the budgets of walks ---- */

#define SAMPLES_AND_WAITS (PP_CAPTURE_CPU | PP_CAPTURE_OFFCPU)
#define PERCENT_NS (PP_BUDGET_PERIOD_NS / 100)

static struct walk_budgets budgets_at(uint32_t hz, uint32_t captures, uint32_t ppm)
{
	const struct options options = {
		.hz = hz, .events = captures, .max_cpu_ppm = 4 * ppm, .duration_ns = 1};

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
		cmocka_unit_test(follow__changes_events_options_and_kernel_together),
		cmocka_unit_test(follow__failure_keeps_the_rate_and_is_told_once),
		cmocka_unit_test(govern__steps_change_rate_and_budgets_at_the_next_window),
		cmocka_unit_test(govern__step_that_fails_leaves_the_rate_as_it_was),
		cmocka_unit_test(govern__rate_never_falls_below_1_hz),
		cmocka_unit_test(can_be__depends_on_start_and_output),
		cmocka_unit_test(walk_budgets__follow_the_rate_within_their_bounds),
		cmocka_unit_test(walk_budgets__of_a_run_with_an_end_are_the_cap),
		cmocka_unit_test(walk_budgets__of_memory_is_a_percent_when_it_is_captured),
		cmocka_unit_test(walk_budgets__of_memory_by_default_is_less),
		cmocka_unit_test(walk_budgets__share_the_cap_of_a_core),
		cmocka_unit_test(govern__first_one_only_begins),
		cmocka_unit_test(govern__at_the_cap_nothing_changes),
		cmocka_unit_test(govern__steps_down_once_a_window_to_the_last),
		cmocka_unit_test(govern__comes_back_after_calm_windows_in_a_row),
		cmocka_unit_test(govern__cost_that_follows_the_rate_does_not_swing),
		cmocka_unit_test(govern__without_a_cap_steps_are_taken_back),
	};

	return cmocka_run_group_tests_name("agent/rate", tests, NULL, NULL);
}
