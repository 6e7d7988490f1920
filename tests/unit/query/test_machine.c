/* SPDX-License-Identifier: BSD-2-Clause */
#include "query/machine.h"

#include "ledger_rows.h"

static void machine__each_state_has_its_sum(void **state)
{
	CLEANUP(machine_release) struct machine machine = {0};
	const struct machine_process *process;
	struct record record;

	(void)state;
	ledger_rows_open();
	for (unsigned int i = 0; i < 2 * LEDGER_STATE_COUNT; i++) {
		assert_int_equal(record_begin(&record, strings, PP_PROFILE_LEDGER,
					      (struct pp_process_id){.tgid = 7}, "a"),
				 0);
		ledger_rows_put(&record, i % LEDGER_STATE_COUNT, 1LL << i % LEDGER_STATE_COUNT);
	}
	/* What is not known, and what cannot be. */
	record_next(&record);
	record.sample.value[PP_LEDGER_TIME] = 5;
	assert_int_equal(record_about(&record, strings, "state", "dreams"), 0);
	assert_int_equal(profile_add_record(profile, &record), 0);
	assert_int_equal(record_begin(&record, strings, PP_PROFILE_LEDGER,
				      (struct pp_process_id){.tgid = 8}, "b"),
			 0);
	ledger_rows_put(&record, LEDGER_PYTHON, -5);
	assert_int_equal(machine_fill(&machine, profile, false), 0);
	assert_int_equal(machine.count, 1);
	process = &machine.process[0];
	for (unsigned int i = 0; i < LEDGER_STATE_COUNT; i++)
		assert_int_equal(process->ns[i], 2LL << i);
	assert_int_equal(machine_cpu_ns(process), 2 + 4 + 8 + 16);
	assert_int_equal(machine_wait_ns(process), (2LL << LEDGER_STATE_COUNT) - 32);
	ledger_rows_close();
}

static void machine__the_busiest_come_first_then_those_that_wait_most(void **state)
{
	static const struct ledger_row row[] = {
		{.pid = 4, .comm = "d", .where = PP_LEDGER_SLEEP, .waited = 1},
		{.pid = 3, .comm = "c", .where = PP_LEDGER_SLEEP, .waited = 9},
		{.pid = 2, .comm = "b", .python = 1},
		{.pid = 1, .comm = "a", .kernel = 2},
		{.python = 8}};
	static const int64_t order[] = {1, 2, 3, 4};
	CLEANUP(machine_release) struct machine machine = {0};

	(void)state;
	ledger_rows_fill(&machine, row, ARRAY_SIZE(row), false);
	assert_int_equal(machine.count, ARRAY_SIZE(order));
	for (size_t i = 0; i < ARRAY_SIZE(order); i++)
		assert_int_equal(machine.process[i].pid, order[i]);
	assert_true(machine.has_others);
	assert_int_equal(machine.others.ns[LEDGER_PYTHON], 8 * MS);
	ledger_rows_close();
}

/* An exec gives another name. */
static void machine__by_pid_has_one_sum_under_the_last_name(void **state)
{
	static const struct ledger_row row[] = {{.pid = 7, .comm = "sh", .native = 1},
						{.pid = 8, .comm = "sh", .native = 1},
						{.pid = 7, .comm = "python3", .native = 2},
						{.pid = 7, .comm = "python3", .kernel = 4}};
	CLEANUP(machine_release) struct machine by_pid = {0}, by_name = {0};

	(void)state;
	ledger_rows_fill(&by_pid, row, ARRAY_SIZE(row), true);
	assert_int_equal(by_pid.count, 2);
	assert_string_equal(by_pid.process[0].comm, "python3");
	assert_int_equal(machine_cpu_ns(&by_pid.process[0]), 7 * MS);
	assert_int_equal(machine_fill(&by_name, profile, false), 0);
	assert_int_equal(by_name.count, 3);
	assert_int_equal(machine_cpu_ns(&by_name.process[0]), 6 * MS);
	ledger_rows_close();
}

static void machine__profile_without_a_ledger_has_no_processes(void **state)
{
	const struct profile_options options = {
		.kind = "cpu", .value_type = {{"cpu", "nanoseconds"}}, .value_count = 1};
	CLEANUP(machine_release) struct machine machine = {0};

	(void)state;
	assert_int_equal(intern_new(&strings), 0);
	assert_int_equal(profile_new(&options, strings, &profile), 0);
	assert_int_equal(machine_fill(&machine, profile, false), 0);
	assert_int_equal(machine.count, 0);
	ledger_rows_close();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(machine__each_state_has_its_sum),
		cmocka_unit_test(machine__the_busiest_come_first_then_those_that_wait_most),
		cmocka_unit_test(machine__by_pid_has_one_sum_under_the_last_name),
		cmocka_unit_test(machine__profile_without_a_ledger_has_no_processes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
