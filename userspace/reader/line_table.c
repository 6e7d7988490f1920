/* SPDX-License-Identifier: BSD-2-Clause */
#include "reader/line_table.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/kinds.h"
#include "base/saturating.h"

bool line_path_matches(const char *path, const char *wanted)
{
	size_t path_size = strlen(path), size = strlen(wanted);

	while (!strncmp(wanted, "./", 2)) {
		wanted += 2;
		size -= 2;
	}
	if (!size || path_size < size || strcmp(path + path_size - size, wanted))
		return false;
	return path_size == size || path[path_size - size - 1] == '/';
}

void line_file_release(struct line_file *file)
{
	free(file->row);
	free(file->function);
	*file = (struct line_file){0};
}

static int compare_rows(const void *a, const void *b)
{
	uint32_t line_a = ((const struct line_row *)a)->line;
	uint32_t line_b = ((const struct line_row *)b)->line;

	return (line_a > line_b) - (line_a < line_b);
}

const struct line_row *line_file_find(const struct line_file *file, uint32_t line)
{
	struct line_row key = {.line = line};

	return file->count ? bsearch(&key, file->row, file->count, sizeof(key), compare_rows)
			   : NULL;
}

/* ---- rows ---- */

static const struct code *code_of(const struct totals *totals, uint32_t row)
{
	return &totals->code.code[totals->row[row].code];
}

/* Compares by text, because the two profiles have different tables of strings. */
static bool is_of_file(const struct totals *totals, uint32_t row, const char *path)
{
	const struct code *code = code_of(totals, row);

	return code->line && !strcmp(code_text(&totals->code, code->file), path);
}

static void add_ran(struct line_file *file, const struct totals *ran)
{
	for (uint32_t i = 0; i < ran->count; i++)
		if (is_of_file(ran, i, file->path) && ran->row[i].total.value)
			file->row[file->count++] = (struct line_row){.line = code_of(ran, i)->line,
								     .self = &ran->row[i].self,
								     .total = &ran->row[i].total};
}

static void add_wait(struct line_row *row, const struct totals *waited, uint32_t index)
{
	int64_t value = waited->row[index].self.value;
	uint32_t wait = waited->groups.group[waited->row[index].group].wait;

	row->wait += value;
	if (value <= row->reason_wait)
		return;
	row->reason_wait = value;
	row->reason = wait ? code_text(&waited->code, wait) : NULL;
}

static void add_waited(struct line_file *file, const struct totals *waited, bool has_cpu)
{
	for (uint32_t i = 0; waited && i < waited->count; i++) {
		struct line_row *row;
		bool is_cpu = has_cpu && !waited->groups.group[waited->row[i].group].wait;

		if (is_cpu || !waited->row[i].self.value || !is_of_file(waited, i, file->path))
			continue;
		row = (struct line_row *)line_file_find(file, code_of(waited, i)->line);
		if (!row) {
			row = &file->row[file->count++];
			*row = (struct line_row){.line = code_of(waited, i)->line};
			qsort(file->row, file->count, sizeof(*row), compare_rows);
			row = (struct line_row *)line_file_find(file, code_of(waited, i)->line);
		}
		add_wait(row, waited, i);
	}
}

static uint32_t rows_at_most(const struct line_file *file, const struct line_sources *sources)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < sources->ran->count; i++)
		count += is_of_file(sources->ran, i, file->path);
	for (uint32_t i = 0; sources->waited && i < sources->waited->count; i++)
		count += is_of_file(sources->waited, i, file->path);
	return count;
}

/* ---- functions ---- */

static int compare_functions(const void *a, const void *b)
{
	const struct line_function *function_a = a, *function_b = b;

	if (function_a->start_line != function_b->start_line)
		return function_a->start_line < function_b->start_line ? -1 : 1;
	return strcmp(function_a->name, function_b->name);
}

/* Merges equal functions, which differ only in their lines. */
static void merge_functions(struct line_file *file)
{
	uint32_t kept = 0;

	qsort(file->function, file->function_count, sizeof(file->function[0]), compare_functions);
	for (uint32_t i = 0; i < file->function_count; i++) {
		struct line_function *last = kept ? &file->function[kept - 1] : NULL;

		if (!last || compare_functions(last, &file->function[i]))
			file->function[kept++] = file->function[i];
		else if (file->function[i].last_line > last->last_line)
			last->last_line = file->function[i].last_line;
	}
	file->function_count = kept;
}

static int add_functions(struct line_file *file, const struct profile *profile)
{
	const struct stack_table *stacks = &profile->stacks;
	uint32_t count = 0;

	for (uint32_t i = 0; i < stacks->location_count; i++)
		count += stacks->location[i].file == file->path_string;
	file->function = calloc((size_t)count + 1, sizeof(file->function[0]));
	if (!file->function)
		return -ENOMEM;
	for (uint32_t i = 0; i < stacks->location_count; i++) {
		const struct frame *frame = &stacks->location[i];

		if (frame->file != file->path_string)
			continue;
		file->function[file->function_count++] =
			(struct line_function){.name = frame_name(profile, frame),
					       .start_line = frame->start_line,
					       .last_line = frame->line};
	}
	merge_functions(file);
	return 0;
}

int line_file_fill(struct line_file *file, const struct line_sources *sources)
{
	bool has_cpu = sources->waited &&
		       kind_is(sources->waited->code.profile->options.kind, PP_PROFILE_WALL);

	file->row = calloc((size_t)rows_at_most(file, sources) + 1, sizeof(file->row[0]));
	if (!file->row)
		return -ENOMEM;
	add_ran(file, sources->ran);
	qsort(file->row, file->count, sizeof(file->row[0]), compare_rows);
	add_waited(file, sources->waited, has_cpu);
	return add_functions(file, sources->profile);
}

/* ---- exact lines ---- */

static int value_of(const struct profile *profile, const char *type, const char *unit)
{
	for (size_t i = 0; i < profile->options.value_count; i++)
		if (!strcmp(profile->options.value_type[i].type, type) &&
		    !strcmp(profile->options.value_type[i].unit, unit))
			return (int)i;
	return -ENOENT;
}

/* As include/pyprofd/kinds.h names the values of LINES. */
bool line_values_find(const struct profile *profile, struct line_values *ret_values)
{
	const int hits = value_of(profile, "hits", "count");
	const int time = value_of(profile, "time", "nanoseconds");

	if (hits < 0 || time < 0)
		return false;
	*ret_values = (struct line_values){.hits = (unsigned int)hits, .time = (unsigned int)time};
	return true;
}

static uint32_t function_of(const struct line_file *file, const struct profile *profile,
			    const struct frame *frame)
{
	const struct line_function key = {.name = frame_name(profile, frame),
					  .start_line = frame->start_line};
	const struct line_function *found =
		bsearch(&key, file->function, file->function_count, sizeof(key), compare_functions);

	return found ? (uint32_t)(found - file->function) : 0;
}

/* Makes one row of those of a line and function: processes have their own. */
static void merge_rows(struct line_file *file)
{
	uint32_t kept = 0;

	qsort(file->row, file->count, sizeof(file->row[0]), compare_rows);
	for (uint32_t i = 0; i < file->count; i++) {
		struct line_row *last = kept ? &file->row[kept - 1] : NULL;
		const struct line_row *row = &file->row[i];

		if (!last || last->line != row->line) {
			file->row[kept++] = *row;
			continue;
		}
		last->hits = add_saturating(last->hits, row->hits);
		last->time = add_saturating(last->time, row->time);
	}
	file->count = kept;
}

int line_file_fill_exact(struct line_file *file, const struct profile *profile,
			 const struct line_values *values)
{
	int err = add_functions(file, profile);

	file->row = calloc((size_t)profile->row_count + 1, sizeof(file->row[0]));
	if (err || !file->row)
		return -ENOMEM;
	for (uint32_t i = 0; i < profile->row_count; i++) {
		const struct stack *stack = &profile->stacks.stack[profile->row[i].stack];
		const int64_t *value = profile_row_values(profile, i);
		const struct frame *frame;
		struct line_row *row;

		if (!stack->count)
			continue;
		frame = &profile->stacks.location[stack->location[0]];
		if (frame->file != file->path_string || !frame->line)
			continue;
		row = &file->row[file->count++];
		*row = (struct line_row){.line = frame->line,
					 .hits = value[values->hits],
					 .time = value[values->time],
					 .function = function_of(file, profile, frame)};
		file->function[row->function].time =
			add_saturating(file->function[row->function].time, row->time);
	}
	merge_rows(file);
	return 0;
}
