/* SPDX-License-Identifier: BSD-2-Clause */
#include <cmocka.h>
#include <errno.h>
#include <stdlib.h>

#include "discover/process_figures.h"
#include "ledger/ledger_check.h"

/* What the scheduler says of every process here, and what it is asked. */
static struct scheduler_times says;
static int scheduler_err;
static bool asked_with_exits;

int scheduler_times_read(uint32_t tgid, struct scheduler_times *ret_times)
{
	(void)tgid;
	if (scheduler_err)
		return scheduler_err;
	*ret_times = says;
	return 0;
}

uint64_t scheduler_times_between(const struct scheduler_times *before,
				 const struct scheduler_times *after, bool has_exits)
{
	asked_with_exits = has_exits;
	return after->schedstat_ns - before->schedstat_ns;
}

static void says_now(uint64_t start_ns, uint64_t cpu_ns)
{
	scheduler_err = 0;
	says = (struct scheduler_times){.start_ns = start_ns, .schedstat_ns = cpu_ns};
}

static struct ledger_line line_of(uint32_t tgid, uint64_t cpu_ns, uint64_t life_ns)
{
	struct ledger_line line = {.id.tgid = tgid, .life_ns = life_ns};

	line.total_ns[PP_LEDGER_CPU] = cpu_ns;
	return line;
}

/* Process 7 was read when it had used 1,000 ns. */
static struct ledger_check *begun(void)
{
	struct ledger_check *check;

	assert_int_equal(ledger_check_new(&check), 0);
	says_now(5, 1000);
	ledger_check_begin(check, 7);
	return check;
}

/* A window's lines, each added and then compared. */
static void window(struct ledger_check *check, struct ledger_line *line, size_t count)
{
	for (size_t i = 0; i < count; i++)
		ledger_check_add(check, &line[i]);
	for (size_t i = 0; i < count; i++)
		ledger_check_compare(check, &line[i]);
}

static void compare__all_lines_of_a_process_since_the_reading_before(void **state)
{
	OWNED(ledger_check) struct ledger_check *check = begun();
	struct ledger_line line[3] = {line_of(7, 100, 1000), line_of(7, 30, 500), line_of(8, 9, 9)};

	(void)state;
	/* A window without a reading is compared with the next one's. */
	window(check, line, 3);
	assert_int_equal(line[0].checked_ns, 0);
	says_now(5, 1250);
	ledger_check_read(check, 7);
	line[1].exits = 1;
	window(check, line, 3);
	assert_int_equal(line[0].checked_ns, 3000);
	assert_int_equal(line[0].over_ns, 10); /* 2 * 130 of the ledger, 250 of the scheduler */
	assert_true(asked_with_exits);
	/* Once for each process, and a process that was not read has nothing. */
	assert_int_equal(line[1].checked_ns, 0);
	assert_int_equal(line[2].checked_ns, 0);
}

static void compare__begins_again_with_each_reading(void **state)
{
	OWNED(ledger_check) struct ledger_check *check = begun();
	struct ledger_line line = line_of(7, 40, 100);

	(void)state;
	for (uint64_t i = 1; i <= 3; i++) {
		says_now(5, 1000 + 50 * i);
		ledger_check_read(check, 7);
		window(check, &line, 1);
		assert_int_equal(line.over_ns, -10);
		assert_int_equal(line.checked_ns, 100);
		assert_false(asked_with_exits);
	}
}

static void compare__first_reading_has_nothing_before_it(void **state)
{
	OWNED(ledger_check) struct ledger_check *check = NULL;
	struct ledger_line line = line_of(7, 40, 100);

	(void)state;
	assert_int_equal(ledger_check_new(&check), 0);
	says_now(5, 1000);
	ledger_check_read(check, 7);
	window(check, &line, 1);
	assert_int_equal(line.checked_ns, 0);
	says_now(5, 1040);
	ledger_check_read(check, 7);
	window(check, &line, 1);
	assert_int_equal(line.checked_ns, 100);
	assert_int_equal(line.over_ns, 0);
}

static void compare__another_process_of_the_same_pid_is_not_compared(void **state)
{
	OWNED(ledger_check) struct ledger_check *check = begun();
	struct ledger_line line = line_of(7, 40, 100);

	(void)state;
	says_now(6, 1040);
	ledger_check_read(check, 7);
	window(check, &line, 1);
	assert_int_equal(line.checked_ns, 0);
	assert_int_equal(line.over_ns, 0);
}

static void read__process_that_is_gone_is_forgotten(void **state)
{
	OWNED(ledger_check) struct ledger_check *check = NULL;
	struct ledger_line line = line_of(7, 40, 100);

	(void)state;
	assert_int_equal(ledger_check_new(&check), 0);
	scheduler_err = -ESRCH;
	ledger_check_begin(check, 7);
	says_now(5, 1000);
	ledger_check_begin(check, 7);
	scheduler_err = -ESRCH;
	ledger_check_read(check, 7);
	window(check, &line, 1);
	assert_int_equal(line.checked_ns, 0);
	says_now(5, 1040);
	ledger_check_read(check, 7);
	window(check, &line, 1);
	assert_int_equal(line.checked_ns, 0);
}

static void read__more_processes_than_are_kept_begin_again(void **state)
{
	OWNED(ledger_check) struct ledger_check *check = NULL;
	struct ledger_line first = line_of(1, 40, 100), last = line_of(4097, 40, 100);

	(void)state;
	assert_int_equal(ledger_check_new(&check), 0);
	says_now(5, 1000);
	for (uint32_t tgid = 1; tgid <= 4096; tgid++)
		ledger_check_begin(check, tgid);
	says_now(5, 1040);
	ledger_check_read(check, 1);
	window(check, &first, 1);
	assert_int_equal(first.checked_ns, 100); /* 4,096 have room */
	ledger_check_begin(check, 4097);
	ledger_check_read(check, 4097);
	window(check, &last, 1);
	assert_int_equal(last.checked_ns, 100);
	first.checked_ns = 0;
	ledger_check_read(check, 1);
	window(check, &first, 1);
	assert_int_equal(first.checked_ns, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(compare__all_lines_of_a_process_since_the_reading_before),
		cmocka_unit_test(compare__begins_again_with_each_reading),
		cmocka_unit_test(compare__first_reading_has_nothing_before_it),
		cmocka_unit_test(compare__another_process_of_the_same_pid_is_not_compared),
		cmocka_unit_test(read__process_that_is_gone_is_forgotten),
		cmocka_unit_test(read__more_processes_than_are_kept_begin_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
