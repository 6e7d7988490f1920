/* SPDX-License-Identifier: BSD-2-Clause */
#include "reader/gpu_table.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>

#include "gpu_made.h"

static void fill(struct made *made, struct gpu_table *table)
{
	assert_int_equal(gpu_table_fill(table, made->profile, made->totals, NULL), 0);
}

static const struct gpu_call *find(const struct gpu_table *table, const char *api,
				   const char *kernel)
{
	for (uint32_t i = 0; i < table->call_count; i++)
		if (!strcmp(gpu_text(table, table->call[i].is.api), api) &&
		    !strcmp(gpu_text(table, table->call[i].is.kernel), kernel))
			return &table->call[i];
	return NULL;
}

static const char *line_name(const struct gpu_table *table, const struct gpu_call *call, uint32_t i)
{
	const struct gpu_line *line = &table->line[call->first_line + i];

	return gpu_text(table, table->code.code[line->code].name);
}

static void class__is_told_by_the_functions_name(void **state)
{
	static const struct {
		const char *api;
		enum gpu_class class;
	} row[] = {
		{"cuLaunchKernel", GPU_LAUNCH},	   {"cudaLaunchKernelExC", GPU_LAUNCH},
		{"cuGraphLaunch", GPU_GRAPH},	   {"cuMemcpyHtoDAsync", GPU_COPY},
		{"cudaMemcpy2D", GPU_COPY},	   {"cuMemsetD32Async", GPU_FILL},
		{"cuStreamSynchronize", GPU_SYNC}, {"cudaDeviceSynchronize", GPU_SYNC},
		{"cuMemAllocManaged", GPU_ALLOC},  {"cudaMallocAsync", GPU_ALLOC},
		{"cuMemHostAlloc", GPU_ALLOC},	   {"cuMemFreeHost", GPU_FREE},
		{"ncclAllReduce", GPU_COLLECTIVE}, {"", GPU_OTHER},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(row); i++)
		if (gpu_class_of(row[i].api) != row[i].class)
			fail_msg("%s: %s", row[i].api, gpu_class_name(gpu_class_of(row[i].api)));
	assert_string_equal(gpu_class_name(GPU_SYNC), "sync");
	assert_string_equal(gpu_class_head(GPU_SYNC), "synchronisations");
}

/* C code counts for the Python line that called it; without one, for itself. */
static void lines__are_those_that_called(void **state)
{
	CLEANUP(gpu_table_release) struct gpu_table table = {0};
	CLEANUP(made_release) struct made made;
	const struct gpu_call *call;

	(void)state;
	made_begin(&made);
	made_add(&made, &(struct made_sample){"cuLaunchKernel", "add", "", 12, {30}, 7});
	made_add(&made, &(struct made_sample){"cuLaunchKernel", "add", "", 14, {60}, 7});
	made_add(&made, &(struct made_sample){"cuLaunchKernel", "add", "", 0, {10}, 7});
	fill(&made, &table);
	assert_int_equal(table.call_count, 1);
	call = find(&table, "cuLaunchKernel", "add");
	assert_int_equal(call->value[GPU_CALLS], 100);
	assert_int_equal(call->class, GPU_LAUNCH);
	assert_int_equal(call->line_count, 3);
	assert_int_equal(table.code.code[table.line[call->first_line].code].line, 14);
	assert_string_equal(line_name(&table, call, 2), "run_it");
	assert_int_equal(gpu_call_rank(call), GPU_CALLS);
	assert_true(isnan(gpu_call_quantile(call, 0.5)) && isnan(gpu_call_mean(call)));
	assert_true(isnan(gpu_line_error(&table, &table.line[0], GPU_CALLS)));
	assert_int_equal(table.all[GPU_CALLS], 100);
}

static void calls__are_ordered_by_process_class_and_weight(void **state)
{
	CLEANUP(gpu_table_release) struct gpu_table table = {0};
	CLEANUP(made_release) struct made made;

	(void)state;
	made_begin(&made);
	made_add(&made, &(struct made_sample){"cuMemAlloc", "", "", 3, {1, 5}, 8});
	made_add(&made, &(struct made_sample){"cuStreamSynchronize", "", "", 3, {1, 900000, 9}, 7});
	made_add(&made, &(struct made_sample){"cuLaunchKernel", "sub", "", 3, {4}, 7});
	made_add(&made, &(struct made_sample){"cuLaunchKernel", "add", "", 3, {5}, 7});
	fill(&made, &table);
	assert_int_equal(table.call_count, 4);
	assert_string_equal(gpu_text(&table, table.call[0].is.kernel), "add");
	assert_string_equal(gpu_text(&table, table.call[1].is.kernel), "sub");
	assert_int_equal(table.call[2].class, GPU_SYNC);
	assert_int_equal(table.call[3].is.pid, 8);
	assert_int_equal(table.call[2].process, 0);
	assert_int_equal(table.call[3].process, 1);
	assert_int_equal(gpu_call_rank(&table.call[2]), GPU_HOST);
	assert_true(gpu_call_mean(&table.call[2]) > 899999);
	for (uint32_t i = 0; i < 4; i++)
		assert_int_equal(table.line[table.call[i].first_line].call, i);
}

static void quantiles__come_from_the_totals(void **state)
{
	CLEANUP(gpu_table_release) struct gpu_table table = {0};
	CLEANUP(made_release) struct made made;
	const struct gpu_call *call;

	(void)state;
	made_begin(&made);
	made_add(&made,
		 &(struct made_sample){"cuStreamSynchronize", "", "", 3, {10, 90000, 90000}, 7});
	made_total(&made, &(struct made_total){"cuStreamSynchronize", "", 6, 50000, .bucket = 4,
					       .timed = 6});
	made_total(&made, &(struct made_total){"cuStreamSynchronize", "", 4, 40000, .bucket = 5,
					       .timed = 4});
	fill(&made, &table);
	call = &table.call[0];
	assert_true(call->is_whole);
	assert_true(gpu_call_quantile(call, 0.5) > 4096 && gpu_call_quantile(call, 0.5) < 8192);
	assert_true(gpu_call_quantile(call, 0.99) > 8192 && gpu_call_quantile(call, 0.99) < 16384);
}

/* --focus has left out some of the calls: their times are not told apart. */
static void quantiles__of_other_calls_are_not_shown(void **state)
{
	CLEANUP(gpu_table_release) struct gpu_table table = {0};
	CLEANUP(made_release) struct made made;

	(void)state;
	made_begin(&made);
	made_add(&made, &(struct made_sample){"cuStreamSynchronize", "", "", 3, {3, 90, 90}, 7});
	made_total(&made, &(struct made_total){"cuStreamSynchronize", "", 6, 50000, .bucket = 4,
					       .timed = 6});
	fill(&made, &table);
	assert_false(table.call[0].is_whole);
	assert_true(isnan(gpu_call_quantile(&table.call[0], 0.5)));
	assert_int_equal(table.call[0].value[GPU_CALLS], 3);
}

static double error_of(int64_t spread, int64_t first, int64_t second)
{
	CLEANUP(gpu_table_release) struct gpu_table table = {0};
	CLEANUP(made_release) struct made made;

	made_begin(&made);
	made_add(&made, &(struct made_sample){"cuLaunchKernel", "add", "", 12, {first}, 7});
	if (second)
		made_add(&made,
			 &(struct made_sample){"cuLaunchKernel", "add", "", 14, {second}, 7});
	made_total(&made,
		   &(struct made_total){"cuLaunchKernel", "add", first + second, .spread = spread});
	fill(&made, &table);
	return gpu_line_error(&table, &table.line[0], GPU_CALLS);
}

static void error__is_that_of_as_many_calls_as_were_seen(void **state)
{
	(void)state;
	/* Each call was walked. */
	assert_true(error_of(0, 750, 250) < 1e-9);
	/* Every hundredth: 10,000 of 1,000,000. */
	assert_true(fabs(error_of(100000000, 500000, 500000) - 5000) < 5);
	/* Four were seen, all of one line: another may have had some. */
	assert_true(error_of(250000, 1000, 0) > 100);
	assert_true(error_of(250000, 1000, 0) < 250);
}

static void profile__of_another_kind_is_refused(void **state)
{
	const struct profile_options options = {
		.kind = "cpu", .value_type = {{"samples", "count"}}, .value_count = 1};
	CLEANUP(gpu_table_release) struct gpu_table table = {0};
	struct intern *strings;
	struct profile *profile;

	(void)state;
	assert_int_equal(intern_new(&strings), 0);
	assert_int_equal(profile_new(&options, strings, &profile), 0);
	assert_int_equal(gpu_table_fill(&table, profile, NULL, NULL), -EPROTO);
	profile_free(profile);
	intern_free(strings);
}

/* ---- what samples have lost ---- */

/* A user had too many stacks: the totals know what was called. */
static void left_out__has_its_functions_from_the_totals(void **state)
{
	CLEANUP(gpu_table_release) struct gpu_table table = {0};
	CLEANUP(made_release) struct made made;
	const struct gpu_call *call;

	(void)state;
	made_begin(&made);
	made_add(&made, &(struct made_sample){"cuLaunchKernel", "add", "", 12, {60}, 7});
	made_add(&made, &(struct made_sample){"", "", "", 0, {45, 8, 8, 70}, 7});
	made_total(&made, &(struct made_total){"cuLaunchKernel", "add", .calls = 100});
	made_total(&made, &(struct made_total){"cuMemcpyDtoH", "", 5, 8, .bytes = 70});
	fill(&made, &table);
	call = find(&table, "cuLaunchKernel", "add");
	assert_int_equal(call->value[GPU_CALLS], 100);
	assert_true(call->is_whole);
	assert_int_equal(call->line_count, 2);
	assert_string_equal(line_name(&table, call, 1), "[stack left out]");
	call = find(&table, "cuMemcpyDtoH", "");
	assert_int_equal(call->value[GPU_CALLS], 5);
	assert_int_equal(call->value[GPU_BYTES], 70);
	assert_int_equal(find(&table, "", "")->value[GPU_CALLS], 0);
	assert_int_equal(table.all[GPU_CALLS], 105);
	assert_int_equal(table.all[GPU_BYTES], 70);
}

/* Totals that sum up kernels have those that samples know, too. */
static void left_out__kernels_without_a_total_are_not_counted_twice(void **state)
{
	CLEANUP(gpu_table_release) struct gpu_table table = {0};
	CLEANUP(made_release) struct made made;

	(void)state;
	made_begin(&made);
	made_add(&made, &(struct made_sample){"cuLaunchKernel", "rare", "", 12, {60}, 7});
	made_add(&made, &(struct made_sample){"", "", "", 0, {40}, 7});
	made_total(&made, &(struct made_total){"cuLaunchKernel", CUDA_OTHER_KERNELS, .calls = 100});
	fill(&made, &table);
	assert_int_equal(find(&table, "cuLaunchKernel", "rare")->value[GPU_CALLS], 60);
	assert_int_equal(find(&table, "cuLaunchKernel", CUDA_OTHER_KERNELS)->value[GPU_CALLS], 40);
	assert_int_equal(table.all[GPU_CALLS], 100);
}

/* Without such samples nothing is missing, whatever other processes' totals say. */
static void left_out__is_nothing_where_all_samples_say_what_was_called(void **state)
{
	CLEANUP(gpu_table_release) struct gpu_table table = {0};
	CLEANUP(made_release) struct made made;

	(void)state;
	made_begin(&made);
	made_add(&made, &(struct made_sample){"cuLaunchKernel", "add", "", 12, {60}, 7});
	made_total(&made, &(struct made_total){"cuLaunchKernel", "add", .calls = 60});
	made_total(&made, &(struct made_total){"cuLaunchKernel", "add", 60, .comm = "renamed"});
	made_total(&made, &(struct made_total){"cuLaunchKernel", "add", 9, .pid = 8, .comm = "x"});
	fill(&made, &table);
	assert_int_equal(table.all[GPU_CALLS], 60);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(class__is_told_by_the_functions_name),
		cmocka_unit_test(lines__are_those_that_called),
		cmocka_unit_test(calls__are_ordered_by_process_class_and_weight),
		cmocka_unit_test(quantiles__come_from_the_totals),
		cmocka_unit_test(quantiles__of_other_calls_are_not_shown),
		cmocka_unit_test(error__is_that_of_as_many_calls_as_were_seen),
		cmocka_unit_test(profile__of_another_kind_is_refused),
		cmocka_unit_test(left_out__has_its_functions_from_the_totals),
		cmocka_unit_test(left_out__kernels_without_a_total_are_not_counted_twice),
		cmocka_unit_test(left_out__is_nothing_where_all_samples_say_what_was_called),
	};

	return cmocka_run_group_tests_name("reader/gpu_table", tests, NULL, NULL);
}
