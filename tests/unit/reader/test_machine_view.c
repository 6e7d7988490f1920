/* SPDX-License-Identifier: BSD-2-Clause */
#include "reader/machine_view.h"

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "reader/text.h"
#include "render/short_paths.h"

#define FACTS "facts elapsed_ns=2000000000 samples=9 host_busy_ns=3000000000 host_cpus=4"

/* The text is the caller's to free. */
static char *printed(const char *const *comment, size_t count, uint32_t rows, unsigned int columns)
{
	CLEANUP(machine_release) struct machine machine = {0};
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	assert_non_null(out);
	for (size_t i = 0; i < count; i++)
		assert_int_equal(machine_add(&machine, comment[i]), 0);
	machine_print(&machine, rows, columns, false, out);
	fclose(out);
	return text;
}

static void machine__windows_add_up_and_the_busiest_come_first(void **state)
{
	static const char *const comment[] = {
		FACTS,
		"ledger pid=7 comm=python3 threads=2 seconds=2.000 python=0.200 native=0.100 "
		"kernel=0.100 "
		"gil=0.300 lock=0.900 sleep=0.000 run_queue=0.000 off_scheduler=+0.10%",
		"ledger pid=9 comm=sh threads=1 seconds=2.000 unsampled=0.001 child=1.999",
		FACTS,
		"ledger pid=7 comm=python3 threads=2 seconds=2.000 python=1.400 native=0.000 "
		"kernel=0.200 lock=0.300",
		"ledger pid=8 comm=gzip threads=1 seconds=2.000 native=0.400 disk=1.600",
		"pyprofd 0.1.0 cpu 99Hz host=vm",
	};
	OWNED_MEM char *text = printed(comment, ARRAY_SIZE(comment), 2, 0);

	(void)state;
	assert_string_equal(
		text,
		"machine: 38 % of 4 CPUs busy; 3 processes took 60.0 % of one: Python 67 %, native "
		"21 %, "
		"kernel 12 %\n"
		"    %CPU  PYTHON  NATIVE  KERNEL   %WAIT  PROCESS\n"
		"    50.0    40.0     2.5     7.5    37.5  7 python3  waits: lock 80 %, gil 20 %\n"
		"    10.0     0.0    10.0     0.0    40.0  8 gzip  waits: disk 100 %\n"
		"     0.0     0.0     0.0     0.0    50.0  1 more  waits: child 100 %\n\n");
}

static void machine__one_process_is_no_machine(void **state)
{
	static const char *const comment[] = {FACTS, "ledger pid=7 comm=a threads=1 python=1.0"};
	static const char *const no_facts[] = {"ledger pid=7 comm=a threads=1 python=1.0",
					       "ledger pid=8 comm=a threads=1 python=1.0"};
	OWNED_MEM char *text = printed(comment, 2, 5, 0), *none = printed(no_facts, 2, 5, 0);

	(void)state;
	assert_string_equal(text, "");
	assert_string_equal(none, "");
	free(none);
	none = NULL;
}

/* pyprofd writes 256 lines and one that sums up the other processes. */
static void machine__processes_without_a_line_are_in_the_sums(void **state)
{
	static const char *const comment[] = {
		FACTS,
		"ledger pid=7 comm=a threads=1 seconds=2.000 python=1.000 sleep=1.000",
		"ledger pid=8 comm=b threads=1 seconds=2.000 python=0.400 sleep=1.600",
		"ledger pid=0 comm= threads=9 seconds=4.000 python=0.600 net=2.000 processes=5",
	};
	OWNED_MEM char *text = printed(comment, ARRAY_SIZE(comment), 1, 0);
	OWNED_MEM char *all = printed(comment, ARRAY_SIZE(comment), 5, 0);

	(void)state;
	assert_non_null(strstr(text, "; more than 2 processes took 100.0 % of one: Python 100 %,"));
	assert_non_null(strstr(text, "    50.0    50.0     0.0     0.0   180.0  over 1 more  "
				     "waits: net 56 %, sleep 44 %\n\n"));
	assert_non_null(strstr(all, "    30.0    30.0     0.0     0.0   100.0  others  "
				    "waits: net 100 %\n\n"));
}

static void machine__names_and_numbers_are_not_believed(void **state)
{
	static const char *const comment[] = {
		FACTS,
		"ledger pid=7 comm=x threads=1 python=9 threads=1 python=0.5 native=nan kernel=inf "
		"sleep=-4 disk=1e400 gil",
		"ledger pid=8 comm= threads=2 python=",
		"ledger pid= comm=y threads=1 python=3",
		"ledger pid=9",
		"ledger pid=9 comm=none",
		"ledger",
	};
	OWNED_MEM char *text = printed(comment, ARRAY_SIZE(comment), 1, 0);

	(void)state;
	/* A pid that is none is read as 0: a row of its own, not another one's. */
	assert_non_null(strstr(text, "3 processes took 175.0 % of one"));
	assert_non_null(strstr(text, "   150.0   150.0     0.0     0.0     0.0  0 y\n"));
	assert_null(strstr(text, "nan"));
	assert_null(strstr(text, "inf"));
}

static void machine__rows_fit_the_terminal(void **state)
{
	static const char *const comment[] = {
		FACTS,
		"ledger pid=4194303 comm=a_name_of_fifteen threads=9 native=1.234 gil=1 sleep=1 "
		"run_queue=1 disk=1",
		"ledger pid=8 comm=b threads=1 native=0.1 unsampled=0.5 fault=1",
	};

	(void)state;
	for (unsigned int columns = 66; columns < 126; columns += 3) {
		OWNED_MEM char *text = printed(comment, ARRAY_SIZE(comment), 5, columns);
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
		cmocka_unit_test(machine__processes_without_a_line_are_in_the_sums),
		cmocka_unit_test(machine__names_and_numbers_are_not_believed),
		cmocka_unit_test(machine__rows_fit_the_terminal),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
