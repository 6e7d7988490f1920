/* SPDX-License-Identifier: BSD-2-Clause */
#include "reader/machine_view.h"

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "../query/ledger_rows.h"
#include "base/cleanup.h"
#include "reader/text.h"
#include "render/short_paths.h"

#define FACTS "elapsed_ns=2000000000 samples=9 host_busy_ns=3000000000 host_cpus=4"

/* The text is the caller's to free. */
static char *printed(const struct ledger_row *row, size_t count, uint32_t rows,
		     unsigned int columns)
{
	CLEANUP(machine_release) struct machine machine = {0};
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	assert_non_null(out);
	machine_add_facts(&machine, FACTS);
	machine_add_facts(&machine, "pyprofd=0.1.0 kind=cpu hz=99 host=vm");
	ledger_rows_fill(&machine, row, count, false);
	machine_print(&machine, rows, columns, false, out);
	ledger_rows_close();
	fclose(out);
	return text;
}

static void machine__windows_add_up_and_the_busiest_come_first(void **state)
{
	static const struct ledger_row row[] = {
		{.pid = 7,
		 .comm = "python3",
		 .python = 100,
		 .native = 50,
		 .kernel = 50,
		 .where = PP_LEDGER_LOCK,
		 .waited = 450,
		 .also_gil = 150},
		{.pid = 9, .comm = "sh", .unsampled = 1, .where = PP_LEDGER_CHILD, .waited = 999},
		{.pid = 7,
		 .comm = "python3",
		 .python = 700,
		 .kernel = 100,
		 .where = PP_LEDGER_LOCK,
		 .waited = 150},
		{.pid = 8, .comm = "gzip", .native = 200, .where = PP_LEDGER_DISK, .waited = 800}};
	OWNED_MEM char *text = NULL;
	CLEANUP(machine_release) struct machine machine = {0};

	(void)state;
	/* Of two windows, each with half of the time. */
	machine_add_facts(&machine, FACTS);
	machine_add_facts(&machine, FACTS);
	assert_int_equal(machine.elapsed_ns, 4000000000);
	assert_int_equal(machine.busy_ns, 6000000000);
	assert_int_equal(machine.cpus, 4);
	text = printed(row, ARRAY_SIZE(row), 2, 0);
	assert_string_equal(
		text,
		"machine: 38 % of 4 CPUs busy; 3 processes took 60.0 % of one: Python 67 %, native "
		"21 %, "
		"kernel 12 %\n"
		"    %CPU  PYTHON  NATIVE  KERNEL   %WAIT  PROCESS\n"
		"    50.0    40.0     2.5     7.5    37.5  7 python3  waits: lock 80 %, gil 20 %\n"
		"    10.0     0.0    10.0     0.0    40.0  8 gzip  waits: disk 100 %\n"
		"     0.1     0.0     0.0     0.0    50.0  1 more  waits: child 100 %\n\n");
}

static void machine__one_process_is_no_machine(void **state)
{
	static const struct ledger_row row[] = {{.pid = 7, .comm = "a", .python = 1},
						{.pid = 8, .comm = "a", .python = 1}};
	OWNED_MEM char *text = printed(row, 1, 5, 0);
	CLEANUP(machine_release) struct machine no_facts = {0};

	(void)state;
	assert_string_equal(text, "");
	ledger_rows_fill(&no_facts, row, 2, false);
	machine_print(&no_facts, 5, 0, false, NULL);
	ledger_rows_close();
}

/* pyprofd writes rows of 256 processes and those that sum up the others. */
static void machine__processes_without_rows_are_in_the_sums(void **state)
{
	static const struct ledger_row row[] = {
		{.pid = 7, .comm = "a", .python = 1000, .where = PP_LEDGER_SLEEP, .waited = 1000},
		{.pid = 8, .comm = "b", .python = 400, .where = PP_LEDGER_SLEEP, .waited = 1600},
		{.python = 600, .where = PP_LEDGER_NET, .waited = 2000}};
	OWNED_MEM char *text = printed(row, ARRAY_SIZE(row), 1, 0);
	OWNED_MEM char *all = printed(row, ARRAY_SIZE(row), 5, 0);

	(void)state;
	assert_non_null(strstr(text, "; more than 2 processes took 100.0 % of one: Python 100 %,"));
	assert_non_null(strstr(text, "    50.0    50.0     0.0     0.0   180.0  over 1 more  "
				     "waits: net 56 %, sleep 44 %\n\n"));
	assert_non_null(strstr(all, "    30.0    30.0     0.0     0.0   100.0  others  "
				    "waits: net 100 %\n\n"));
}

static void machine__rows_fit_the_terminal(void **state)
{
	static const struct ledger_row row[] = {{.pid = 4194303,
						 .comm = "a_name_of_fifteen",
						 .native = 1234,
						 .where = PP_LEDGER_SLEEP,
						 .waited = 1000,
						 .also_gil = 1000},
						{.pid = 4194303,
						 .comm = "a_name_of_fifteen",
						 .where = PP_LEDGER_RUN_QUEUE,
						 .waited = 1000},
						{.pid = 4194303,
						 .comm = "a_name_of_fifteen",
						 .where = PP_LEDGER_DISK,
						 .waited = 1000},
						{.pid = 8,
						 .comm = "b",
						 .native = 100,
						 .unsampled = 500,
						 .where = PP_LEDGER_FAULT,
						 .waited = 1000}};

	(void)state;
	for (unsigned int columns = 66; columns < 126; columns += 3) {
		OWNED_MEM char *text = printed(row, ARRAY_SIZE(row), 5, columns);
		char *line, *rest;

		assert_non_null(strstr(text, "kernel 0 %, without a sample 27 %\n"));
		for (line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
			assert_true(text_columns_of(line) <= columns);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(machine__windows_add_up_and_the_busiest_come_first),
		cmocka_unit_test(machine__one_process_is_no_machine),
		cmocka_unit_test(machine__processes_without_rows_are_in_the_sums),
		cmocka_unit_test(machine__rows_fit_the_terminal),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
