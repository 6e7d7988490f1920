/* SPDX-License-Identifier: BSD-2-Clause */
#include "reader/gpu_table.h"

#include <math.h>

#include "gpu_made.h"

/* Two processes run the same program. */
static void fill(struct made *made, struct gpu_table *table)
{
	static const struct made_sample sample[] = {
		{"cuLaunchKernel", "add", "", 12, {30}, 7},
		{"cuLaunchKernel", "add", "", 14, {20}, 7},
		{"cuLaunchKernel", "add", "", 14, {15}, 8},
		{"cuLaunchKernel", "sub", "", 14, {5}, 8},
		{"cuMemcpyDtoH", "", "DtoH", 20, {4, 80, 80, 16}, 7},
		{"cuMemcpyHtoDAsync", "", "HtoD", 21, {2, 0, 0, 4096}, 7},
		{"cuMemcpyHtoDAsync", "", "HtoD", 21, {2, 0, 0, 4096}, 8},
		{"cuStreamSynchronize", "", "", 30, {3, 600, 600, 0}, 7},
		{"cuStreamSynchronize", "", "", 30, {3, 500, 500, 0}, 8},
		{"cuMemAlloc", "", "", 40, {2, 9, 0, 512}, 7},
		{"cuMemFree", "", "", 41, {2, 9, 0, 0}, 7},
	};

	made_begin(made);
	for (size_t i = 0; i < ARRAY_SIZE(sample); i++)
		made_add(made, &sample[i]);
	made_total(made, &(struct made_total){"cuLaunchKernel", "add", 50, .spread = 50});
	made_total(made, &(struct made_total){"cuLaunchKernel", "add", 15, .pid = 8});
	assert_int_equal(gpu_table_fill(table, made->profile, made->totals, NULL), 0);
}

static uint32_t line_of(const struct gpu_table *table, const struct gpu_group *group)
{
	return table->code.code[group->code].line;
}

static void syncs__of_all_processes_are_ranked_by_the_time_lost(void **state)
{
	CLEANUP(gpu_table_release) struct gpu_table table = {0};
	CLEANUP(gpu_groups_release) struct gpu_groups groups = {0};
	CLEANUP(made_release) struct made made;
	const struct stack *stack;

	(void)state;
	fill(&made, &table);
	assert_int_equal(gpu_groups_fill(&groups, &table, GPU_VIEW_SYNCS), 0);
	assert_int_equal(groups.count, 2);
	assert_string_equal(gpu_text(&table, groups.group[0].word), "cuStreamSynchronize");
	assert_int_equal(groups.group[0].value[GPU_WAIT], 1100);
	assert_int_equal(groups.group[0].value[GPU_CALLS], 6);
	assert_int_equal(line_of(&table, &groups.group[0]), 30);
	/* Of .item() it is the copy that waits. */
	assert_string_equal(gpu_text(&table, groups.group[1].word), "cuMemcpyDtoH");
	assert_int_equal(groups.all[GPU_WAIT], 1180);
	stack = &made.profile->stacks.stack[groups.group[0].stack];
	assert_int_equal(made.profile->stacks
				 .location[stack->location[gpu_stack_place(made.profile, stack,
									   "cuStreamSynchronize")]]
				 .line,
			 30);
	assert_true(isnan(groups.group[0].variance[GPU_WAIT]));
}

static void copies__are_by_line_and_direction(void **state)
{
	CLEANUP(gpu_table_release) struct gpu_table table = {0};
	CLEANUP(gpu_groups_release) struct gpu_groups groups = {0};
	CLEANUP(made_release) struct made made;

	(void)state;
	fill(&made, &table);
	assert_int_equal(gpu_groups_fill(&groups, &table, GPU_VIEW_COPIES), 0);
	assert_int_equal(groups.count, 2);
	assert_string_equal(gpu_text(&table, groups.group[0].word), "HtoD");
	assert_int_equal(groups.group[0].value[GPU_BYTES], 8192);
	assert_string_equal(gpu_text(&table, groups.group[1].word), "DtoH");
}

static void kernels__have_the_line_with_most_of_their_launches(void **state)
{
	CLEANUP(gpu_table_release) struct gpu_table table = {0};
	CLEANUP(gpu_groups_release) struct gpu_groups groups = {0};
	CLEANUP(made_release) struct made made;

	(void)state;
	fill(&made, &table);
	assert_int_equal(gpu_groups_fill(&groups, &table, GPU_VIEW_KERNELS), 0);
	assert_int_equal(groups.count, 2);
	assert_string_equal(gpu_text(&table, groups.group[0].word), "add");
	assert_int_equal(groups.group[0].value[GPU_CALLS], 65);
	/* 30 of one line in one process; 20 and 15 of the other one in two. */
	assert_int_equal(line_of(&table, &groups.group[0]), 14);
	assert_int_equal(groups.group[0].line_value[GPU_CALLS], 35);
	assert_true(groups.group[0].line_variance[GPU_CALLS] > 0);
	assert_int_equal(groups.group[1].line_value[GPU_CALLS], 5);
}

/* What is live comes first; of several windows the last one's. */
static void memory__is_ranked_by_what_is_live(void **state)
{
	static const struct made_sample sample[] = {
		{"cuMemAlloc", "", "", 40, {2, 9, 0, 512, 0, 0}, 7},
		{"cuMemAlloc", "", "", 42, {1, 9, 0, 100, 100, 1}, 7},
		{"cuMemAlloc", "", "", 42, {0, 0, 0, 0, 300, 3}, 8},
		{"cuMemCreate", "", "", 43, {0, 0, 0, 0, 200, 1}, 8},
		{"", "", "", 44, {0, 0, 0, 0, 50, 1}, 8}, /* the function is forgotten */
		{"cuMemAlloc", "", "", 45, {0}, 8},
	};
	static const uint32_t line[] = {42, 43, 44, 40};
	CLEANUP(gpu_table_release) struct gpu_table table = {0};
	CLEANUP(gpu_groups_release) struct gpu_groups groups = {0};
	CLEANUP(made_release) struct made made;

	(void)state;
	made_begin(&made);
	for (size_t i = 0; i < ARRAY_SIZE(sample); i++)
		made_add(&made, &sample[i]);
	assert_int_equal(gpu_table_fill(&table, made.profile, made.totals, NULL), 0);
	assert_true(table.has_live);
	assert_int_equal(gpu_groups_fill(&groups, &table, GPU_VIEW_MEMORY), 0);
	assert_int_equal(groups.count, ARRAY_SIZE(line));
	for (size_t i = 0; i < ARRAY_SIZE(line); i++)
		assert_int_equal(line_of(&table, &groups.group[i]), line[i]);
	assert_int_equal(groups.group[0].value[GPU_LIVE], 400);
	assert_int_equal(groups.group[0].value[GPU_BLOCKS], 4);
	assert_int_equal(groups.all[GPU_LIVE], 650);
	/* It is exact. */
	assert_true(groups.group[0].variance[GPU_LIVE] == 0);
}

static void memory__has_allocations_and_frees(void **state)
{
	CLEANUP(gpu_table_release) struct gpu_table table = {0};
	CLEANUP(gpu_groups_release) struct gpu_groups groups = {0};
	CLEANUP(made_release) struct made made;

	(void)state;
	fill(&made, &table);
	assert_int_equal(gpu_groups_fill(&groups, &table, GPU_VIEW_MEMORY), 0);
	assert_int_equal(groups.count, 2);
	assert_int_equal(groups.group[0].value[GPU_BYTES], 512);
	assert_int_equal(line_of(&table, &groups.group[1]), 41);
}

static void groups__of_nothing_are_none(void **state)
{
	CLEANUP(gpu_table_release) struct gpu_table table = {0};
	CLEANUP(gpu_groups_release) struct gpu_groups groups = {0};
	CLEANUP(made_release) struct made made;

	(void)state;
	made_begin(&made);
	assert_int_equal(gpu_table_fill(&table, made.profile, made.totals, NULL), 0);
	assert_int_equal(gpu_groups_fill(&groups, &table, GPU_VIEW_KERNELS), 0);
	assert_int_equal(groups.count, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(syncs__of_all_processes_are_ranked_by_the_time_lost),
		cmocka_unit_test(copies__are_by_line_and_direction),
		cmocka_unit_test(kernels__have_the_line_with_most_of_their_launches),
		cmocka_unit_test(memory__is_ranked_by_what_is_live),
		cmocka_unit_test(memory__has_allocations_and_frees),
		cmocka_unit_test(groups__of_nothing_are_none),
	};

	return cmocka_run_group_tests_name("reader/gpu_groups", tests, NULL, NULL);
}
