/* SPDX-License-Identifier: BSD-2-Clause */
#include "query/coverage.h"

#include <cmocka.h>

static const char *say(const char *comment, const char *kind)
{
	static char text[COVERAGE_BYTES];
	struct coverage coverage = {};

	coverage_add(&coverage, comment);
	return coverage_text(&coverage, kind, text);
}

#define LOST                                                                                       \
	"elapsed_ns=8000000000 samples=310 lost=0 cpu_ns=3100000000 "                              \
	"scheduler_ns=22400000000 wait_ns=900000000 ledger_wait_ns=1000000000 more=1"

static void coverage__says_what_is_missing_of_a_kind(void **state)
{
	(void)state;
	assert_string_equal(say(LOST, "cpu"),
			    "only 13.8 % of the scheduler's 22.4 s of CPU time is in it");
	assert_string_equal(say(LOST, "offcpu"),
			    "only 90.0 % of the ledger's 1.0 s of waits is in it");
	assert_string_equal(say(LOST, "wall"),
			    "only 13.8 % of the scheduler's 22.4 s of CPU time and 90.0 % of the "
			    "ledger's 1.0 s of waits are in it");
	assert_string_equal(say(LOST, "gil"), "");
	assert_string_equal(say(LOST, NULL), "");
	assert_string_equal(say("pyprofd pid=1", "cpu"), "");
	assert_string_equal(say("samples=3", "wall"), "");
}

/* 10 s at 99 Hz: 97 % is within the counting error of both; of a thousand times as much it is
 * not. */
static void coverage__counting_error_misses_nothing(void **state)
{
	(void)state;
	assert_string_equal(say("samples=960 cpu_ns=9700000000 scheduler_ns=10000000000", "cpu"),
			    "");
	assert_string_not_equal(
		say("samples=960000 cpu_ns=9700000000000 scheduler_ns=10000000000000", "cpu"), "");
	assert_string_equal(
		say("samples=970000 cpu_ns=9810000000000 scheduler_ns=10000000000000", "cpu"), "");
	assert_string_equal(say("samples=990 cpu_ns=12000000000 scheduler_ns=10000000000", "cpu"),
			    "");
	assert_string_equal(say("wait_ns=981 ledger_wait_ns=1000", "offcpu"), "");
}

static void coverage__windows_add_up(void **state)
{
	char text[COVERAGE_BYTES];
	struct coverage coverage = {};

	(void)state;
	coverage_add(&coverage, "wait_ns=1000000000 ledger_wait_ns=1000000000");
	coverage_add(&coverage, "wait_ns=500000000 ledger_wait_ns=1000000000");
	assert_string_equal(coverage_text(&coverage, "offcpu", text),
			    "only 75.0 % of the ledger's 2.0 s of waits is in it");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(coverage__says_what_is_missing_of_a_kind),
		cmocka_unit_test(coverage__counting_error_misses_nothing),
		cmocka_unit_test(coverage__windows_add_up),
	};

	return cmocka_run_group_tests_name("reader/coverage", tests, NULL, NULL);
}
