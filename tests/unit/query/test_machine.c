/* SPDX-License-Identifier: BSD-2-Clause */
#include "query/machine.h"

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

static void add_all(struct machine *machine, const char *const *comment, size_t count)
{
	for (size_t i = 0; i < count; i++)
		assert_int_equal(machine_add(machine, comment[i]), 0);
}

/* Returns the wait's seconds by the ledger's name. */
static double wait(const struct machine_process *process, const char *name)
{
	for (unsigned int i = 0; i < MACHINE_WAITS; i++)
		if (!strcmp(machine_wait_name(i), name))
			return process->wait_s[i];
	fail_msg("the ledger has no %s", name);
	return 0;
}

static void machine__each_field_of_the_ledger_has_its_sum(void **state)
{
	static const char *const comment[] = {
		"ledger pid=7 comm=a threads=1 seconds=9.000 python=1.000 native=2.000 "
		"kernel=3.000 gil=0.500 lock=0.250 disk=0.125 net=4.000 gpu=2.500 "
		"sleep=5.000 child=6.000 fault=7.000 stopped=8.000 run_queue=9.000 "
		"unknown=10.000 off_scheduler=+0.10%",
		"ledger pid=7 comm=a threads=1 unsampled=0.500 gil=0.500"};
	CLEANUP(machine_release) struct machine machine = {0};
	const struct machine_process *process;

	(void)state;
	add_all(&machine, comment, ARRAY_SIZE(comment));
	assert_int_equal(machine.count, 1);
	process = &machine.process[0];
	assert_true(machine_cpu_s(process) == 6.5);
	assert_true(wait(process, "gil") == 1.0);
	assert_true(wait(process, "lock") == 0.25);
	assert_true(wait(process, "disk") == 0.125);
	assert_true(wait(process, "gpu") == 2.5);
	assert_true(wait(process, "run_queue") == 9.0);
	assert_true(wait(process, "unknown") == 10.0);
	assert_true(machine_wait_s(process) ==
		    1.0 + 0.25 + 0.125 + 4 + 2.5 + 5 + 6 + 7 + 8 + 9 + 10);
}

static void machine__the_busiest_come_first_then_those_that_wait_most(void **state)
{
	static const char *const comment[] = {
		"ledger pid=4 comm=d threads=1 sleep=1.000",
		"ledger pid=3 comm=c threads=1 sleep=9.000",
		"ledger pid=2 comm=b threads=1 python=1.000",
		"ledger pid=1 comm=a threads=1 kernel=2.000",
		"ledger pid=0 comm= threads=9 python=8.000 processes=9"};
	static const uint64_t order[] = {1, 2, 3, 4};
	CLEANUP(machine_release) struct machine machine = {0};

	(void)state;
	add_all(&machine, comment, ARRAY_SIZE(comment));
	machine_sort(&machine);
	assert_int_equal(machine.count, ARRAY_SIZE(order));
	for (size_t i = 0; i < ARRAY_SIZE(order); i++)
		assert_int_equal(machine.process[i].pid, order[i]);
	assert_true(machine.has_others && machine.others.python_s == 8.0);
}

/* An exec gives another name. */
static void machine__by_pid_has_one_sum_under_the_last_name(void **state)
{
	static const char *const comment[] = {"ledger pid=7 comm=sh threads=1 native=1.000",
					      "ledger pid=8 comm=sh threads=1 native=1.000",
					      "ledger pid=7 comm=python3 threads=1 native=2.000"};
	CLEANUP(machine_release) struct machine by_pid = {.by_pid = true}, by_name = {0};

	(void)state;
	add_all(&by_pid, comment, ARRAY_SIZE(comment));
	assert_int_equal(by_pid.count, 2);
	assert_string_equal(by_pid.process[0].comm, "python3");
	assert_true(by_pid.process[0].native_s == 3.0);
	add_all(&by_name, comment, ARRAY_SIZE(comment));
	assert_int_equal(by_name.count, 3);
}

static void machine__processes_are_bounded(void **state)
{
	CLEANUP(machine_release) struct machine machine = {0};
	char text[128];

	(void)state;
	for (unsigned int i = 0; i < MACHINE_MAX_PROCESSES + 3; i++) {
		snprintf(text, sizeof(text), "ledger pid=%u comm=x threads=1 python=0.1", i);
		assert_int_equal(machine_add(&machine, text), 0);
	}
	assert_int_equal(machine.count, MACHINE_MAX_PROCESSES);
	assert_int_equal(machine.left_out, 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(machine__each_field_of_the_ledger_has_its_sum),
		cmocka_unit_test(machine__the_busiest_come_first_then_those_that_wait_most),
		cmocka_unit_test(machine__by_pid_has_one_sum_under_the_last_name),
		cmocka_unit_test(machine__processes_are_bounded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
