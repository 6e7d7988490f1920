/* SPDX-License-Identifier: BSD-2-Clause */
#include "reader/gpu_table.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/array.h"
#include "base/kinds.h"
#include "base/saturating.h"

void gpu_table_release(struct gpu_table *table)
{
	code_table_release(&table->code);
	index_table_release(&table->call_index);
	index_table_release(&table->line_index);
	id_map_release(&table->call_of_set);
	free(table->call);
	free(table->line);
	index_table_release(&table->total_index);
	free(table->total);
	*table = (struct gpu_table){0};
}

const char *gpu_text(const struct gpu_table *table, uint32_t string)
{
	return intern_get(table->profile->strings, string, NULL);
}

/* ---- classes ---- */

const char *gpu_class_name(enum gpu_class class)
{
#define CLASS_NAME(id, name, head) name,
	static const char *const names[] = {GPU_CLASSES(CLASS_NAME)};

	return names[class];
}

const char *gpu_class_head(enum gpu_class class)
{
#define CLASS_HEAD(id, name, head) head,
	static const char *const heads[] = {GPU_CLASSES(CLASS_HEAD)};

	return heads[class];
}

/* By the name, so that functions of later versions have their class. */
enum gpu_class gpu_class_of(const char *api)
{
	static const struct {
		const char *part;
		enum gpu_class class;
	} parts[] = {
		{"nccl", GPU_COLLECTIVE}, {"GraphLaunch", GPU_GRAPH}, {"Launch", GPU_LAUNCH},
		{"Memcpy", GPU_COPY},	  {"Memset", GPU_FILL},	      {"Synchronize", GPU_SYNC},
		{"Free", GPU_FREE},	  {"Alloc", GPU_ALLOC},	      {"Malloc", GPU_ALLOC},
		{"MemCreate", GPU_ALLOC}, {"MemRelease", GPU_FREE},
	};

	for (size_t i = 0; i < ARRAY_SIZE(parts); i++)
		if (strstr(api, parts[i].part))
			return parts[i].class;
	return GPU_OTHER;
}

/* ---- calls ---- */

static uint32_t hash_of(const struct gpu_about *about)
{
	return (uint32_t)XXH3_64bits(about, sizeof(*about));
}

static bool call_equal(const void *context, uint32_t index, const void *key)
{
	const struct gpu_table *table = context;

	return !memcmp(&table->call[index].is, key, sizeof(table->call[index].is));
}

/* Finds a call; what is not there is added, with values of 0. */
static int find_call(struct gpu_table *table, const struct gpu_about *about, uint32_t *ret_call)
{
	const uint32_t hash = hash_of(about);
	int err;

	if (index_table_find(&table->call_index, hash, call_equal, table, about, ret_call))
		return 0;
	err = INDEX_RESERVE(&table->call_index, hash, table->call, table->call_count,
			    table->call_capacity);
	if (err)
		return err;
	table->call[table->call_count] =
		(struct gpu_call){.is = *about, .class = gpu_class_of(gpu_text(table, about->api))};
	*ret_call = table->call_count++;
	return 0;
}

/* Finds the call of a label set. */
static int call_of_set(struct gpu_table *table, uint32_t set, uint32_t *ret_call)
{
	const struct profile *profile = table->profile;
	const struct gpu_about about = {.pid = profile_label_number(profile, set, "pid"),
					.comm = profile_label_text(profile, set, "comm"),
					.device = profile_label_text(profile, set, "device"),
					.api = profile_label_text(profile, set, "api"),
					.direction = profile_label_text(profile, set, "direction"),
					.kernel = profile_label_text(profile, set, "kernel")};
	int err;

	if (id_map_find(&table->call_of_set, set, ret_call))
		return 0;
	err = id_map_reserve(&table->call_of_set, profile->label_set_capacity);
	if (!err)
		err = find_call(table, &about, ret_call);
	if (!err)
		id_map_set(&table->call_of_set, set, *ret_call);
	return err;
}

/* ---- totals ---- */

static bool total_equal(const void *context, uint32_t index, const void *key)
{
	const struct gpu_table *table = context;

	return !memcmp(&table->total[index].about, key, sizeof(table->total[index].about));
}

/* Returns the number of a total, or total_count. */
static uint32_t find_total(const struct gpu_table *table, const struct gpu_about *about)
{
	uint32_t at = table->total_count;

	(void)index_table_find(&table->total_index, hash_of(about), total_equal, table, about, &at);
	return at;
}

/* Reads what a row is about, in the strings of the table's profile. */
static int about_of_row(const struct gpu_table *table, const struct profile *records, uint32_t row,
			struct gpu_about *ret_about)
{
	const struct {
		const char *key;
		uint32_t *string;
	} part[] = {{"comm", &ret_about->comm},
		    {"device", &ret_about->device},
		    {"api", &ret_about->api},
		    {"direction", &ret_about->direction},
		    {"kernel", &ret_about->kernel}};
	int err = 0;

	*ret_about = (struct gpu_about){.pid = record_number(records, row, "pid")};
	for (size_t i = 0; i < ARRAY_SIZE(part) && !err; i++)
		err = intern_string(table->profile->strings, record_text(records, row, part[i].key),
				    part[i].string);
	return err;
}

static int add_total(struct gpu_table *table, const struct profile *records, uint32_t row, int at)
{
	struct gpu_about about;
	int err = about_of_row(table, records, row, &about);
	uint32_t number;

	if (err)
		return err;
	number = find_total(table, &about);
	if (number == table->total_count) {
		err = INDEX_RESERVE(&table->total_index, hash_of(&about), table->total,
				    table->total_count, table->total_capacity);
		if (err)
			return err;
		table->total[table->total_count++] = (struct gpu_total){.about = about};
	}
	cuda_sums_add_row(&table->total[number].sums, records, row, at);
	return 0;
}

int gpu_add_totals(struct gpu_table *table, const struct profile *records)
{
	const int at = records ? record_values_at(records, PP_PROFILE_CUDA_CALLS) : -ENOENT;
	int err = 0;

	for (uint32_t i = 0; at >= 0 && i < records->row_count && !err; i++)
		err = add_total(table, records, i, at);
	return err;
}

/* ---- lines ---- */

static bool line_equal(const void *context, uint32_t index, const void *key)
{
	const struct gpu_table *table = context;
	const uint32_t *pair = key;

	return table->line[index].call == pair[0] && table->line[index].code == pair[1];
}

/* Finds a line of a call, or adds it. */
static int find_line(struct gpu_table *table, uint32_t call, uint32_t code,
		     struct gpu_line **ret_line)
{
	const uint32_t pair[] = {call, code};
	const uint32_t hash = (uint32_t)XXH3_64bits(pair, sizeof(pair));
	uint32_t at;
	int err;

	if (!index_table_find(&table->line_index, hash, line_equal, table, pair, &at)) {
		err = INDEX_RESERVE(&table->line_index, hash, table->line, table->line_count,
				    table->line_capacity);
		if (err)
			return err;
		at = table->line_count++;
		table->line[at] =
			(struct gpu_line){.call = call, .code = code, .stack = GPU_NO_STACK};
	}
	*ret_line = &table->line[at];
	return 0;
}

/* Returns whether a frame is the kernel or the function of CUDA that was called. */
static bool is_of_call(const struct profile *profile, const struct frame *frame, const char *api)
{
	const char *name = frame_name(profile, frame);

	return frame_class(profile, frame) == FRAME_CLASS_GPU ||
	       (api[0] && !strncmp(name, api, strlen(api)));
}

uint32_t gpu_stack_place(const struct profile *profile, const struct stack *stack, const char *api)
{
	uint32_t first = UINT32_MAX;

	for (uint32_t i = 0; i < stack->count; i++) {
		const struct frame *frame = &profile->stacks.location[stack->location[i]];

		if (frame->kind == FRAME_PYTHON)
			return i;
		if (first == UINT32_MAX && !is_of_call(profile, frame, api))
			first = i;
	}
	return first == UINT32_MAX ? 0 : first;
}

static int code_of_stack(struct gpu_table *table, uint32_t number, uint32_t api, uint32_t *ret_code)
{
	const struct stack *stack = &table->profile->stacks.stack[number];

	if (!stack->count)
		return code_table_add(&table->code, &(struct code){0}, ret_code);
	return code_table_of_location(
		&table->code,
		stack->location[gpu_stack_place(table->profile, stack, gpu_text(table, api))],
		ret_code);
}

/* Which of a row's values is which. */
struct columns {
	int at[GPU_VALUES]; /* < 0: there is none */
};

/* Returns whether there is any. */
static bool values_of(const struct gpu_table *table, uint32_t row, const struct columns *columns,
		      int64_t ret_value[GPU_VALUES])
{
	const int64_t *value = profile_row_values(table->profile, row);
	int64_t any = 0;

	for (unsigned int i = 0; i < GPU_VALUES; i++) {
		const int64_t number = columns->at[i] < 0 ? 0 : value[columns->at[i]];

		ret_value[i] = number > 0 ? number : 0;
		any |= ret_value[i];
	}
	return any;
}

static int add_row(struct gpu_table *table, uint32_t row, const struct columns *columns)
{
	const struct profile_row *at = &table->profile->row[row];
	int64_t value[GPU_VALUES];
	struct gpu_line *line;
	uint32_t call, code;
	int err;

	/* Of levels, what an earlier window had. */
	if (!values_of(table, row, columns, value))
		return 0;
	err = call_of_set(table, at->label_set, &call);
	if (!err)
		err = code_of_stack(table, at->stack, table->call[call].is.api, &code);
	if (!err)
		err = find_line(table, call, code, &line);
	if (err)
		return err;
	for (unsigned int i = 0; i < GPU_VALUES; i++) {
		line->value[i] = add_saturating(line->value[i], value[i]);
		table->call[call].value[i] = add_saturating(table->call[call].value[i], value[i]);
	}
	if (line->stack == GPU_NO_STACK || value[GPU_HOST] > line->stack_host ||
	    (value[GPU_HOST] == line->stack_host && value[GPU_CALLS] > line->stack_calls)) {
		line->stack = at->stack;
		line->stack_calls = value[GPU_CALLS];
		line->stack_host = value[GPU_HOST];
	}
	return 0;
}

/* Finds the sample types by their names: another program may have written them in another order.
 * What is live may be missing. */
static bool find_columns(const struct profile *profile, struct columns *ret_columns)
{
	const struct kind *own = kind_get(PP_PROFILE_CUDA);

	for (unsigned int i = 0; i < GPU_VALUES; i++) {
		ret_columns->at[i] =
			profile_find_value(&profile->options, own->value[i].type, NULL);
		if (ret_columns->at[i] < 0 && i < GPU_LIVE)
			return false;
	}
	return true;
}

int gpu_add_samples(struct gpu_table *table, struct profile *profile)
{
	struct columns columns;
	int err = 0;

	if (!find_columns(profile, &columns))
		return -EPROTO;
	table->profile = profile;
	table->has_live = columns.at[GPU_LIVE] >= 0;
	code_table_init(&table->code, profile, CODE_BY_LINE);
	for (uint32_t i = 0; i < profile->row_count && !err; i++)
		err = add_row(table, i, &columns);
	return err;
}

/* ---- what totals say ---- */

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
		const struct gpu_call *call = &table->call[i];
		struct gpu_about about = call->is;
		uint32_t at = find_total(table, &about);

		about.kernel = others;
		if (at == table->total_count)
			at = find_total(table, &about);
		for (unsigned int k = 0; k < GPU_VALUES && at < table->total_count; k++)
			covered[at].value[k] = add_saturating(covered[at].value[k], call->value[k]);
	}
	return err;
}

static int find_left_out(struct gpu_table *table, uint32_t call, struct gpu_line **ret_line)
{
	struct code code = {.class = FRAME_CLASS_OTHER};
	uint32_t at;
	int err = intern_string(table->profile->strings, LEFT_OUT, &code.name);

	if (!err)
		err = code_table_add(&table->code, &code, &at);
	return err ? err : find_line(table, call, at, ret_line);
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
		err = find_left_out(table, call, &added);
	if (err)
		return err;
	table->call[call].sums = &total->sums;
	for (unsigned int k = 0; k < GPU_VALUES; k++) {
		int64_t *rest = &table->call[from].value[k];

		added->value[k] = add_saturating(added->value[k], gap[k]);
		table->call[call].value[k] = add_saturating(table->call[call].value[k], gap[k]);
		/* So much less of the process is not told. */
		*rest = *rest > gap[k] ? *rest - gap[k] : 0;
	}
	return 0;
}

static int add_gaps_of(struct gpu_table *table, struct covered *covered, uint32_t from)
{
	const int64_t pid = table->call[from].is.pid;
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

static int add_left_out(struct gpu_table *table)
{
	const uint32_t count = table->call_count;
	OWNED_MEM struct covered *covered =
		calloc((size_t)table->total_count + 1, sizeof(*covered));
	int err = covered ? cover(table, covered) : -ENOMEM;

	for (uint32_t i = 0; i < count && !err; i++)
		if (!table->call[i].is.api && table->call[i].is.pid > 0)
			err = add_gaps_of(table, covered, i);
	if (!err)
		shrink_lines(table);
	return err;
}

int gpu_take_totals(struct gpu_table *table, bool adds_left_out)
{
	for (uint32_t i = 0; i < table->call_count; i++) {
		const uint32_t at = find_total(table, &table->call[i].is);

		table->call[i].sums = at < table->total_count ? &table->total[at].sums : NULL;
	}
	return adds_left_out ? add_left_out(table) : 0;
}
