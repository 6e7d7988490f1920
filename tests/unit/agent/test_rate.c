/* SPDX-License-Identifier: BSD-2-Clause */
/* sources: agent/rate.c agent/walk_budgets.c base/log.c base/utf8.c */
#include "agent/rate.h"

#include <cmocka.h>
#include <errno.h>

#include <pyprofd/config.h>

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
	rate.wanted_hz = 400;
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
	config.sample_period_ns = 7;
	events.err = -EMFILE;
	rate.wanted_hz = 49;
	log_set_level(LOG_LEVEL_ERROR);
	rate_follow(&rate);
	rate_follow(&rate);
	assert_int_equal(events.calls, 1);
	assert_int_equal(options.hz, 99);
	assert_int_equal(config.sample_period_ns, 7);
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
		cmocka_unit_test(can_be__depends_on_start_and_output),
	};

	return cmocka_run_group_tests_name("agent/rate", tests, NULL, NULL);
}
