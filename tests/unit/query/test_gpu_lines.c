/* SPDX-License-Identifier: BSD-2-Clause */
#include "query/gpu_lines.h"

#include <cmocka.h>

static void add(struct gpu_lines *lines, const char *text)
{
	assert_int_equal(gpu_lines_add(lines, text), 0);
}

static void fill(struct gpu_lines *lines)
{
	add(lines, "cuda pid=7 comm=a api=cuMemAlloc calls=3 kernel=");
	add(lines, "cuda pid=7 comm=a api=cuMemAlloc calls=4 kernel=");
	add(lines, "cuda pid=8 comm=b api=cuMemAlloc calls=5 kernel=");
	add(lines, "cuda others=9 calls=6");
	add(lines, "pid=7");
}

static void lines__of_all_windows_add_up(void **state)
{
	CLEANUP(gpu_lines_release) struct gpu_lines lines = {0};

	(void)state;
	fill(&lines);
	assert_int_equal(cuda_lines_count(lines.lines), 2);
	assert_int_equal(cuda_lines_sums(lines.lines, 0)->calls, 7);
	assert_int_equal(cuda_lines_others(lines.lines)->sums.calls, 6);
	assert_true(gpu_lines_are_whole(&lines));
}

static void lines__of_selected_processes_alone(void **state)
{
	const struct select select = {.pid = {8}, .pid_count = 1};
	CLEANUP(gpu_lines_release) struct gpu_lines lines = {.select = &select};

	(void)state;
	fill(&lines);
	assert_int_equal(cuda_lines_count(lines.lines), 1);
	assert_int_equal(cuda_lines_pid(lines.lines, 0), 8);
	assert_null(cuda_lines_others(lines.lines));
	assert_true(gpu_lines_are_whole(&lines));
}

static void lines__are_not_whole_where_stacks_or_labels_are_chosen(void **state)
{
	regex_t regex;
	struct select select = {.focus = &regex};
	struct gpu_lines lines = {.select = &select};

	(void)state;
	assert_false(gpu_lines_are_whole(&lines));
	select = (struct select){.label_count = 1};
	assert_false(gpu_lines_are_whole(&lines));
	select = (struct select){.thread = &regex};
	assert_false(gpu_lines_are_whole(&lines));
	select = (struct select){0};
	assert_true(gpu_lines_are_whole(&lines));
	add(&lines, "cuda around pid=7 comm=a api=cuMemAlloc calls=3 kernel=");
	assert_false(gpu_lines_are_whole(&lines));
	gpu_lines_release(&lines);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lines__of_all_windows_add_up),
		cmocka_unit_test(lines__of_selected_processes_alone),
		cmocka_unit_test(lines__are_not_whole_where_stacks_or_labels_are_chosen),
	};

	return cmocka_run_group_tests_name("query/gpu_lines", tests, NULL, NULL);
}
