/* SPDX-License-Identifier: BSD-2-Clause */
/* sources: query/process_memory.c profile/memory_line.c base/index_table.c */
#include "query/process_memory.h"

#include <cmocka.h>
#include <math.h>
#include <stdio.h>

#include "base/cleanup.h"

static void add(struct process_memories *memories, unsigned int pid, const char *comm,
		unsigned int at_s, unsigned int anonymous, unsigned int peak)
{
	char text[256];

	snprintf(text, sizeof(text),
		 "memory pid=%u comm=%s at=%u000 anon=%u file=5 shmem=6 peak=%u", pid, comm, at_s,
		 anonymous, peak);
	assert_int_equal(process_memories_add(memories, text), 0);
}

static void memories__first_and_last_are_by_time_not_by_order(void **state)
{
	CLEANUP(process_memories_release) struct process_memories memories = {0};
	const struct process_memory *process;

	(void)state;
	add(&memories, 7, "a", 60, 500, 900);
	add(&memories, 7, "a", 30, 300, 1000);
	add(&memories, 7, "a", 120, 700, 950);
	assert_int_equal(process_memories_add(&memories, "ledger pid=7 comm=a threads=1"), 0);
	process_memories_sort(&memories);
	assert_int_equal(memories.count, 1);
	process = &memories.process[0];
	assert_int_equal(process->first.anonymous_bytes, 300);
	assert_int_equal(process->last.anonymous_bytes, 700);
	assert_int_equal(process->peak_bytes, 1000);
	/* 400 bytes in 90 s. */
	assert_true(fabs(process_memory_growth(process) - 400.0 * 60 / 90) < 1e-9);
}

static void growth__of_one_reading_is_not_known(void **state)
{
	CLEANUP(process_memories_release) struct process_memories memories = {0};

	(void)state;
	add(&memories, 7, "a", 60, 500, 900);
	assert_true(isnan(process_memory_growth(&memories.process[0])));
}

static void memories__largest_come_first(void **state)
{
	CLEANUP(process_memories_release) struct process_memories memories = {0};

	(void)state;
	add(&memories, 1, "a", 60, 100, 1);
	add(&memories, 2, "b", 60, 300, 1);
	add(&memories, 2, "other", 60, 200, 1);
	process_memories_sort(&memories);
	assert_int_equal(memories.count, 3);
	assert_string_equal(memories.process[0].last.comm, "b");
	assert_string_equal(memories.process[1].last.comm, "other");
	assert_string_equal(memories.process[2].last.comm, "a");
}

static void memories__selected_processes_alone(void **state)
{
	const struct select select = {.pid = {2}, .pid_count = 1};
	CLEANUP(process_memories_release) struct process_memories memories = {.select = &select};

	(void)state;
	add(&memories, 1, "a", 60, 100, 1);
	add(&memories, 2, "b", 60, 300, 1);
	assert_int_equal(process_memories_add(&memories, "memory others=3 at=60000 anon=1 file=1 "
							 "shmem=1 unread=0"),
			 0);
	assert_int_equal(memories.count, 1);
	assert_int_equal(memories.process[0].last.pid, 2);
	assert_int_equal(memories.others.others, 0);
}

static void memories__last_sum_of_others_is_kept(void **state)
{
	CLEANUP(process_memories_release) struct process_memories memories = {0};

	(void)state;
	assert_int_equal(process_memories_add(&memories, "memory others=3 at=60000 anon=1 file=1 "
							 "shmem=1 unread=9"),
			 0);
	assert_int_equal(process_memories_add(&memories, "memory others=4 at=50000 anon=1 file=1 "
							 "shmem=1 unread=0"),
			 0);
	assert_int_equal(memories.others.others, 3);
	assert_int_equal(memories.others.unread, 9);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(memories__first_and_last_are_by_time_not_by_order),
		cmocka_unit_test(growth__of_one_reading_is_not_known),
		cmocka_unit_test(memories__largest_come_first),
		cmocka_unit_test(memories__selected_processes_alone),
		cmocka_unit_test(memories__last_sum_of_others_is_kept),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
