/* SPDX-License-Identifier: BSD-2-Clause */
/* sources: ledger/ledger_sums.c */
#include "ledger/ledger_sums.h"

#include <cmocka.h>
#include <string.h>

#define S 1000000000ULL

static struct ledger_line line_of(uint32_t tgid, uint64_t cpu_ns, uint64_t gil_ns)
{
	struct ledger_line line = {.id = {.tgid = tgid, .generation = 1},
				   .life_ns = cpu_ns + gil_ns,
				   .threads = 2};

	line.total_ns[PP_LEDGER_CPU] = cpu_ns;
	line.total_ns[PP_LEDGER_GIL] = gil_ns;
	line.part[LEDGER_PYTHON] = cpu_ns / 4 * 3;
	line.part[LEDGER_KERNEL] = cpu_ns / 4;
	return line;
}

static void ledger_sums__windows_of_a_process_are_one_line(void **state)
{
	OWNED(ledger_sums) struct ledger_sums *sums = NULL;
	OWNED_MEM struct ledger_sum *list = NULL;
	struct ledger_line line = line_of(7, 4 * S, 6 * S);
	size_t count;

	(void)state;
	assert_int_equal(ledger_sums_new(&sums), 0);
	assert_int_equal(ledger_sums_add(sums, &line, "python3"), 0);
	line = line_of(9, 8 * S, 0);
	assert_int_equal(ledger_sums_add(sums, &line, "other"), 0);
	line = line_of(7, 8 * S, 2 * S);
	line.threads = 3;
	line.over_ns = -1000;
	line.checked_ns = 5;
	assert_int_equal(ledger_sums_add(sums, &line, ""), 0);
	assert_int_equal(ledger_sums_list(sums, &list, &count), 0);
	assert_int_equal(count, 2);
	assert_int_equal(list[0].line.id.tgid, 7);
	assert_string_equal(list[0].comm, "python3");
	assert_int_equal(list[0].line.total_ns[PP_LEDGER_CPU], 12 * S);
	assert_int_equal(list[0].line.total_ns[PP_LEDGER_GIL], 8 * S);
	assert_int_equal(list[0].line.life_ns, 20 * S);
	assert_int_equal(list[0].line.threads, 3);
	assert_int_equal(list[0].line.over_ns, -1000);
	assert_int_equal(list[0].line.checked_ns, 5);
	assert_int_equal(list[1].line.id.tgid, 9);
}

static void ledger_sums__too_many_processes_share_a_line(void **state)
{
	OWNED(ledger_sums) struct ledger_sums *sums = NULL;
	OWNED_MEM struct ledger_sum *list = NULL;
	size_t count;

	(void)state;
	assert_int_equal(ledger_sums_new(&sums), 0);
	for (uint32_t tgid = 1; tgid <= LEDGER_SUMS_MAX + 5; tgid++) {
		const struct ledger_line line = line_of(tgid, S, 0);

		assert_int_equal(ledger_sums_add(sums, &line, "a"), 0);
	}
	assert_int_equal(ledger_sums_list(sums, &list, &count), 0);
	assert_int_equal(count, LEDGER_SUMS_MAX + 1);
	assert_int_equal(list[0].line.id.tgid, 0);
	assert_int_equal(list[0].processes, 5);
	assert_int_equal(list[0].line.total_ns[PP_LEDGER_CPU], 5 * S);
}

static void ledger_sums_print__says_where_the_time_was_and_how_far_it_is_off(void **state)
{
	OWNED(ledger_sums) struct ledger_sums *sums = NULL;
	struct ledger_line line = line_of(7, 4 * S, 6 * S);
	char *text = NULL;
	size_t size = 0;
	FILE *stream = open_memstream(&text, &size);

	(void)state;
	line.over_ns = -20000000;
	line.checked_ns = 10 * S;
	assert_int_equal(ledger_sums_new(&sums), 0);
	assert_int_equal(ledger_sums_add(sums, &line, "python3"), 0);
	ledger_sums_print(sums, stream);
	fclose(stream);
	assert_string_equal(text,
			    "pyprofd: ledger: 10.0 thread-seconds, 100.00 % of threads x wall; time on "
			    "the CPU is -0.20 % of it off the scheduler's own\n"
			    "pyprofd:   7 python3: 10.0 thread-seconds: Python 30.0 %, kernel 10.0 %, "
			    "GIL wait 60.0 %\n");
	free(text);
}

static void ledger_sums_print__says_nothing_of_nothing(void **state)
{
	OWNED(ledger_sums) struct ledger_sums *sums = NULL;
	char *text = NULL;
	size_t size = 0;
	FILE *stream = open_memstream(&text, &size);

	(void)state;
	assert_int_equal(ledger_sums_new(&sums), 0);
	ledger_sums_print(sums, stream);
	fclose(stream);
	assert_int_equal(size, 0);
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ledger_sums__windows_of_a_process_are_one_line),
		cmocka_unit_test(ledger_sums__too_many_processes_share_a_line),
		cmocka_unit_test(ledger_sums_print__says_where_the_time_was_and_how_far_it_is_off),
		cmocka_unit_test(ledger_sums_print__says_nothing_of_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
