/* SPDX-License-Identifier: BSD-2-Clause */
#include "reader/gpu_table.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/io.h"

/* Columns of the values, in the order of enum gpu_value; an error follows those that are divided by
 * stacks. */
#define VALUE_COLUMNS                                                                              \
	{"calls", "CALLS", 9}, {"calls_error", NULL, 0}, {"host_ns", "HOST TIME", 10},             \
		{"host_ns_error", NULL, 0}, {"wait_ns", "WAIT", 10}, {"wait_ns_error", NULL, 0},   \
		{"bytes", "BYTES", 10}, {"bytes_error", NULL, 0}, {"inuse_space", "LIVE", 10},     \
		{"inuse_objects", "BLOCKS", 10}
#define CALL_COLUMNS                                                                               \
	{"pid", "PID", 8}, {"comm", "PROCESS", 0}, {"device", "DEVICE", 0}, {"class", NULL, 0},    \
		{"api", "FUNCTION", 0}, {"direction", NULL, 0}, {"kernel", "KERNEL", 0}
#define CODE_COLUMNS {"name", "FUNCTION", 0}, {"file", "FILE", 0}, {"line", "LINE", 10}

static const char *const value_unit[GPU_VALUES] = {
	[GPU_CALLS] = "count", [GPU_HOST] = "nanoseconds", [GPU_WAIT] = "nanoseconds",
	[GPU_BYTES] = "bytes", [GPU_LIVE] = "bytes",	   [GPU_BLOCKS] = "count"};

static void put_code(const struct gpu_shown *shown, uint32_t number, struct table *table)
{
	const struct code_table *codes = &shown->table->code;
	const struct code *code = &codes->code[number];

	table_string(table, code_text(codes, code->name), NULL);
	table_string(table, code_text(codes, code->file), NULL);
	table_int(table, code_line(code), NULL);
}

/* ---- calls ---- */

static void put_names(const struct gpu_table *gpu, const struct gpu_call *call, struct table *table)
{
	table_int(table, call->is.pid, NULL);
	table_string(table, gpu_text(gpu, call->is.comm), NULL);
	table_string(table, gpu_text(gpu, call->is.device), NULL);
	table_string(table, gpu_class_name(call->class), NULL);
	table_string(table, gpu_text(gpu, call->is.api), NULL);
	table_string(table, gpu_text(gpu, call->is.direction), NULL);
	table_string(table, gpu_text(gpu, call->is.kernel), NULL);
}

static void put_call(const struct gpu_shown *shown, uint32_t number, struct table *table)
{
	const struct gpu_table *gpu = shown->table;
	const struct gpu_call *call = &gpu->call[number];

	table_int(table, number + 1, NULL);
	put_names(gpu, call, table);
	for (unsigned int i = 0; i < GPU_VALUES; i++)
		table_value(table, call->value[i], value_unit[i]);
	table_int(table, call->is_whole ? call->sums->value[PP_EXACT_CAPTURED] : 0, NULL);
	table_int(table, call->is_whole ? call->sums->value[PP_EXACT_NODES] : 0, NULL);
	table_measure(table, gpu_call_mean(call), 1, "nanoseconds");
	table_measure(table, gpu_call_quantile(call, 0.5), 1, "nanoseconds");
	table_measure(table, gpu_call_quantile(call, 0.99), 1, "nanoseconds");
}

static void put_calls(const struct gpu_shown *shown, struct table *table)
{
	static const struct table_column columns[] = {
		{"id", NULL, 0},	  CALL_COLUMNS,
		{"calls", "CALLS", 9},	  {"host_ns", "HOST TIME", 10},
		{"wait_ns", "WAIT", 10},  {"bytes", "BYTES", 10},
		{"inuse_space", NULL, 0}, {"inuse_objects", NULL, 0},
		{"captured", NULL, 0},	  {"nodes", NULL, 0},
		{"mean_ns", "MEAN", 9},	  {"p50_ns", "P50", 9},
		{"p99_ns", "P99", 9}};

	table_begin(table, "calls", columns, ARRAY_SIZE(columns));
	for (uint32_t i = 0; i < shown->table->call_count; i++)
		put_call(shown, i, table);
	table_end(table);
}

/* The times of the calls, where they are known. */
static void put_times(const struct gpu_shown *shown, struct table *table)
{
	static const struct table_column columns[] = {
		{"call", NULL, 0}, {"from_ns", NULL, 0}, {"to_ns", NULL, 0}, {"calls", NULL, 0}};
	const struct gpu_table *gpu = shown->table;

	table_begin(table, "times", columns, ARRAY_SIZE(columns));
	for (uint32_t i = 0; i < gpu->call_count; i++) {
		for (unsigned int k = 0; k < PP_CUDA_HISTOGRAM && gpu->call[i].is_whole; k++) {
			if (!gpu->call[i].sums->histogram[k])
				continue;
			table_int(table, i + 1, NULL);
			table_int(table, cuda_sums_bucket_ns(k), NULL);
			table_int(table, cuda_sums_bucket_ns(k + 1), NULL);
			table_int(table, gpu->call[i].sums->histogram[k], NULL);
		}
	}
	table_end(table);
}

/* ---- lines ---- */

static void put_line(const struct gpu_shown *shown, const struct gpu_line *line,
		     struct table *table)
{
	const struct gpu_table *gpu = shown->table;
	const struct gpu_call *call = &gpu->call[line->call];

	table_int(table, line->call + 1, NULL);
	put_names(gpu, call, table);
	put_code(shown, line->code, table);
	for (unsigned int i = 0; i < GPU_VALUES; i++) {
		table_value(table, line->value[i], value_unit[i]);
		if (i < GPU_LIVE)
			table_real(table, gpu_line_error(gpu, line, i), 1, NULL);
	}
	for (unsigned int i = 0; i < GPU_VALUES; i++)
		table_int(table, call->value[i], NULL);
	table_measure(table, gpu_call_mean(call), 1, "nanoseconds");
	table_measure(table, gpu_call_quantile(call, 0.5), 1, "nanoseconds");
	table_measure(table, gpu_call_quantile(call, 0.99), 1, "nanoseconds");
}

/* CSV has one table alone: there a line has the figures of its call, too. */
static void put_lines(const struct gpu_shown *shown, struct table *table)
{
	struct table_column column[] = {{"call", NULL, 0},
					CALL_COLUMNS,
					CODE_COLUMNS,
					VALUE_COLUMNS,
					{"call_calls", NULL, 0},
					{"call_host_ns", NULL, 0},
					{"call_wait_ns", NULL, 0},
					{"call_bytes", NULL, 0},
					{"call_inuse_space", NULL, 0},
					{"call_inuse_objects", NULL, 0},
					{"call_mean_ns", NULL, 0},
					{"call_p50_ns", NULL, 0},
					{"call_p99_ns", NULL, 0}};
	const bool is_csv = table->format == TABLE_CSV;
	bool is_of_line = false;

	for (size_t i = 1; i < ARRAY_SIZE(column); i++) {
		is_of_line |= !strcmp(column[i].key, "name");
		if (!strncmp(column[i].key, "call_", strlen("call_")))
			is_of_line = false;
		if (!is_of_line && !is_csv)
			column[i].key = NULL;
	}
	if (is_csv)
		column[0].key = NULL;
	table_begin(table, "lines", column, ARRAY_SIZE(column));
	for (uint32_t i = 0; i < shown->table->line_count; i++)
		put_line(shown, &shown->table->line[i], table);
	table_end(table);
}

/* ---- groups: the views other than the table itself ---- */

/* Returns what the word of a group is. */
static const char *word_name(enum gpu_view view)
{
	return view == GPU_VIEW_KERNELS ? "kernel" : view == GPU_VIEW_COPIES ? "direction" : "api";
}

/* Gives the functions that called, from the line outwards: "copy;step;main". */
static int put_stack(const struct gpu_shown *shown, const struct gpu_group *group,
		     struct table *table)
{
	const struct profile *profile = shown->table->profile;
	OWNED_MEM char *text = NULL;
	const struct stack *stack;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	if (!out)
		return -ENOMEM;
	if (group->stack != GPU_NO_STACK) {
		stack = &profile->stacks.stack[group->stack];
		for (uint32_t i = 0; i < stack->count; i++)
			fprintf(out, "%s%s", i ? ";" : "",
				frame_name(profile, &profile->stacks.location[stack->location[i]]));
	}
	if (close_memory_file(out, &text))
		return -ENOMEM;
	table_string(table, text, NULL);
	return 0;
}

static int put_group(const struct gpu_shown *shown, const struct gpu_group *group,
		     struct table *table)
{
	const bool is_kernel = shown->view == GPU_VIEW_KERNELS;

	table_string(table, gpu_text(shown->table, group->word), NULL);
	put_code(shown, group->code, table);
	for (unsigned int i = 0; i < GPU_VALUES; i++) {
		table_value(table, group->value[i], value_unit[i]);
		/* The sums of a kernel are exact. */
		if (i < GPU_LIVE)
			table_real(table, is_kernel ? 0 : sqrt(group->variance[i]), 1, NULL);
	}
	table_int(table, group->line_value[GPU_CALLS], NULL);
	table_real(table, sqrt(group->line_variance[GPU_CALLS]), 1, NULL);
	table_real(table,
		   shown->duration_ns ? (double)group->value[GPU_WAIT] / (double)shown->duration_ns
				      : NAN,
		   6, NULL);
	return put_stack(shown, group, table);
}

static int put_groups(const struct gpu_shown *shown, struct table *table)
{
	struct table_column column[] = {{NULL, "OF", 0},
					CODE_COLUMNS,
					VALUE_COLUMNS,
					{"line_calls", NULL, 0},
					{"line_calls_error", NULL, 0},
					{"wall_share", NULL, 0},
					{"stack", NULL, 0}};
	const uint32_t count = shown->groups->count;
	const bool is_cut = table_is_for_people(table) && shown->rows && shown->rows < count;
	int err = 0;

	column[0].key = word_name(shown->view);
	if (shown->view != GPU_VIEW_KERNELS)
		column[ARRAY_SIZE(column) - 4].key = column[ARRAY_SIZE(column) - 3].key = NULL;
	if (shown->view != GPU_VIEW_SYNCS)
		column[ARRAY_SIZE(column) - 2].key = NULL;
	table_begin(table, "rows", column, ARRAY_SIZE(column));
	for (uint32_t i = 0; !err && i < (is_cut ? shown->rows : count); i++)
		err = put_group(shown, &shown->groups->group[i], table);
	table_end(table);
	table_more_rows(table, is_cut ? count - shown->rows : 0);
	return err;
}

int gpu_put_tables(const struct gpu_shown *shown, struct table *table)
{
	table_fact_string(table, "kind", "cuda");
	/* How long a kernel takes on the device is not in them. */
	table_fact_string(table, "clock", "host");
	table_fact_real(table, "launches_are_scaled", shown->is_scaled);
	if (shown->view != GPU_VIEW_ALL)
		return put_groups(shown, table);
	if (table_is_for_people(table)) {
		put_calls(shown, table);
		return 0;
	}
	put_lines(shown, table);
	put_calls(shown, table);
	put_times(shown, table);
	return 0;
}
