/* SPDX-License-Identifier: BSD-2-Clause */
/* sources: agent/rate.c agent/governor.c agent/walk_budgets.c base/log.c base/utf8.c */
#include "agent/rate.h"

#include <cmocka.h>
#include <errno.h>

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

uint64_t cpu_events_period_ns(const struct cpu_events *unused)
{
	(void)unused;
	return 1000000000ULL / events.hz;
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
	assert_int_equal(config.sample_period_ns, 2500000);
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
	log_set_level(LOG_LEVEL_ERROR);
	rate_follow(&rate);
	rate_follow(&rate);
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
	log_set_level(LOG_LEVEL_ERROR);
	rate_govern(&rate, 0, second);
	rate_follow(&rate);
	assert_int_equal(events.calls, 0);
	/* 2 % of a core. */
	rate_govern(&rate, second / 50, 2 * second);
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
	for (unsigned int i = 0; i < GOVERNOR_CALM_WINDOWS; i++)
		rate_govern(&rate, second / 50, (3 + i) * second);
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
	log_set_level(LOG_LEVEL_ERROR);
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
	log_set_level(LOG_LEVEL_ERROR);
	for (unsigned int i = 1; i <= GOVERNOR_STEPS_MAX + 3; i++) {
		rate_govern(&rate, i * second, i * second);
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(follow__changes_events_options_and_kernel_together),
		cmocka_unit_test(follow__failure_keeps_the_rate_and_is_told_once),
		cmocka_unit_test(govern__steps_change_rate_and_budgets_at_the_next_window),
		cmocka_unit_test(govern__step_that_fails_leaves_the_rate_as_it_was),
		cmocka_unit_test(govern__rate_never_falls_below_1_hz),
		cmocka_unit_test(can_be__depends_on_start_and_output),
	};

	return cmocka_run_group_tests_name("agent/rate", tests, NULL, NULL);
}
