/* SPDX-License-Identifier: BSD-2-Clause */
#include "drain/call_paths.h"

#include <errno.h>
#include <stdlib.h>

#include <pyprofd/limits.h>
#include <pyprofd/sample.h>

#include "drain/counts.h"
#include "drain/dictionary.h"
#include "drain/hash_set.h"
#include "drain/table.h"
#include "python/python_code.h"

#define NOT_STARTED UINT32_MAX /* instruction offset of a frame that has run none: its first line */
/* One frame is the native one that says where the Python frames are. */
#define PATH_MAX_FRAMES (PP_MAX_FRAMES - 1)

struct node {
	uint64_t hash; /* first: hash_set.h */
	uint64_t parent, code;
	uint64_t self_ns, calls; /* up to now */
	uint64_t going_on_ns;	 /* since the thread's last event */
	uint64_t counted_ns, counted_calls;
	bool is_removed; /* from the kernel side's table */
	struct pp_process_id id;
	uint32_t tid;
};

struct call_paths {
	struct hash_set set;
	struct {
		struct pp_stack_record record;
		struct pp_frame frame[PP_MAX_FRAMES];
	} stack; /* the one that is made */
};

int call_paths_new(struct call_paths **ret_paths)
{
	OWNED(call_paths) struct call_paths *paths = calloc(1, sizeof(*paths));

	if (!paths)
		return -ENOMEM;
	hash_set_init(&paths->set);
	*ret_paths = TAKE(paths);
	return 0;
}

void call_paths_free(struct call_paths *paths)
{
	if (!paths)
		return;
	hash_set_release(&paths->set);
	free(paths);
}

/* ---- what the kernel side has counted ---- */

int call_paths_note(struct call_paths *paths, uint64_t hash, const struct pp_call_node *now)
{
	struct node *node = hash_set_get(&paths->set, hash, sizeof(*node));

	if (!node)
		return -ENOMEM;
	node->parent = now->parent;
	node->code = now->code;
	node->id = now->id;
	node->tid = now->tid;
	node->self_ns = now->self_ns;
	node->going_on_ns = 0;
	node->calls = now->calls;
	return 0;
}

void call_paths_note_thread(struct call_paths *paths, const struct pp_call_thread *thread,
			    uint64_t ended_ns)
{
	struct node *top = thread->top ? hash_set_find(&paths->set, thread->top) : NULL;

	if (top && thread->last_ns < ended_ns)
		top->going_on_ns = ended_ns - thread->last_ns;
}

/* ---- paths as stacks ---- */

/* Puts a frame where struct pp_stack_record has it in a full area: those near the root are a ring
 * behind those near the leaf. */
static void put_frame(struct pp_frame *frame, uint32_t at, uint64_t code)
{
	const uint32_t ring = PATH_MAX_FRAMES / PP_ROOT_SHARE, leaf = PATH_MAX_FRAMES - ring;

	frame[at < leaf ? at : leaf + (at - leaf) % ring] =
		(struct pp_frame){.where = code, .what = NOT_STARTED, .kind = PP_FRAME_PYTHON};
}

/* A path from a leaf to its root, in paths->stack. */
struct path {
	uint64_t hash; /* equal paths of a process have one stack, whatever thread they are of */
	uint32_t count;
	enum pp_py_stop stop;
};

/* The limit also ends a cycle, which two nodes of one id would make. */
static struct path walk_path(struct call_paths *paths, const struct node *node)
{
	struct path path = {.hash = hash_mix(node->id.tgid, node->id.generation)};

	while (path.stop == PP_PY_STOP_NONE) {
		put_frame(paths->stack.frame, path.count++, node->code);
		path.hash = hash_mix(path.hash, node->code);
		if (!node->parent)
			path.stop = PP_PY_STOP_ROOT;
		else if (path.count == PP_MAX_STEPS)
			path.stop = PP_PY_STOP_MAX_STEPS;
		else
			node = hash_set_find(&paths->set, node->parent);
		if (!node)
			path.stop = PP_PY_STOP_READ_FAULT;
	}
	path.hash = hash_mix(path.hash, path.stop) | 1;
	return path;
}

/* No room in the dictionary is no error: it counts what it refuses. */
static void give_stack(struct call_paths *paths, const struct path *path, struct pp_process_id id,
		       struct dictionary *dictionary)
{
	struct pp_stack_record *record = &paths->stack.record;
	struct decoded_stack stack = {.record = record, .python = paths->stack.frame};
	const uint32_t stored = path->count < PATH_MAX_FRAMES ? path->count : PATH_MAX_FRAMES;

	*record = (struct pp_stack_record){
		.hash = path->hash,
		.id = id,
		.python_stored = (uint16_t)stored,
		.python_count = path->count,
		.native_stored = 1,
		.native_count = 1,
		.stop = PP_STOP_ROOT,
		.py_stop = (uint8_t)path->stop,
	};
	paths->stack.frame[stored] =
		(struct pp_frame){.where = path->count, .kind = PP_FRAME_SEGMENT};
	stack.native = paths->stack.frame + stored;
	(void)dictionary_add_stack(dictionary, &stack);
}

/* ---- counters ---- */

static int count_node(struct call_paths *paths, struct node *node, struct dictionary *dictionary,
		      struct counts *counts)
{
	const uint64_t self_ns = node->self_ns + node->going_on_ns;
	const struct pp_count count = {.weight = counts_take_new(self_ns, &node->counted_ns),
				       .samples =
					       counts_take_new(node->calls, &node->counted_calls)};
	/* Of so many threads that their nodes had to make room, none has a row of its own. */
	struct pp_count_key key = {
		.id = node->id, .tid = node->is_removed ? 0 : node->tid, .kind = PP_KIND_CALL};
	struct path path;

	if (!count.weight && !count.samples)
		return 0;
	path = walk_path(paths, node);
	give_stack(paths, &path, node->id, dictionary);
	key.user_stack = path.hash;
	key.flags = PP_COUNT_PYTHON | PP_STOP_ROOT << PP_COUNT_STOP_SHIFT |
		    path.stop << PP_COUNT_PY_STOP_SHIFT;
	return counts_add(counts, &key, &count);
}

/* A node that is removed and counted is needed by no other: those below it are of the same
 * thread. */
static bool is_kept(const void *context, const void *entry)
{
	const struct node *node = entry;

	(void)context;
	return !node->is_removed;
}

int call_paths_count(struct call_paths *paths, struct dictionary *dictionary, struct counts *counts)
{
	int err = 0;

	for (size_t i = 0; !err && i < paths->set.count; i++)
		err = count_node(paths, paths->set.entry[i], dictionary, counts);
	if (!err)
		hash_set_filter(&paths->set, is_kept, paths);
	return err;
}

/* ---- the kernel side's tables ---- */

struct collecting {
	struct call_paths *paths;
	const struct call_tables *tables;
};

static int on_node(void *context, const void *key, const void *value)
{
	return call_paths_note(context, *(const uint64_t *)key, value);
}

static int on_thread(void *context, const void *key, const void *value)
{
	const struct collecting *collecting = context;
	const struct call_tables *tables = collecting->tables;

	(void)key;
	if (tables->is_alive(tables->context, value))
		call_paths_note_thread(collecting->paths, value, tables->ended_ns);
	return 0;
}

int call_paths_collect(struct call_paths *paths, const struct call_tables *tables,
		       struct dictionary *dictionary, struct counts *counts)
{
	struct collecting collecting = {.paths = paths, .tables = tables};
	int err = table_read(tables->nodes, sizeof(uint64_t), sizeof(struct pp_call_node), on_node,
			     paths);

	if (!err)
		err = table_read(tables->threads, sizeof(uint32_t), sizeof(struct pp_call_thread),
				 on_thread, &collecting);
	return err ? err : call_paths_count(paths, dictionary, counts);
}

/* ---- threads that have ended ---- */

struct tidying {
	const struct call_tables *tables;
	struct pp_call_thread
		last;  /* that was looked for: a thread's nodes often follow each other */
	bool is_alive; /* the last one */
	int removed;
};

static bool is_of_ended(struct tidying *tidying, const struct node *node)
{
	struct pp_call_thread *last = &tidying->last;

	if (node->tid != last->tid || node->id.tgid != last->id.tgid) {
		*last = (struct pp_call_thread){.tid = node->tid, .id = node->id};
		tidying->is_alive = tidying->tables->is_alive(tidying->tables->context, last);
	}
	return !tidying->is_alive;
}

int call_paths_tidy(struct call_paths *paths, const struct call_tables *tables)
{
	struct tidying tidying = {.tables = tables};
	int err = table_read(tables->nodes, sizeof(uint64_t), sizeof(struct pp_call_node), on_node,
			     paths);

	for (size_t i = 0; !err && i < paths->set.count; i++) {
		struct node *node = paths->set.entry[i];

		if (!node->is_removed && is_of_ended(&tidying, node)) {
			node->is_removed = true;
			tidying.removed += !table_remove(tables->nodes, &node->hash);
		}
	}
	return err ? err : tidying.removed;
}

/* ---- exact lines ---- */

struct row {
	uint64_t id;		   /* first: hash_set.h */
	uint64_t hits, untold, ns; /* as struct pp_line_row has them */
	uint64_t going_on_ns;	   /* since the last event, by all threads that are in the line */
	uint64_t counted_hits, counted_ns;
	uint64_t code;
	uint32_t instruction, line;
	struct pp_process_id process;
};

int line_rows_note(struct hash_set *rows, uint64_t id, const struct pp_line_row *now)
{
	struct row *row = hash_set_get(rows, id, sizeof(*row));

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

void line_rows_note_run(struct hash_set *rows, const struct pp_line_run *run, uint64_t ended_ns)
{
	const uint32_t at = run->depth - 1;
	struct row *row = at < PP_LINE_DEPTH ? hash_set_find(rows, run->row[at]) : NULL;

	if (row && run->since_ns < ended_ns)
		row->going_on_ns += ended_ns - run->since_ns;
}

/* No room in the dictionary is no error: it counts what it refuses. */
static void give_line_stack(const struct row *row, struct dictionary *dictionary)
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

	give_line_stack(row, dictionary);
	if (row->untold && is_first_line(row, dictionary))
		hits += row->untold;
	count.samples = counts_take_new(hits, &row->counted_hits);
	if (!count.weight && !count.samples)
		return 0;
	return counts_add(counts, &key, &count);
}

int line_rows_count(struct hash_set *rows, struct dictionary *dictionary, struct counts *counts)
{
	int err = 0;

	for (size_t i = 0; !err && i < rows->count; i++)
		err = count_row(rows->entry[i], dictionary, counts);
	return err;
}

struct lines_collecting {
	struct hash_set *rows;
	const struct line_tables *tables;
};

static int on_row(void *context, const void *key, const void *value)
{
	return line_rows_note(context, *(const uint64_t *)key, value);
}

static int on_run(void *context, const void *key, const void *value)
{
	const struct lines_collecting *collecting = context;
	const struct line_tables *tables = collecting->tables;
	const struct pp_line_run *run = value;

	(void)key;
	if (tables->is_alive(run->tgid, run->tid))
		line_rows_note_run(collecting->rows, run, tables->ended_ns);
	return 0;
}

int line_rows_collect(struct hash_set *rows, const struct line_tables *tables,
		      struct dictionary *dictionary, struct counts *counts)
{
	struct lines_collecting collecting = {.rows = rows, .tables = tables};
	int err = table_read(tables->rows, sizeof(uint64_t), sizeof(struct pp_line_row), on_row,
			     rows);

	if (!err)
		err = table_read(tables->runs, sizeof(struct pp_line_run_key),
				 sizeof(struct pp_line_run), on_run, &collecting);
	return err ? err : line_rows_count(rows, dictionary, counts);
}
