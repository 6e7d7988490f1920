/* SPDX-License-Identifier: BSD-2-Clause */
#include "query/gpu_findings.h"

#include <cmocka.h>
#include <math.h>
#include <string.h>

#define SECOND 1e9

/* A hundred seconds in which nothing stands out: 100 launches for a synchronisation, which waits
 * for a millisecond. */
static struct gpu_sums quiet(void)
{
	return (struct gpu_sums){.wall_ns = 100 * SECOND,
				 .launches = 100000,
				 .syncs = 1000,
				 .sync_wait_ns = 1 * SECOND,
				 .median_wait_ns = 1e6,
				 .copies = 100,
				 .copy_median_bytes = 1 << 20,
				 .alloc_wall_ns = 40 * SECOND,
				 .launches_per_sync_min = 95,
				 .launches_per_sync_max = 105,
				 .windows_with_syncs = 10,
				 .has_cpu = true,
				 .has_waits = true,
				 .cpu_ns = 50 * SECOND,
				 .seen_ns = 100 * SECOND,
				 .labelled_ns = 99 * SECOND};
}

static struct gpu_finding judged(const struct gpu_sums *sums, enum gpu_finding_id id)
{
	struct gpu_finding finding[GPU_PROCESS_FINDINGS];

	gpu_findings_judge(sums, finding);
	for (unsigned int i = 0; i < GPU_PROCESS_FINDINGS; i++)
		if (finding[i].id == id)
			return finding[i];
	fail();
	return finding[0];
}

static enum gpu_verdict verdict(const struct gpu_sums *sums, enum gpu_finding_id id)
{
	return judged(sums, id).verdict;
}

static double figure(const struct gpu_finding *finding, const char *key)
{
	for (unsigned int i = 0; i < finding->figure_count; i++)
		if (!strcmp(finding->figure[i].key, key))
			return finding->figure[i].value;
	return NAN;
}

static void judge__a_quiet_process_has_no_finding_but_all_figures(void **state)
{
	const struct gpu_sums sums = quiet();
	struct gpu_finding finding[GPU_PROCESS_FINDINGS];

	(void)state;
	gpu_findings_judge(&sums, finding);
	for (unsigned int i = 0; i < GPU_PROCESS_FINDINGS; i++) {
		assert_int_equal(finding[i].id, i);
		assert_int_equal(finding[i].verdict, GPU_NOT_FOUND);
		assert_true(finding[i].figure_count > 0);
	}
}

static void sync__begins_at_a_fifth_of_the_time(void **state)
{
	struct gpu_sums sums = quiet();
	struct gpu_finding finding;

	(void)state;
	sums.launches = 4000;
	sums.sync_wait_ns = 20 * SECOND;
	finding = judged(&sums, GPU_FINDING_SYNC);
	assert_int_equal(finding.verdict, GPU_FOUND);
	assert_true(fabs(finding.lost_ns - 20 * SECOND) < 1);
	assert_true(fabs(figure(&finding, "sync_wait_share") - 0.2) < 1e-9);
	assert_true(fabs(figure(&finding, "launches_per_sync") - 4) < 1e-9);
	sums.sync_wait_ns = 19.9 * SECOND;
	assert_int_equal(verdict(&sums, GPU_FINDING_SYNC), GPU_NOT_FOUND);
}

static void sync__needs_one_for_fifty_launches(void **state)
{
	struct gpu_sums sums = quiet();

	(void)state;
	sums.sync_wait_ns = 90 * SECOND;
	sums.launches = 50000;
	assert_int_equal(verdict(&sums, GPU_FINDING_SYNC), GPU_FOUND);
	sums.launches = 50001;
	assert_int_equal(verdict(&sums, GPU_FINDING_SYNC), GPU_NOT_FOUND);
	/* What graphs run counts by kernels; what they record has not run. */
	sums.launches = 49000;
	sums.captured = 2000;
	assert_int_equal(verdict(&sums, GPU_FINDING_SYNC), GPU_FOUND);
	sums.nodes = 2000;
	assert_int_equal(verdict(&sums, GPU_FINDING_SYNC), GPU_NOT_FOUND);
}

static void starved__begins_at_15_percent_and_says_what_was_done_meanwhile(void **state)
{
	struct gpu_sums sums = quiet();
	struct gpu_finding finding;

	(void)state;
	sums.drained_ns[PP_LEDGER_LOCK] = 10 * SECOND;
	sums.drained_ns[PP_LEDGER_CPU] = 5 * SECOND;
	finding = judged(&sums, GPU_FINDING_STARVED);
	assert_int_equal(finding.verdict, GPU_FOUND);
	assert_int_equal(finding.figure_count, 4);
	assert_string_equal(finding.figure[2].text, "Python on the CPU");
	assert_true(fabs(finding.figure[3].value - 2 / 3.0) < 1e-9);
	assert_true(fabs(finding.lost_ns - 15 * SECOND) < 1);
	sums.drained_ns[PP_LEDGER_CPU] = 4.9 * SECOND;
	assert_int_equal(verdict(&sums, GPU_FINDING_STARVED), GPU_NOT_FOUND);
}

static void starved__is_not_known_without_labels_or_samples(void **state)
{
	struct gpu_sums sums = quiet();

	(void)state;
	sums.drained_ns[PP_LEDGER_LOCK] = 40 * SECOND;
	sums.labelled_ns = 50 * SECOND;
	assert_int_equal(verdict(&sums, GPU_FINDING_STARVED), GPU_FOUND);
	sums.labelled_ns = 49.9 * SECOND;
	assert_int_equal(verdict(&sums, GPU_FINDING_STARVED), GPU_NOT_KNOWN);
	assert_non_null(judged(&sums, GPU_FINDING_STARVED).missing);
	sums = quiet();
	sums.has_cpu = false;
	assert_int_equal(verdict(&sums, GPU_FINDING_STARVED), GPU_NOT_KNOWN);
	sums = quiet();
	sums.seen_ns = 0;
	assert_int_equal(verdict(&sums, GPU_FINDING_STARVED), GPU_NOT_KNOWN);
	sums = quiet();
	sums.has_waits = false;
	assert_true(judged(&sums, GPU_FINDING_STARVED).doubts & GPU_DOUBT_NO_WAITS);
}

static struct gpu_sums launching(void)
{
	struct gpu_sums sums = quiet();

	sums.launches = 500000;
	sums.cpu_ns = 90 * SECOND;
	sums.launch_cpu_ns = 60 * SECOND;
	sums.median_wait_ns = 50000;
	return sums;
}

static void launch__begins_at_5000_launches_a_second(void **state)
{
	struct gpu_sums sums = launching();

	(void)state;
	assert_int_equal(verdict(&sums, GPU_FINDING_LAUNCH), GPU_FOUND);
	assert_true(fabs(judged(&sums, GPU_FINDING_LAUNCH).lost_ns - 90 * SECOND) < 1);
	sums.launches = 499999;
	assert_int_equal(verdict(&sums, GPU_FINDING_LAUNCH), GPU_NOT_FOUND);
	/* Kernels of graphs are not launched one by one. */
	sums.nodes = 1e7;
	assert_int_equal(verdict(&sums, GPU_FINDING_LAUNCH), GPU_NOT_FOUND);
}

static void launch__needs_the_thread_on_the_cpu(void **state)
{
	struct gpu_sums sums = launching();

	(void)state;
	sums.cpu_ns = 89.9 * SECOND;
	assert_int_equal(verdict(&sums, GPU_FINDING_LAUNCH), GPU_NOT_FOUND);
	/* Others have its CPU. */
	sums.ready_ns = 0.1 * SECOND;
	assert_int_equal(verdict(&sums, GPU_FINDING_LAUNCH), GPU_FOUND);
	sums.ready_ns = 0;
	/* A thread that lived for less than was recorded. */
	sums.seen_ns = 95 * SECOND;
	assert_int_equal(verdict(&sums, GPU_FINDING_LAUNCH), GPU_FOUND);
	sums.has_waits = false;
	assert_int_equal(verdict(&sums, GPU_FINDING_LAUNCH), GPU_NOT_FOUND);
	sums.has_cpu = false;
	assert_int_equal(verdict(&sums, GPU_FINDING_LAUNCH), GPU_NOT_KNOWN);
}

static void launch__needs_synchronisations_that_hardly_wait(void **state)
{
	struct gpu_sums sums = launching();

	(void)state;
	sums.median_wait_ns = 50001;
	assert_int_equal(verdict(&sums, GPU_FINDING_LAUNCH), GPU_NOT_FOUND);
	sums.syncs = 0;
	sums.median_wait_ns = NAN;
	assert_int_equal(verdict(&sums, GPU_FINDING_LAUNCH), GPU_NOT_KNOWN);
}

static void copy__begins_at_a_twentieth_of_the_time(void **state)
{
	struct gpu_sums sums = quiet();

	(void)state;
	sums.copy_wait_ns = 5 * SECOND;
	assert_int_equal(verdict(&sums, GPU_FINDING_COPY), GPU_FOUND);
	sums.copy_wait_ns = 4.9 * SECOND;
	assert_int_equal(verdict(&sums, GPU_FINDING_COPY), GPU_NOT_FOUND);
}

static void tiny__are_100_a_second_below_a_page(void **state)
{
	struct gpu_sums sums = quiet();

	(void)state;
	sums.copies = 10000;
	sums.copy_median_bytes = 4095;
	sums.copy_cpu_ns = 3 * SECOND;
	sums.copy_wait_ns = 1 * SECOND;
	assert_int_equal(verdict(&sums, GPU_FINDING_TINY), GPU_FOUND);
	assert_true(fabs(judged(&sums, GPU_FINDING_TINY).lost_ns - 3 * SECOND) < 1);
	sums.copy_median_bytes = 4096;
	assert_int_equal(verdict(&sums, GPU_FINDING_TINY), GPU_NOT_FOUND);
	sums.copy_median_bytes = 4;
	sums.copies = 9999;
	assert_int_equal(verdict(&sums, GPU_FINDING_TINY), GPU_NOT_FOUND);
	sums.copies = 0;
	sums.copy_median_bytes = NAN;
	assert_int_equal(verdict(&sums, GPU_FINDING_TINY), GPU_NOT_FOUND);
}

static void alloc__churn_is_more_than_10_a_second(void **state)
{
	struct gpu_sums sums = quiet();

	(void)state;
	sums.allocs = 401;
	sums.alloc_host_ns = 7;
	assert_int_equal(verdict(&sums, GPU_FINDING_ALLOC), GPU_FOUND);
	assert_int_equal(judged(&sums, GPU_FINDING_ALLOC).doubts, 0);
	sums.allocs = 400;
	assert_int_equal(verdict(&sums, GPU_FINDING_ALLOC), GPU_NOT_FOUND);
	sums.alloc_wall_ns = sums.wall_ns;
	assert_int_equal(judged(&sums, GPU_FINDING_ALLOC).doubts, GPU_DOUBT_FIRST_MINUTE);
}

static void graph__begins_at_500_launches_that_repeat(void **state)
{
	struct gpu_sums sums = quiet();

	(void)state;
	sums.launches = 500000;
	sums.launches_per_sync_min = 450;
	sums.launches_per_sync_max = 540;
	assert_int_equal(verdict(&sums, GPU_FINDING_GRAPH), GPU_FOUND);
	sums.launches_per_sync_max = 541;
	assert_int_equal(verdict(&sums, GPU_FINDING_GRAPH), GPU_NOT_FOUND);
	sums.windows_with_syncs = 1;
	assert_int_equal(verdict(&sums, GPU_FINDING_GRAPH), GPU_FOUND);
	assert_true(judged(&sums, GPU_FINDING_GRAPH).doubts & GPU_DOUBT_ONE_WINDOW);
	sums.launches = 499999;
	assert_int_equal(verdict(&sums, GPU_FINDING_GRAPH), GPU_NOT_FOUND);
}

static void graph__is_none_where_there_are_graphs_or_no_period(void **state)
{
	struct gpu_sums sums = quiet();

	(void)state;
	sums.launches = 900000;
	sums.windows_with_syncs = 1;
	sums.captured = 1;
	assert_int_equal(verdict(&sums, GPU_FINDING_GRAPH), GPU_NOT_FOUND);
	sums.captured = 0;
	sums.graph_launches = 1;
	assert_int_equal(verdict(&sums, GPU_FINDING_GRAPH), GPU_NOT_FOUND);
	sums.graph_launches = 0;
	sums.syncs = 0;
	assert_int_equal(verdict(&sums, GPU_FINDING_GRAPH), GPU_NOT_KNOWN);
}

static void judge__findings_come_by_time_lost_and_estimates_say_so(void **state)
{
	struct gpu_sums sums = launching();
	struct gpu_finding finding[GPU_PROCESS_FINDINGS];

	(void)state;
	sums.is_scaled = true;
	sums.copy_wait_ns = 95 * SECOND;
	sums.allocs = 4000;
	sums.alloc_host_ns = 92 * SECOND;
	sums.labelled_ns = 0;
	gpu_findings_judge(&sums, finding);
	assert_int_equal(finding[0].id, GPU_FINDING_COPY);
	assert_int_equal(finding[1].id, GPU_FINDING_ALLOC);
	assert_int_equal(finding[2].id, GPU_FINDING_LAUNCH);
	assert_true(finding[2].doubts & GPU_DOUBT_SCALED);
	assert_false(finding[0].doubts & GPU_DOUBT_SCALED);
	assert_int_equal(finding[GPU_PROCESS_FINDINGS - 1].id, GPU_FINDING_STARVED);
}

static void judge__nothing_at_all_is_no_finding(void **state)
{
	const struct gpu_sums sums = {.median_wait_ns = NAN, .copy_median_bytes = NAN};
	struct gpu_finding finding[GPU_PROCESS_FINDINGS];

	(void)state;
	gpu_findings_judge(&sums, finding);
	for (unsigned int i = 0; i < GPU_PROCESS_FINDINGS; i++)
		assert_int_not_equal(finding[i].verdict, GPU_FOUND);
}

static enum gpu_verdict sms(double utilization, double active, double occupancy)
{
	struct gpu_finding finding;

	gpu_findings_judge_sms(utilization, active, occupancy, &finding);
	return finding.verdict;
}

static void sms__idle_while_a_kernel_runs_all_the_time(void **state)
{
	(void)state;
	assert_int_equal(sms(0.9, 0.3, NAN), GPU_FOUND);
	assert_int_equal(sms(0.9, 0.9, 0.3), GPU_FOUND);
	assert_int_equal(sms(0.89, 0.3, 0.3), GPU_NOT_FOUND);
	assert_int_equal(sms(1, 0.31, 0.31), GPU_NOT_FOUND);
	assert_int_equal(sms(1, NAN, 0.31), GPU_NOT_FOUND);
	assert_int_equal(sms(1, NAN, NAN), GPU_NOT_KNOWN);
	assert_int_equal(sms(NAN, 0.1, 0.1), GPU_NOT_KNOWN);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(judge__a_quiet_process_has_no_finding_but_all_figures),
		cmocka_unit_test(sync__begins_at_a_fifth_of_the_time),
		cmocka_unit_test(sync__needs_one_for_fifty_launches),
		cmocka_unit_test(starved__begins_at_15_percent_and_says_what_was_done_meanwhile),
		cmocka_unit_test(starved__is_not_known_without_labels_or_samples),
		cmocka_unit_test(launch__begins_at_5000_launches_a_second),
		cmocka_unit_test(launch__needs_the_thread_on_the_cpu),
		cmocka_unit_test(launch__needs_synchronisations_that_hardly_wait),
		cmocka_unit_test(copy__begins_at_a_twentieth_of_the_time),
		cmocka_unit_test(tiny__are_100_a_second_below_a_page),
		cmocka_unit_test(alloc__churn_is_more_than_10_a_second),
		cmocka_unit_test(graph__begins_at_500_launches_that_repeat),
		cmocka_unit_test(graph__is_none_where_there_are_graphs_or_no_period),
		cmocka_unit_test(judge__findings_come_by_time_lost_and_estimates_say_so),
		cmocka_unit_test(judge__nothing_at_all_is_no_finding),
		cmocka_unit_test(sms__idle_while_a_kernel_runs_all_the_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
