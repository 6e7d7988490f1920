/* SPDX-License-Identifier: BSD-2-Clause */
#include "discover/process_figures.h"

#include <cmocka.h>
#include <errno.h>
#include <unistd.h>

#include "base/clock.h"

static void schedstat_parse__first_field_is_ns_on_the_cpu(void **state)
{
	uint64_t ns = 7;

	(void)state;
	assert_int_equal(schedstat_parse("60518194 316725602 41\n", &ns), 0);
	assert_int_equal(ns, 60518194);
	assert_int_equal(schedstat_parse("", &ns), -EBADMSG);
	assert_int_equal(schedstat_parse("-1 2 3", &ns), -EBADMSG);
	assert_int_equal(schedstat_parse("99999999999999999999999 2 3", &ns), -EBADMSG);
	assert_int_equal(schedstat_parse("12", &ns), -EBADMSG);
	assert_int_equal(ns, 60518194);
}

static void scheduler_times__between_two_readings_are_what_the_process_used(void **state)
{
	struct scheduler_times before, after;
	uint64_t began_ns, used_ns;

	(void)state;
	assert_int_equal(scheduler_times_read((uint32_t)getpid(), &before), 0);
	began_ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
	while (clock_ns(CLOCK_PROCESS_CPUTIME_ID) - began_ns < 100 * NS_PER_MS)
		;
	used_ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID) - began_ns;
	assert_int_equal(scheduler_times_read((uint32_t)getpid(), &after), 0);
	assert_int_equal(before.start_ns, after.start_ns);
	/* A tick of either reading: 10 ms. */
	assert_in_range(scheduler_times_between(&before, &after, false), used_ns - 20 * NS_PER_MS,
			used_ns + 20 * NS_PER_MS);
	assert_in_range(scheduler_times_between(&before, &after, true), used_ns - 30 * NS_PER_MS,
			used_ns + 30 * NS_PER_MS);
	assert_int_equal(scheduler_times_read(0x7fffffff, &after), -ESRCH);
}

static void scheduler_times__of_threads_that_exited_come_from_stat(void **state)
{
	const struct scheduler_times before = {
		.stat_ns = 100, .schedstat_ns = 90, .threads = 2, .has_schedstat = true};
	struct scheduler_times after = {
		.stat_ns = 150, .schedstat_ns = 130, .threads = 2, .has_schedstat = true};

	(void)state;
	assert_int_equal(scheduler_times_between(&before, &after, false), 40);
	assert_int_equal(scheduler_times_between(&before, &after, true), 50);
	after.threads = 1;
	assert_int_equal(scheduler_times_between(&before, &after, false), 50);
	after.threads = 2;
	after.has_schedstat = false;
	assert_int_equal(scheduler_times_between(&before, &after, false), 50);
	assert_int_equal(scheduler_times_between(&after, &before, false), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(schedstat_parse__first_field_is_ns_on_the_cpu),
		cmocka_unit_test(scheduler_times__between_two_readings_are_what_the_process_used),
		cmocka_unit_test(scheduler_times__of_threads_that_exited_come_from_stat),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
