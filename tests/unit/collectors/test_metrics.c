/* SPDX-License-Identifier: BSD-2-Clause */
#include "collectors/metrics.h"

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#define MS 1000000ULL
#define NOW_MS 1795273360165ULL

static char *text_of(const struct push_stats *stats, size_t count)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	assert_non_null(out);
	push_metrics_write(stats, count, NOW_MS, out);
	assert_int_equal(fclose(out), 0);
	return text;
}

static void expect(const char *text, const char *line)
{
	if (!strstr(text, line))
		fail_msg("no line '%s' in:\n%s", line, text);
}

static void push_metrics__say_what_was_counted(void **state)
{
	struct push_counters counters;
	struct push_stats stats[2];
	char *text;

	(void)state;
	push_counters_init(&counters, "one");
	push_counters_get(&counters, &stats[1]);
	assert_true(stats[1].works);
	push_count_request(&counters, 200, 50 * MS);
	push_count_request(&counters, 200, 51 * MS);
	push_count_request(&counters, 0, 31000 * MS);
	push_count_drop(&counters, PUSH_DROP_POISON, 3);
	PUSH_COUNT(&counters, windows, 5);
	PUSH_SET(&counters, works, false);
	PUSH_SET(&counters, sent_end_ms, NOW_MS - 61005);
	push_counters_get(&counters, &stats[0]);
	snprintf(stats[1].name, sizeof(stats[1].name), "two");
	stats[1].sent_end_ms = NOW_MS + 1; /* the clock was set back */
	text = text_of(stats, 2);
	expect(text, "# TYPE pyprofd_push_requests_total counter\n"
		     "pyprofd_push_requests_total{sink=\"one\",code=\"200\"} 2\n"
		     "pyprofd_push_requests_total{sink=\"one\",code=\"none\"} 1\n# HELP");
	expect(text, "pyprofd_push_dropped_profiles_total{sink=\"one\",reason=\"poison\"} 3\n");
	expect(text, "pyprofd_push_dropped_profiles_total{sink=\"two\",reason=\"retention\"} 0\n");
	expect(text, "pyprofd_push_windows_total{sink=\"one\"} 5\n");
	expect(text, "pyprofd_push_lag_seconds{sink=\"one\"} 61.005\n"
		     "pyprofd_push_lag_seconds{sink=\"two\"} 0.000\n");
	expect(text, "pyprofd_push_up{sink=\"one\"} 0\npyprofd_push_up{sink=\"two\"} 1\n");
	expect(text, "# TYPE pyprofd_push_duration_seconds histogram\n"
		     "pyprofd_push_duration_seconds_bucket{sink=\"one\",le=\"0.05\"} 1\n"
		     "pyprofd_push_duration_seconds_bucket{sink=\"one\",le=\"0.1\"} 2\n");
	expect(text, "{sink=\"one\",le=\"30\"} 2\n"
		     "pyprofd_push_duration_seconds_bucket{sink=\"one\",le=\"+Inf\"} 3\n"
		     "pyprofd_push_duration_seconds_sum{sink=\"one\"} 31.101000\n"
		     "pyprofd_push_duration_seconds_count{sink=\"one\"} 3\n");
	free(text);
	text = text_of(stats, 0);
	assert_string_equal(text, "");
	free(text);
	push_counters_destroy(&counters);
}

static void push_count_request__codes_beyond_the_bound_are_the_last(void **state)
{
	struct push_counters counters;
	struct push_stats stats;
	uint64_t sum = 0;

	(void)state;
	push_counters_init(&counters, "one");
	for (unsigned int i = 0; i < PUSH_CODES_MAX + 10; i++)
		push_count_request(&counters, 200 + i, MS);
	push_counters_get(&counters, &stats);
	assert_int_equal(stats.code_count, PUSH_CODES_MAX);
	for (size_t i = 0; i < stats.code_count; i++)
		sum += stats.request[i].count;
	assert_int_equal(sum, PUSH_CODES_MAX + 10);
	assert_int_equal(stats.request[PUSH_CODES_MAX - 1].count, 11);
	push_counters_destroy(&counters);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(push_metrics__say_what_was_counted),
		cmocka_unit_test(push_count_request__codes_beyond_the_bound_are_the_last),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
