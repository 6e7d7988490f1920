/* SPDX-License-Identifier: BSD-2-Clause */
#include "reader/gpu_left_out.h"

#include <errno.h>
#include <stdlib.h>

#include "base/saturating.h"

#define LEFT_OUT "[stack left out]"

/* What samples have of a line. */
struct covered {
	int64_t value[GPU_VALUES];
};

static void fill_key(const struct gpu_table *table, const struct gpu_call *call,
		     struct cuda_line *ret_line)
{
	*ret_line = (struct cuda_line){.pid = call->pid > 0 ? (uint64_t)call->pid : 0};
	cuda_line_set_word(ret_line->comm, gpu_text(table, call->comm));
	cuda_line_set_word(ret_line->device, gpu_text(table, call->device));
	cuda_line_set_word(ret_line->api, gpu_text(table, call->api));
	cuda_line_set_word(ret_line->direction, gpu_text(table, call->direction));
	cuda_line_set_kernel(ret_line, gpu_text(table, call->kernel));
}

uint32_t gpu_find_own_line(const struct gpu_table *table, const struct gpu_call *call,
			   const struct cuda_lines *lines)
{
	struct cuda_line line;

	fill_key(table, call, &line);
	return cuda_lines_find(lines, &line);
}

/* Returns the line that sums up a kernel which has none of its own, or cuda_lines_count(). */
static uint32_t find_sum_line(const struct gpu_table *table, const struct gpu_call *call,
			      const struct cuda_lines *lines)
{
	struct cuda_line line;

	fill_key(table, call, &line);
	cuda_line_set_kernel(&line, CUDA_LINE_OTHER_KERNELS);
	return cuda_lines_find(lines, &line);
}

static int64_t clamped(uint64_t number)
{
	return number > INT64_MAX ? INT64_MAX : (int64_t)number;
}

static int64_t value_of(const struct cuda_line_sums *sums, unsigned int value)
{
	const uint64_t number[GPU_VALUES] = {[GPU_CALLS] = sums->calls,
					     [GPU_HOST] = sums->host_ns,
					     [GPU_WAIT] = sums->wait_ns,
					     [GPU_BYTES] = sums->bytes};

	return clamped(number[value]);
}

static void cover(const struct gpu_table *table, const struct cuda_lines *lines,
		  const uint32_t *line_of, struct covered *covered)
{
	for (uint32_t i = 0; i < table->call_count; i++) {
		const struct gpu_call *call = &table->call[i];
		uint32_t at = line_of[i];

		if (at == cuda_lines_count(lines))
			at = find_sum_line(table, call, lines);
		for (unsigned int k = 0; k < GPU_VALUES && at < cuda_lines_count(lines); k++)
			covered[at].value[k] = add_saturating(covered[at].value[k], call->value[k]);
	}
}

/* Finds the call of a line, which may be a new one. */
static int find_call(struct gpu_table *table, const struct cuda_line *line, uint32_t *ret_call)
{
	struct gpu_call call = {.pid = clamped(line->pid)};
	struct intern *strings = table->profile->strings;
	int err = intern_string(strings, line->comm, &call.comm);

	if (!err)
		err = intern_string(strings, line->device, &call.device);
	if (!err)
		err = intern_string(strings, line->api, &call.api);
	if (!err)
		err = intern_string(strings, line->direction, &call.direction);
	if (!err)
		err = intern_string(strings, line->kernel, &call.kernel);
	return err ? err : gpu_find_call(table, &call, ret_call);
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

/* Adds what a line has and samples do not.  from: a call of the process without a function, and its
 * first line. */
static int add_gap(struct gpu_table *table, const struct cuda_lines *lines, uint32_t at,
		   const struct covered *covered, uint32_t from)
{
	int64_t gap[GPU_VALUES], any = 0;
	struct gpu_line *added;
	struct cuda_line line;
	uint32_t call;
	int err;

	for (unsigned int k = 0; k < GPU_VALUES; k++) {
		gap[k] = value_of(cuda_lines_sums(lines, at), k) - covered->value[k];
		gap[k] = gap[k] > 0 ? gap[k] : 0;
		any |= gap[k];
	}
	if (!any)
		return 0;
	cuda_lines_get(lines, at, &line);
	err = find_call(table, &line, &call);
	if (!err)
		err = find_line(table, call, &added);
	if (err)
		return err;
	table->call[call].sums = cuda_lines_sums(lines, at);
	for (unsigned int k = 0; k < GPU_VALUES; k++) {
		added->value[k] = add_saturating(added->value[k], gap[k]);
		table->call[call].value[k] = add_saturating(table->call[call].value[k], gap[k]);
		take_from(&table->call[from].value[k], gap[k]);
	}
	return 0;
}

static int add_gaps_of(struct gpu_table *table, const struct cuda_lines *lines,
		       struct covered *covered, uint32_t from)
{
	const int64_t pid = table->call[from].pid;
	int err = 0;

	for (uint32_t i = 0; i < cuda_lines_count(lines) && !err; i++) {
		if (cuda_lines_pid(lines, i) != (uint64_t)pid)
			continue;
		err = add_gap(table, lines, i, &covered[i], from);
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

int gpu_add_left_out(struct gpu_table *table, const struct cuda_lines *lines,
		     const uint32_t *line_of)
{
	const uint32_t count = table->call_count;
	OWNED_MEM struct covered *covered =
		calloc((size_t)cuda_lines_count(lines) + 1, sizeof(*covered));
	int err = 0;

	if (!covered)
		return -ENOMEM;
	cover(table, lines, line_of, covered);
	for (uint32_t i = 0; i < count && !err; i++)
		if (!table->call[i].api && table->call[i].pid > 0)
			err = add_gaps_of(table, lines, covered, i);
	shrink_lines(table);
	return err;
}
