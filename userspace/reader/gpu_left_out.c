/* SPDX-License-Identifier: BSD-2-Clause */
#include "reader/gpu_left_out.h"

#include <errno.h>
#include <stdlib.h>

#include "base/saturating.h"

#define LEFT_OUT "[stack left out]"

/* What samples have of a total. */
struct covered {
	int64_t value[GPU_VALUES];
};

/* Which of the exact values is which. */
static int64_t value_of(const struct gpu_total *total, unsigned int value)
{
	static const enum pp_exact_value at[GPU_LIVE] = {[GPU_CALLS] = PP_EXACT_CALLS,
							 [GPU_HOST] = PP_EXACT_HOST,
							 [GPU_WAIT] = PP_EXACT_WAIT,
							 [GPU_BYTES] = PP_EXACT_BYTES};

	return value < GPU_LIVE ? total->sums.value[at[value]] : 0;
}

/* A kernel without a total of its own is in the one that sums up kernels. */
static int cover(const struct gpu_table *table, struct covered *covered)
{
	uint32_t others;
	int err = intern_string(table->profile->strings, CUDA_OTHER_KERNELS, &others);

	for (uint32_t i = 0; i < table->call_count && !err; i++) {
		struct gpu_call call = table->call[i];
		uint32_t at = gpu_find_total(table, &call);

		call.kernel = others;
		if (at == table->total_count)
			at = gpu_find_total(table, &call);
		for (unsigned int k = 0; k < GPU_VALUES && at < table->total_count; k++)
			covered[at].value[k] = add_saturating(covered[at].value[k], call.value[k]);
	}
	return err;
}

/* Finds the call of a total, which may be a new one. */
static int find_call(struct gpu_table *table, const struct gpu_about *about, uint32_t *ret_call)
{
	const struct gpu_call call = {.pid = about->pid,
				      .comm = about->comm,
				      .device = about->device,
				      .api = about->api,
				      .direction = about->direction,
				      .kernel = about->kernel};

	return gpu_find_call(table, &call, ret_call);
}

static int find_line(struct gpu_table *table, uint32_t call, struct gpu_line **ret_line)
{
	struct code code = {.class = FRAME_CLASS_OTHER};
	uint32_t at;
	int err = intern_string(table->profile->strings, LEFT_OUT, &code.name);

	if (!err)
		err = code_table_add(&table->code, &code, &at);
	return err ? err : gpu_find_line(table, call, at, ret_line);
}

/* Takes from what is not told of a process as much as is told now. */
static void take_from(int64_t *value, int64_t taken)
{
	*value = *value > taken ? *value - taken : 0;
}

/* Adds what a total has and samples do not.  from: a call of the process without a function. */
static int add_gap(struct gpu_table *table, const struct gpu_total *total,
		   const struct covered *covered, uint32_t from)
{
	int64_t gap[GPU_VALUES], any = 0;
	struct gpu_line *added;
	uint32_t call;
	int err;

	for (unsigned int k = 0; k < GPU_VALUES; k++) {
		gap[k] = value_of(total, k) - covered->value[k];
		gap[k] = gap[k] > 0 ? gap[k] : 0;
		any |= gap[k];
	}
	if (!any)
		return 0;
	err = find_call(table, &total->about, &call);
	if (!err)
		err = find_line(table, call, &added);
	if (err)
		return err;
	table->call[call].sums = &total->sums;
	for (unsigned int k = 0; k < GPU_VALUES; k++) {
		added->value[k] = add_saturating(added->value[k], gap[k]);
		table->call[call].value[k] = add_saturating(table->call[call].value[k], gap[k]);
		take_from(&table->call[from].value[k], gap[k]);
	}
	return 0;
}

static int add_gaps_of(struct gpu_table *table, struct covered *covered, uint32_t from)
{
	const int64_t pid = table->call[from].pid;
	int err = 0;

	for (uint32_t i = 0; i < table->total_count && !err; i++) {
		if (table->total[i].about.pid != pid || !table->total[i].about.api)
			continue;
		err = add_gap(table, &table->total[i], &covered[i], from);
		/* There is one gap, however many names the process had. */
		for (unsigned int k = 0; k < GPU_VALUES; k++)
			covered[i].value[k] = INT64_MAX;
	}
	return err;
}

/* The lines of a call that was made smaller have too much. */
static void shrink_lines(struct gpu_table *table)
{
	for (uint32_t i = 0; i < table->line_count; i++) {
		struct gpu_line *line = &table->line[i];

		for (unsigned int k = 0; k < GPU_VALUES; k++)
			if (line->value[k] > table->call[line->call].value[k])
				line->value[k] = table->call[line->call].value[k];
	}
}

int gpu_add_left_out(struct gpu_table *table)
{
	const uint32_t count = table->call_count;
	OWNED_MEM struct covered *covered =
		calloc((size_t)table->total_count + 1, sizeof(*covered));
	int err = covered ? cover(table, covered) : -ENOMEM;

	for (uint32_t i = 0; i < count && !err; i++)
		if (!table->call[i].api && table->call[i].pid > 0)
			err = add_gaps_of(table, covered, i);
	if (!err)
		shrink_lines(table);
	return err;
}
