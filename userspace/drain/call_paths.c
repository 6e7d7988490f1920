/* SPDX-License-Identifier: BSD-2-Clause */
#include "drain/call_paths.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

#include <pyprofd/limits.h>

#include "drain/dictionary.h"
#include "drain/hash_set.h"

#define NOT_STARTED UINT32_MAX /* instruction offset of a frame that has run none: its first line */
/* One frame is the native one that says where the Python frames are. */
#define PATH_MAX_FRAMES (PP_MAX_FRAMES - 1)

struct node {
	uint64_t hash; /* first: hash_set.h */
	uint64_t parent, code;
	struct pp_process_id id;
	uint32_t epoch; /* when it was used last */
};

struct call_paths {
	struct hash_set set;
	uint32_t epoch;
	uint64_t refused, cut;
	struct {
		struct pp_stack_record record;
		struct pp_frame frame[PP_MAX_FRAMES];
	} stack; /* the one that is made */
};

int call_paths_new(struct call_paths **ret_paths)
{
	OWNED(call_paths) struct call_paths *paths = calloc(1, sizeof(*paths));
	int err;

	if (!paths)
		return -ENOMEM;
	err = hash_set_init(&paths->set);
	if (err)
		return err;
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

int call_paths_add(struct call_paths *paths, const struct pp_call_record *record)
{
	struct node *known = hash_set_find(&paths->set, record->node);
	OWNED_MEM struct node *node = NULL;
	int err;

	if (known) {
		known->epoch = paths->epoch;
		return 0;
	}
	if (paths->set.count >= CALL_PATHS_MAX) {
		paths->refused++;
		return -EDQUOT;
	}
	node = malloc(sizeof(*node));
	if (!node)
		return -ENOMEM;
	*node = (struct node){.hash = record->node,
			      .parent = record->parent,
			      .code = record->code,
			      .id = record->id,
			      .epoch = paths->epoch};
	err = hash_set_add(&paths->set, node);
	if (err)
		return err;
	(void)TAKE(node);
	return 0;
}

/* Puts a frame where struct pp_stack_record has it in a full area: those near the root are a ring
 * behind those near the leaf. */
static void put_frame(struct pp_frame *frame, uint32_t at, uint64_t code)
{
	const uint32_t ring = PATH_MAX_FRAMES / PP_ROOT_SHARE, leaf = PATH_MAX_FRAMES - ring;

	frame[at < leaf ? at : leaf + (at - leaf) % ring] =
		(struct pp_frame){.where = code, .what = NOT_STARTED, .kind = PP_FRAME_PYTHON};
}

/* Walks from a node to its root.  The parents come from the ring: a cycle ends at the limit. */
static enum pp_py_stop walk_path(struct call_paths *paths, struct node *node, uint32_t *ret_count)
{
	enum pp_py_stop stop = PP_PY_STOP_NONE;
	uint32_t count = 0;

	while (stop == PP_PY_STOP_NONE) {
		put_frame(paths->stack.frame, count++, node->code);
		node->epoch = paths->epoch;
		if (!node->parent)
			stop = PP_PY_STOP_ROOT;
		else if (count == PP_MAX_STEPS)
			stop = PP_PY_STOP_MAX_STEPS;
		else
			node = hash_set_find(&paths->set, node->parent);
		if (!node)
			stop = PP_PY_STOP_READ_FAULT;
	}
	paths->cut += stop == PP_PY_STOP_READ_FAULT;
	*ret_count = count;
	return stop;
}

int call_paths_give_stack(struct call_paths *paths, uint64_t hash, struct dictionary *dictionary)
{
	struct node *node = hash_set_find(&paths->set, hash);
	struct pp_stack_record *record = &paths->stack.record;
	struct decoded_stack stack = {.record = record, .python = paths->stack.frame};
	enum pp_py_stop stop;
	uint32_t count;

	if (!node)
		return -ENOENT;
	stop = walk_path(paths, node, &count);
	*record = (struct pp_stack_record){
		.hash = hash,
		.id = node->id,
		.python_stored = (uint16_t)(count < PATH_MAX_FRAMES ? count : PATH_MAX_FRAMES),
		.python_count = count,
		.native_stored = 1,
		.native_count = 1,
		.stop = PP_STOP_ROOT,
		.py_stop = (uint8_t)stop,
	};
	paths->stack.frame[record->python_stored] =
		(struct pp_frame){.where = count, .kind = PP_FRAME_SEGMENT};
	stack.native = paths->stack.frame + record->python_stored;
	return dictionary_add_stack(dictionary, &stack);
}

static bool is_recent(const void *context, const void *entry)
{
	const struct call_paths *paths = context;

	return paths->epoch - ((const struct node *)entry)->epoch < 2;
}

void call_paths_end_epoch(struct call_paths *paths)
{
	paths->epoch++;
	hash_set_filter(&paths->set, is_recent, paths);
}

void call_paths_get_stats(const struct call_paths *paths, struct call_paths_stats *ret_stats)
{
	*ret_stats = (struct call_paths_stats){
		.nodes = paths->set.count, .refused = paths->refused, .cut = paths->cut};
}
