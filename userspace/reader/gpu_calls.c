/* SPDX-License-Identifier: BSD-2-Clause */
#include "reader/gpu_calls.h"

#include <errno.h>
#include <limits.h>
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

static struct gpu_about about_of(const struct gpu_call *call)
{
	return (struct gpu_about){.pid = call->pid,
				  .comm = call->comm,
				  .device = call->device,
				  .api = call->api,
				  .direction = call->direction,
				  .kernel = call->kernel};
}

static uint32_t hash_of(const struct gpu_about *about)
{
	return (uint32_t)XXH3_64bits(about, sizeof(*about));
}

static bool call_equal(const void *context, uint32_t index, const void *key)
{
	const struct gpu_table *table = context;
	const struct gpu_about about = about_of(&table->call[index]);

	return !memcmp(&about, key, sizeof(about));
}

int gpu_find_call(struct gpu_table *table, const struct gpu_call *wanted, uint32_t *ret_call)
{
	const struct gpu_about about = about_of(wanted);
	const uint32_t hash = hash_of(&about);
	int err;

	if (index_table_find(&table->call_index, hash, call_equal, table, &about, ret_call))
		return 0;
	err = ARRAY_RESERVE(table->call, table->call_count, table->call_capacity);
	if (!err)
		err = index_table_add(&table->call_index, hash, table->call_count);
	if (err)
		return err;
	table->call[table->call_count] = *wanted;
	table->call[table->call_count].class = gpu_class_of(gpu_text(table, wanted->api));
	*ret_call = table->call_count++;
	return 0;
}

static uint32_t text_label(const struct profile *profile, uint32_t set, const char *name)
{
	const struct stored_label *label = profile_find_label(profile, set, name);

	return label && !label->is_number ? (uint32_t)label->value : 0;
}

/* Finds the call of a label set. */
static int call_of_set(struct gpu_table *table, uint32_t set, uint32_t *ret_call)
{
	const struct profile *profile = table->profile;
	const struct stored_label *pid = profile_find_label(profile, set, "pid");
	struct gpu_call call = {.pid = pid && pid->is_number ? pid->value : 0,
				.comm = text_label(profile, set, "comm"),
				.device = text_label(profile, set, "device"),
				.api = text_label(profile, set, "api"),
				.direction = text_label(profile, set, "direction"),
				.kernel = text_label(profile, set, "kernel")};
	int err;

	if (id_map_find(&table->call_of_set, set, ret_call))
		return 0;
	err = id_map_reserve(&table->call_of_set, profile->label_set_capacity);
	if (!err)
		err = gpu_find_call(table, &call, ret_call);
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

uint32_t gpu_find_total(const struct gpu_table *table, const struct gpu_call *call)
{
	const struct gpu_about about = about_of(call);
	uint32_t at;

	return index_table_find(&table->total_index, hash_of(&about), total_equal, table, &about,
				&at)
		       ? at
		       : table->total_count;
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
	uint32_t number;
	int err = about_of_row(table, records, row, &about);

	if (err)
		return err;
	if (!index_table_find(&table->total_index, hash_of(&about), total_equal, table, &about,
			      &number)) {
		err = ARRAY_RESERVE(table->total, table->total_count, table->total_capacity);
		if (!err)
			err = index_table_add(&table->total_index, hash_of(&about),
					      table->total_count);
		if (err)
			return err;
		number = table->total_count++;
		table->total[number] = (struct gpu_total){.about = about};
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

int gpu_find_line(struct gpu_table *table, uint32_t call, uint32_t code, struct gpu_line **ret_line)
{
	const uint32_t pair[] = {call, code};
	const uint32_t hash = (uint32_t)XXH3_64bits(pair, sizeof(pair));
	uint32_t at;
	int err;

	if (!index_table_find(&table->line_index, hash, line_equal, table, pair, &at)) {
		err = ARRAY_RESERVE(table->line, table->line_count, table->line_capacity);
		if (!err)
			err = index_table_add(&table->line_index, hash, table->line_count);
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
	unsigned int at[GPU_VALUES]; /* UINT_MAX: there is none */
};

/* Returns whether there is any. */
static bool values_of(const struct gpu_table *table, uint32_t row, const struct columns *columns,
		      int64_t ret_value[GPU_VALUES])
{
	const int64_t *value = profile_row_values(table->profile, row);
	int64_t any = 0;

	for (unsigned int i = 0; i < GPU_VALUES; i++) {
		const int64_t number = columns->at[i] == UINT_MAX ? 0 : value[columns->at[i]];

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
		err = code_of_stack(table, at->stack, table->call[call].api, &code);
	if (!err)
		err = gpu_find_line(table, call, code, &line);
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
	const struct profile_options *options = &profile->options;

	for (unsigned int i = 0; i < GPU_VALUES; i++) {
		unsigned int at = 0;

		while (at < options->value_count &&
		       strcmp(options->value_type[at].type, own->value[i].type) != 0)
			at++;
		if (at == options->value_count && i < GPU_LIVE)
			return false;
		ret_columns->at[i] = at == options->value_count ? UINT_MAX : at;
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
	table->has_live = columns.at[GPU_LIVE] != UINT_MAX;
	code_table_init(&table->code, profile, CODE_BY_LINE);
	for (uint32_t i = 0; i < profile->row_count && !err; i++)
		err = add_row(table, i, &columns);
	return err;
}
