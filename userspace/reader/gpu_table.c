/* SPDX-License-Identifier: BSD-2-Clause */
#include "reader/gpu_table.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/array.h"
#include "base/io.h"
#include "base/saturating.h"

#define CALL_NS 1000 /* as which a call counts in the order */

/* ---- exact totals ---- */

/* The sums of stacks that were not chosen tell proportions. */
static void judge_sums(struct gpu_call *call)
{
	const double calls = (double)call->value[GPU_CALLS];
	const double all = call->sums ? (double)call->sums->value[PP_EXACT_CALLS] : 0;

	call->spread = NAN;
	call->is_whole = call->sums && call->value[GPU_CALLS] == call->sums->value[PP_EXACT_CALLS];
	if (all > 0)
		call->spread = (double)call->sums->value[PP_EXACT_SPREAD] * fmin(calls / all, 1);
}

/* ---- order ---- */

double gpu_weight(const int64_t value[GPU_VALUES])
{
	return (double)value[GPU_HOST] + CALL_NS * (double)value[GPU_CALLS];
}

static int compare_lines(const void *left, const void *right)
{
	const struct gpu_line *a = left, *b = right;

	return ORDER(a->call, b->call)
		       ?: ORDER(gpu_weight(b->value), gpu_weight(a->value))
		       ?: ORDER(a->code, b->code);
}

/* Sorts pointers to calls by their processes and devices. */
static int compare_owners(const void *left, const void *right)
{
	const struct gpu_call *a = *(struct gpu_call *const *)left;
	const struct gpu_call *b = *(struct gpu_call *const *)right;

	return ORDER(a->is.pid, b->is.pid)
		       ?: ORDER(a->is.comm, b->is.comm)
		       ?: ORDER(a->is.device, b->is.device);
}

/* A process's calls on one device. */
struct process {
	uint32_t number;
	double weight;
};

static int compare_processes(const void *left, const void *right)
{
	const struct process *a = left, *b = right;

	return ORDER(b->weight, a->weight) ?: ORDER(a->number, b->number);
}

/* Numbers the processes by their weight. */
static int number_processes(struct gpu_table *table)
{
	OWNED_MEM struct gpu_call **call = calloc((size_t)table->call_count + 1, sizeof(*call));
	OWNED_MEM struct process *process = calloc((size_t)table->call_count + 1, sizeof(*process));
	OWNED_MEM uint32_t *place = calloc((size_t)table->call_count + 1, sizeof(*place));
	uint32_t count = 0;

	if (!call || !process || !place)
		return -ENOMEM;
	for (uint32_t i = 0; i < table->call_count; i++)
		call[i] = &table->call[i];
	qsort(call, table->call_count, sizeof(struct gpu_call *), compare_owners);
	for (uint32_t i = 0; i < table->call_count; i++) {
		if (!i || compare_owners(&call[i - 1], &call[i])) {
			process[count] = (struct process){.number = count};
			count++;
		}
		call[i]->process = count - 1;
		process[count - 1].weight += gpu_weight(call[i]->value);
	}
	qsort(process, count, sizeof(*process), compare_processes);
	for (uint32_t i = 0; i < count; i++)
		place[process[i].number] = i;
	for (uint32_t i = 0; i < table->call_count; i++)
		table->call[i].process = place[table->call[i].process];
	return 0;
}

/* Sorts pointers to calls. */
static int compare_calls(const void *left, const void *right)
{
	const struct gpu_call *a = *(struct gpu_call *const *)left;
	const struct gpu_call *b = *(struct gpu_call *const *)right;

	return ORDER(a->process, b->process)
		       ?: ORDER(a->class, b->class)
		       ?: ORDER(gpu_weight(b->value), gpu_weight(a->value)) ?: ORDER(a, b);
}

static int sort_calls(struct gpu_table *table)
{
	OWNED_MEM struct gpu_call **order = calloc((size_t)table->call_count + 1, sizeof(*order));
	OWNED_MEM struct gpu_call *sorted = calloc((size_t)table->call_count + 1, sizeof(*sorted));
	OWNED_MEM uint32_t *place = calloc((size_t)table->call_count + 1, sizeof(*place));

	if (!order || !sorted || !place)
		return -ENOMEM;
	for (uint32_t i = 0; i < table->call_count; i++)
		order[i] = &table->call[i];
	qsort(order, table->call_count, sizeof(struct gpu_call *), compare_calls);
	for (uint32_t i = 0; i < table->call_count; i++) {
		place[order[i] - table->call] = i;
		sorted[i] = *order[i];
	}
	for (uint32_t i = 0; i < table->line_count; i++)
		table->line[i].call = place[table->line[i].call];
	free(table->call);
	table->call = TAKE(sorted);
	table->call_capacity = table->call_count + 1;
	return 0;
}

static int put_in_order(struct gpu_table *table)
{
	int err = number_processes(table);

	if (!err)
		err = sort_calls(table);
	if (err)
		return err;
	if (table->line_count)
		qsort(table->line, table->line_count, sizeof(*table->line), compare_lines);
	for (uint32_t i = 0; i < table->line_count; i++) {
		struct gpu_call *call = &table->call[table->line[i].call];

		if (!call->line_count++)
			call->first_line = i;
	}
	/* The order has changed. */
	index_table_release(&table->call_index);
	index_table_release(&table->line_index);
	id_map_release(&table->call_of_set);
	return 0;
}

/* ---- all of it ---- */

/* How unevenly bytes lie on the calls, as far as lines show it. */
static void find_unevenness(struct gpu_table *table)
{
	for (uint32_t i = 0; i < table->call_count; i++) {
		struct gpu_call *call = &table->call[i];
		const double calls = (double)call->value[GPU_CALLS];
		const double bytes = (double)call->value[GPU_BYTES];
		double squares = 0;

		for (uint32_t k = 0; k < call->line_count; k++) {
			const int64_t *value = table->line[call->first_line + k].value;

			if (value[GPU_CALLS])
				squares += (double)value[GPU_BYTES] * (double)value[GPU_BYTES] /
					   (double)value[GPU_CALLS];
		}
		call->unevenness = bytes > 0 ? fmax(squares * calls / (bytes * bytes), 1) : 1;
	}
}

static int take_totals(struct gpu_table *table, const struct profile *records,
		       const struct select *select)
{
	int err = gpu_add_totals(table, records);

	if (!err)
		err = gpu_take_totals(table, !select || match_takes_processes(select));
	for (uint32_t i = 0; i < table->call_count; i++)
		judge_sums(&table->call[i]);
	return err;
}

int gpu_table_fill(struct gpu_table *table, struct profile *profile, const struct profile *records,
		   const struct select *select)
{
	int err = gpu_add_samples(table, profile);

	if (!err)
		err = take_totals(table, records, select);
	if (!err)
		err = put_in_order(table);
	if (err)
		return err;
	find_unevenness(table);
	for (uint32_t i = 0; i < table->call_count; i++)
		for (unsigned int k = 0; k < GPU_VALUES; k++)
			table->all[k] = add_saturating(table->all[k], table->call[i].value[k]);
	return 0;
}

/* ---- figures ---- */

enum gpu_value gpu_call_rank(const struct gpu_call *call)
{
	return call->value[GPU_HOST] ? GPU_HOST : GPU_CALLS;
}

/* Returns how many calls that were each seen by itself would tell as much of a value as those that
 * were; INFINITY: all were seen; NAN: it is not known. */
static double calls_seen(const struct gpu_call *call, enum gpu_value value)
{
	const double calls = (double)call->value[GPU_CALLS];
	/* Of values that are divided by themselves. */
	double unevenness = 1;

	if (value == GPU_BYTES)
		unevenness = call->unevenness;
	else if (value != GPU_CALLS && call->value[GPU_WAIT] && call->sums)
		unevenness = cuda_sums_unevenness(call->sums);
	return call->spread > 0	   ? calls * calls / (call->spread * unevenness)
	       : call->spread <= 0 ? INFINITY
				   : NAN;
}

/* The error of a share of few: as if there were two more calls in it, and two outside (Agresti and
 * Coull, "Approximate is better than exact", 1998).  Without them it would be 0 where all that were
 * seen came from one line. */
double gpu_line_error(const struct gpu_table *table, const struct gpu_line *line,
		      enum gpu_value value)
{
	const struct gpu_call *call = &table->call[line->call];
	const double all = (double)call->value[value];
	const double seen = calls_seen(call, value);
	double share;

	if (value >= GPU_LIVE || all <= 0 || isinf(seen))
		return 0;
	share = ((double)line->value[value] / all * seen + 2) / (seen + 4);
	return all * sqrt(share * (1 - share) / (seen + 4));
}

double gpu_call_quantile(const struct gpu_call *call, double quantile)
{
	return call->is_whole ? cuda_sums_quantile(call->sums, quantile) : NAN;
}

double gpu_call_mean(const struct gpu_call *call)
{
	if (!call->value[GPU_HOST] || !call->value[GPU_CALLS])
		return NAN;
	return (double)call->value[GPU_HOST] / (double)call->value[GPU_CALLS];
}

/* ---- groups: the views other than the table itself ---- */

void gpu_groups_release(struct gpu_groups *groups)
{
	index_table_release(&groups->index);
	free(groups->group);
	*groups = (struct gpu_groups){0};
}

/* Which calls a view has, and by what its rows are ranked; a stack is most of one by that, too. */
static const struct {
	enum gpu_value rank, having; /* also calls that have it; GPU_VALUES: no others */
	uint32_t classes;	     /* bits 1 << enum gpu_class */
} views[] = {
	[GPU_VIEW_ALL] = {GPU_CALLS, GPU_VALUES, UINT32_MAX},
	[GPU_VIEW_SYNCS] = {GPU_WAIT, GPU_WAIT, 1U << GPU_SYNC},
	[GPU_VIEW_COPIES] = {GPU_BYTES, GPU_VALUES, 1U << GPU_COPY},
	[GPU_VIEW_KERNELS] = {GPU_CALLS, GPU_VALUES, 1U << GPU_LAUNCH},
	[GPU_VIEW_COLLECTIVES] = {GPU_BYTES, GPU_VALUES, 1U << GPU_COLLECTIVE},
	[GPU_VIEW_MEMORY] = {GPU_LIVE, GPU_LIVE, 1U << GPU_ALLOC | 1U << GPU_FREE},
};

static bool is_shown(const struct gpu_call *call, enum gpu_view view)
{
	return views[view].classes & 1U << call->class ||
	       (views[view].having < GPU_VALUES && call->value[views[view].having]);
}

static uint32_t word_of(const struct gpu_call *call, enum gpu_view view)
{
	return view == GPU_VIEW_KERNELS	 ? call->is.kernel
	       : view == GPU_VIEW_COPIES ? call->is.direction
					 : call->is.api;
}

/* ---- filling ---- */

#define ANY_CODE UINT32_MAX

static bool group_equal(const void *context, uint32_t index, const void *key)
{
	const struct gpu_groups *groups = context;
	const uint32_t *pair = key;

	return groups->group[index].word == pair[0] &&
	       (groups->view == GPU_VIEW_KERNELS || groups->group[index].code == pair[1]);
}

static int find_group(struct gpu_groups *groups, uint32_t word, uint32_t code,
		      struct gpu_group **ret_group)
{
	const uint32_t pair[] = {word, groups->view == GPU_VIEW_KERNELS ? ANY_CODE : code};
	const uint32_t hash = (uint32_t)XXH3_64bits(pair, sizeof(pair));
	uint32_t at;
	int err;

	if (!index_table_find(&groups->index, hash, group_equal, groups, pair, &at)) {
		err = INDEX_RESERVE(&groups->index, hash, groups->group, groups->count,
				    groups->capacity);
		if (err)
			return err;
		at = groups->count++;
		groups->group[at] =
			(struct gpu_group){.word = word, .code = code, .stack = GPU_NO_STACK};
	}
	*ret_group = &groups->group[at];
	return 0;
}

static void add_values(struct gpu_group *group, const struct gpu_table *table,
		       const struct gpu_line *line)
{
	for (unsigned int i = 0; i < GPU_VALUES; i++) {
		group->value[i] = add_saturating(group->value[i], line->value[i]);
		group->variance[i] += pow(gpu_line_error(table, line, i), 2);
	}
}

static int add_line(struct gpu_groups *groups, const struct gpu_table *table,
		    const struct gpu_line *line)
{
	const struct gpu_call *call = &table->call[line->call];
	const enum gpu_value rank = views[groups->view].rank;
	struct gpu_group *group;
	int err;

	if (!is_shown(call, groups->view))
		return 0;
	err = find_group(groups, word_of(call, groups->view), line->code, &group);
	if (err)
		return err;
	add_values(group, table, line);
	for (unsigned int i = 0; i < GPU_VALUES; i++)
		groups->all[i] = add_saturating(groups->all[i], line->value[i]);
	if (line->stack != GPU_NO_STACK &&
	    (group->stack == GPU_NO_STACK || line->value[rank] > group->stack_weight)) {
		group->stack = line->stack;
		group->stack_weight = line->value[rank];
	}
	return 0;
}

/* By kernel: which line has most of its launches. */
static int find_top_lines(struct gpu_groups *groups, const struct gpu_table *table)
{
	CLEANUP(gpu_groups_release) struct gpu_groups lines = {.view = GPU_VIEW_ALL};
	int err = 0;

	for (uint32_t i = 0; i < table->line_count && !err; i++) {
		const struct gpu_line *line = &table->line[i];
		const struct gpu_call *call = &table->call[line->call];
		struct gpu_group *sum;

		if (!is_shown(call, groups->view))
			continue;
		err = find_group(&lines, call->is.kernel, line->code, &sum);
		if (!err)
			add_values(sum, table, line);
	}
	for (uint32_t i = 0; i < lines.count && !err; i++) {
		const struct gpu_group *sum = &lines.group[i];
		struct gpu_group *group;

		err = find_group(groups, sum->word, sum->code, &group);
		if (err || sum->value[GPU_CALLS] <= group->line_value[GPU_CALLS])
			continue;
		group->code = sum->code;
		memcpy(group->line_value, sum->value, sizeof(sum->value));
		memcpy(group->line_variance, sum->variance, sizeof(sum->variance));
	}
	return err;
}

/* ---- order ---- */

static int compare_groups(const void *left, const void *right, void *context)
{
	const enum gpu_value rank = *(const enum gpu_value *)context;
	const enum gpu_value next = rank == GPU_LIVE ? GPU_BYTES : rank;
	const struct gpu_group *a = left, *b = right;

	return ORDER(b->value[rank], a->value[rank])
		       ?: ORDER(b->value[next], a->value[next])
		       ?: ORDER(b->value[GPU_CALLS], a->value[GPU_CALLS])
		       ?: ORDER(a->word, b->word) ?: ORDER(a->code, b->code);
}

int gpu_groups_fill(struct gpu_groups *groups, const struct gpu_table *table, enum gpu_view view)
{
	enum gpu_value rank = views[view].rank;
	int err = 0;

	groups->view = view;
	for (uint32_t i = 0; i < table->line_count && !err; i++)
		err = add_line(groups, table, &table->line[i]);
	if (!err && view == GPU_VIEW_KERNELS)
		err = find_top_lines(groups, table);
	if (err)
		return err;
	if (groups->count)
		qsort_r(groups->group, groups->count, sizeof(*groups->group), compare_groups,
			&rank);
	index_table_release(&groups->index);
	return 0;
}

/* ---- tables for programs ---- */

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
