/* SPDX-License-Identifier: BSD-2-Clause */
#include "drain/line_rows.h"

#include <errno.h>
#include <stdlib.h>

#include <pyprofd/sample.h>

#include "drain/counts.h"
#include "drain/dictionary.h"
#include "drain/hash_set.h"
#include "drain/table.h"
#include "python/python_code.h"

struct row {
	uint64_t id;		   /* first: hash_set.h */
	uint64_t hits, untold, ns; /* as struct pp_line_row has them */
	uint64_t going_on_ns;	   /* since the last event, by all threads that are in the line */
	uint64_t counted_hits, counted_ns;
	uint64_t code;
	uint32_t instruction, line;
	struct pp_process_id process;
};

struct line_rows {
	struct hash_set set;
};

int line_rows_new(struct line_rows **ret_rows)
{
	OWNED(line_rows) struct line_rows *rows = calloc(1, sizeof(*rows));

	if (!rows)
		return -ENOMEM;
	hash_set_init(&rows->set);
	*ret_rows = TAKE(rows);
	return 0;
}

void line_rows_free(struct line_rows *rows)
{
	if (!rows)
		return;
	hash_set_release(&rows->set);
	free(rows);
}

/* ---- what the kernel side has counted ---- */

int line_rows_note(struct line_rows *rows, uint64_t id, const struct pp_line_row *now)
{
	struct row *row = hash_set_get(&rows->set, id, sizeof(*row));

	if (!row)
		return -ENOMEM;
	row->hits = now->hits;
	row->untold = now->untold;
	row->ns = now->ns;
	row->going_on_ns = 0;
	row->code = now->code;
	row->instruction = now->instruction;
	row->line = now->line;
	row->process = now->id;
	return 0;
}

void line_rows_note_run(struct line_rows *rows, const struct pp_line_run *run, uint64_t ended_ns)
{
	const uint32_t at = run->depth - 1;
	struct row *row = at < PP_LINE_DEPTH ? hash_set_find(&rows->set, run->row[at]) : NULL;

	if (row && run->since_ns < ended_ns)
		row->going_on_ns += ended_ns - run->since_ns;
}

/* ---- counters ---- */

/* No room in the dictionary is no error: it counts what it refuses. */
static void give_stack(const struct row *row, struct dictionary *dictionary)
{
	struct pp_frame frame[2] = {
		{.where = row->code, .what = row->instruction, .kind = PP_FRAME_PYTHON},
		{.where = 1, .kind = PP_FRAME_SEGMENT}};
	struct pp_stack_record record = {.hash = row->id,
					 .id = row->process,
					 .python_stored = 1,
					 .python_count = 1,
					 .native_stored = 1,
					 .native_count = 1,
					 .stop = PP_STOP_ROOT,
					 .py_stop = PP_PY_STOP_ROOT};
	const struct decoded_stack stack = {
		.record = &record, .python = frame, .native = frame + 1};

	(void)dictionary_add_stack(dictionary, &stack);
}

/* Returns whether the line is its function's first one; false when the code is not known. */
static bool is_first_line(const struct row *row, const struct dictionary *dictionary)
{
	const struct dict_stack *stack = dictionary_find_stack(dictionary, row->id);
	const struct python_code *code =
		stack && stack->python_stored && packed_kind(stack->frame[0]) == PP_FRAME_PYTHON
			? dictionary_code(dictionary, packed_code(stack->frame[0]))
			: NULL;

	return code && code->first_line == row->line;
}

static int count_row(struct row *row, struct dictionary *dictionary, struct counts *counts)
{
	const uint64_t ns = row->ns + row->going_on_ns;
	struct pp_count count = {.weight = counts_take_new(ns, &row->counted_ns)};
	uint64_t hits = row->hits;
	const struct pp_count_key key = {.id = row->process,
					 .kind = PP_KIND_LINE,
					 .user_stack = row->id,
					 .flags = PP_COUNT_PYTHON |
						  PP_STOP_ROOT << PP_COUNT_STOP_SHIFT |
						  PP_PY_STOP_ROOT << PP_COUNT_PY_STOP_SHIFT};

	give_stack(row, dictionary);
	if (row->untold && is_first_line(row, dictionary))
		hits += row->untold;
	count.samples = counts_take_new(hits, &row->counted_hits);
	if (!count.weight && !count.samples)
		return 0;
	return counts_add(counts, &key, &count);
}

int line_rows_count(struct line_rows *rows, struct dictionary *dictionary, struct counts *counts)
{
	int err = 0;

	for (size_t i = 0; !err && i < rows->set.count; i++)
		err = count_row(rows->set.entry[i], dictionary, counts);
	return err;
}

/* ---- the kernel side's tables ---- */

struct collecting {
	struct line_rows *rows;
	const struct line_tables *tables;
};

static int on_row(void *context, const void *key, const void *value)
{
	const struct collecting *collecting = context;

	return line_rows_note(collecting->rows, *(const uint64_t *)key, value);
}

static int on_run(void *context, const void *key, const void *value)
{
	const struct collecting *collecting = context;
	const struct line_tables *tables = collecting->tables;
	const struct pp_line_run *run = value;

	(void)key;
	if (tables->is_alive(run->tgid, run->tid))
		line_rows_note_run(collecting->rows, run, tables->ended_ns);
	return 0;
}

int line_rows_collect(struct line_rows *rows, const struct line_tables *tables,
		      struct dictionary *dictionary, struct counts *counts)
{
	struct collecting collecting = {.rows = rows, .tables = tables};
	int err = table_read(tables->rows, sizeof(uint64_t), sizeof(struct pp_line_row), on_row,
			     &collecting);

	if (!err)
		err = table_read(tables->runs, sizeof(struct pp_line_run_key),
				 sizeof(struct pp_line_run), on_run, &collecting);
	return err ? err : line_rows_count(rows, dictionary, counts);
}
