/* SPDX-License-Identifier: BSD-2-Clause */
/* Source: https://www.speedscope.app/file-format-schema.json */
/* A profile as nested slices in Chrome's format, one track a thread. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/index_table.h"
#include "base/json_writer.h"
#include "base/saturating.h"
#include "export/exports.h"
#include "render/format.h"
#include "timeline/trace_format.h"

#define SCHEMA "https://www.speedscope.app/file-format-schema.json"
#define MAX_DEPTH 65536U

static void put_frame(struct json_writer *json, const struct code_table *table,
		      const struct code *code)
{
	const char *place = code_place(table, code);
	uint32_t line = code->file ? code_line(code) : 0;

	json_open(json, '{');
	json_put_string(json, "name", code_name(table, code));
	if (place[0])
		json_put_string(json, "file", place);
	if (line)
		json_put_int(json, "line", line);
	json_close(json, '}');
}

static void put_frames(struct json_writer *json, const struct flame_tree *tree)
{
	json_put_open(json, "shared", '{');
	json_put_open(json, "frames", '[');
	for (uint32_t i = 0; i < tree->code.count; i++)
		put_frame(json, &tree->code, &tree->code.code[i]);
	json_close(json, ']');
	json_close(json, '}');
	json_newline(json);
}

/* Returns a unit's name: speedscope has fixed names for its own, others become bare numbers. */
static const char *unit_name(const char *unit)
{
	static const char *const known[] = {"nanoseconds", "microseconds", "milliseconds",
					    "seconds", "bytes"};

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (!strcmp(known[i], unit))
			return known[i];
	return "none";
}

static void put_stack(struct json_writer *json, const struct flame_tree *tree, uint32_t node,
		      uint32_t *frame)
{
	uint32_t depth = 0;

	for (; node && depth < MAX_DEPTH; node = tree->node[node].parent)
		frame[depth++] = tree->node[node].frame;
	json_open(json, '[');
	while (depth)
		json_int(json, frame[--depth]);
	json_close(json, ']');
}

static void put_profile(struct json_writer *json, const struct flame_tree *tree, uint32_t group,
			const struct grouped *samples, uint32_t *frame)
{
	const char *unit = tree->profile->options.value_type[tree->options.value_index].unit;
	uint32_t first = samples->first[group], end = samples->first[group + 1];
	int64_t sum = 0;

	json_open(json, '{');
	json_put_string(json, "type", "sampled");
	json_put_string(json, "name",
			intern_get(tree->profile->strings, tree->groups.group[group].label, NULL));
	json_put_string(json, "unit", unit_name(unit));
	json_put_int(json, "startValue", 0);
	json_put_open(json, "samples", '[');
	for (uint32_t i = first; i < end; i++)
		put_stack(json, tree, tree->sample[samples->item[i]].node, frame);
	json_close(json, ']');
	json_put_open(json, "weights", '[');
	for (uint32_t i = first; i < end; i++) {
		int64_t value = tree->sample[samples->item[i]].value;

		json_int(json, value);
		sum = add_saturating(sum, value);
	}
	json_close(json, ']');
	json_put_int(json, "endValue", sum);
	json_close(json, '}');
}

int export_speedscope(const struct flame_tree *tree, const struct export_facts *facts, FILE *out)
{
	struct json_writer json = json_writer_to(out);
	CLEANUP(grouped_release) struct grouped samples = {0};
	OWNED_MEM uint32_t *frame = calloc(MAX_DEPTH, sizeof(*frame));
	int err =
		GROUPED_INIT(&samples, tree->sample, group, tree->sample_count, tree->groups.count);

	if (err || !frame)
		return -ENOMEM;
	json_open(&json, '{');
	json_put_string(&json, "$schema", SCHEMA);
	json_put_string(&json, "name", facts->title);
	json_put_string(&json, "exporter", "pyprof");
	json_put_int(&json, "activeProfileIndex", 0);
	put_frames(&json, tree);
	json_put_open(&json, "profiles", '[');
	for (uint32_t g = 0; g < tree->groups.count; g++) {
		if (g)
			json_newline(&json);
		put_profile(&json, tree, g, &samples, frame);
	}
	json_close(&json, ']');
	json_close(&json, '}');
	putc('\n', out);
	return json_finish(&json);
}

/* ---- Chrome's trace events ---- */

#define MAX_US (1LL << 53) /* the largest number that JavaScript reads exactly */

struct chrome {
	struct json_writer json;
	const struct flame_tree *tree;
	uint32_t *order; /* owned; nodes with parents first, as they are shown */
	uint32_t *rank;	 /* owned; the place of each node in `order` */
	uint32_t *used;	 /* owned; ranks of the nodes that a group has */
	uint32_t used_count;
	int64_t *total;		   /* owned; of each node, in one group; 0: it has none */
	int64_t *start;		   /* owned; where a node begins, in the profile's unit */
	int64_t *next;		   /* owned; where its next child does */
	int64_t *end;		   /* owned; of each group */
	struct index_table tracks; /* the first group of each */
	double unit_us;		   /* microseconds in one unit */
	struct chrome_track track; /* of the group; made up where it has none */
};

static void chrome_release(struct chrome *chrome)
{
	void *const memory[] = {chrome->order, chrome->rank, chrome->used, chrome->total,
				chrome->start, chrome->next, chrome->end};

	for (size_t i = 0; i < ARRAY_SIZE(memory); i++)
		free(memory[i]);
	index_table_release(&chrome->tracks);
}

/* Rounds to whole microseconds: with fractions, rounding errors could let a child end after its
 * parent, and a reader's stack would be wrong from there on. */
static int64_t microseconds(const struct chrome *chrome, int64_t at)
{
	const double us = (double)at * chrome->unit_us;

	return us < (double)MAX_US ? llround(us) : MAX_US;
}

static void put_node(struct chrome *chrome, uint32_t index)
{
	struct json_writer *json = &chrome->json;
	const struct code_table *table = &chrome->tree->code;
	const struct code *code = &table->code[chrome->tree->node[index].frame];
	const int64_t start = chrome->start[index];
	const int64_t end = add_saturating(start, chrome->total[index]);
	const int64_t from_us = microseconds(chrome, start), to_us = microseconds(chrome, end);

	if (from_us == to_us)
		return;
	chrome_open_event(json, "X", code_name(table, code), &chrome->track);
	json_put_string(json, "cat", frame_class_name((enum frame_class)code->class));
	json_put_int(json, "ts", from_us);
	json_put_int(json, "dur", to_us - from_us);
	json_put_open(json, "args", '{');
	json_put_string(json, "file", code_place(table, code));
	json_put_int(json, "line", code_line(code));
	json_close(json, '}');
	json_close(json, '}');
}

static bool is_of_track(const void *context, uint32_t index, const void *key)
{
	const struct group *group = context, *wanted = key;

	return group[index].pid == wanted->pid && group[index].tid == wanted->tid;
}

/* Finds the end of a group's track, which is kept at the first group of it: a thread that was
 * renamed has several groups but one track, on which they follow each other.  Returns 0 or
 * -ENOMEM. */
static int find_track(struct chrome *chrome, uint32_t group, int64_t **ret_end)
{
	const struct group *all = chrome->tree->groups.group;
	const int64_t key[] = {all[group].pid, all[group].tid};
	const uint32_t hash = (uint32_t)XXH3_64bits(key, sizeof(key));
	uint32_t first = group;
	int err = 0;

	if (all[group].tid &&
	    !index_table_find(&chrome->tracks, hash, is_of_track, all, &all[group], &first))
		err = index_table_add(&chrome->tracks, hash, group);
	*ret_end = &chrome->end[first];
	return err;
}

static void add_value(struct chrome *chrome, uint32_t node, int64_t value)
{
	while (true) {
		if (!chrome->total[node])
			chrome->used[chrome->used_count++] = chrome->rank[node];
		chrome->total[node] = add_saturating(chrome->total[node], value);
		if (!node)
			return;
		node = chrome->tree->node[node].parent;
	}
}

static int compare_ranks(const void *a, const void *b)
{
	return ORDER(*(const uint32_t *)a, *(const uint32_t *)b);
}

/* Writes a group: only the nodes that it has, so that many groups cost what they have. */
static int put_group(struct chrome *chrome, uint32_t group, const struct grouped *samples)
{
	const struct flame_tree *tree = chrome->tree;
	int64_t *end;
	int err = find_track(chrome, group, &end);

	for (uint32_t i = samples->first[group]; i < samples->first[group + 1]; i++) {
		const struct flame_sample *sample = &tree->sample[samples->item[i]];

		if (sample->value > 0)
			add_value(chrome, sample->node, sample->value);
	}
	qsort(chrome->used, chrome->used_count, sizeof(*chrome->used), compare_ranks);
	chrome->next[0] = *end;
	*end = add_saturating(*end, chrome->total[0]);
	for (uint32_t i = 0; i < chrome->used_count; i++) {
		const uint32_t node = chrome->order[chrome->used[i]];
		int64_t *next = &chrome->next[tree->node[node].parent];

		if (node) {
			chrome->start[node] = chrome->next[node] = *next;
			*next = add_saturating(*next, chrome->total[node]);
			put_node(chrome, node);
		}
	}
	while (chrome->used_count)
		chrome->total[chrome->order[chrome->used[--chrome->used_count]]] = 0;
	return err;
}

static int put_groups(struct chrome *chrome)
{
	CLEANUP(grouped_release) struct grouped samples = {0};
	const struct flame_tree *tree = chrome->tree;
	const struct intern *strings = tree->profile->strings;
	int err =
		GROUPED_INIT(&samples, tree->sample, group, tree->sample_count, tree->groups.count);

	for (uint32_t g = 0; g < tree->groups.count && !err; g++) {
		const struct group *group = &tree->groups.group[g];

		chrome->track.pid = group->pid ? group->pid : 1;
		chrome->track.tid = group->tid ? group->tid : (int64_t)g + 1;
		if (group->comm)
			chrome_put_name(&chrome->json, "process_name", &chrome->track,
					intern_get(strings, group->comm, NULL));
		chrome_put_name(&chrome->json, "thread_name", &chrome->track,
				intern_get(strings, group->thread ? group->thread : group->label,
					   NULL));
		err = put_group(chrome, g, &samples);
	}
	return err;
}

/* Orders the nodes as they are shown: each behind its parent, the larger child first. */
static int order_nodes(struct chrome *chrome)
{
	const struct flame_tree *tree = chrome->tree;
	CLEANUP(grouped_release) struct grouped children = {0};
	OWNED_MEM uint32_t *waiting = NULL;
	uint32_t count = 0, waits = 1;
	int err = flame_tree_children(tree, &children);

	waiting = calloc(tree->node_count, sizeof(*waiting));
	if (err || !waiting)
		return -ENOMEM;
	while (waits) {
		const uint32_t node = waiting[--waits];

		chrome->rank[node] = count;
		chrome->order[count++] = node;
		for (uint32_t c = children.first[node + 1]; c-- > children.first[node];)
			waiting[waits++] = children.item[c];
	}
	return 0;
}

static int chrome_init(struct chrome *chrome, const struct flame_tree *tree, FILE *out)
{
	const char *unit = tree->profile->options.value_type[tree->options.value_index].unit;
	const double unit_ns = format_unit_ns(unit);
	const size_t nodes = tree->node_count;

	*chrome = (struct chrome){.json = json_writer_to(out),
				  .tree = tree,
				  .order = calloc(nodes, sizeof(*chrome->order)),
				  .rank = calloc(nodes, sizeof(*chrome->rank)),
				  .used = calloc(nodes, sizeof(*chrome->used)),
				  .total = calloc(nodes, sizeof(*chrome->total)),
				  .start = calloc(nodes, sizeof(*chrome->start)),
				  .next = calloc(nodes, sizeof(*chrome->next)),
				  .end = calloc(tree->groups.count + 1U, sizeof(*chrome->end)),
				  .unit_us = unit_ns > 0 ? unit_ns / 1e3 : 1};
	if (!chrome->order || !chrome->rank || !chrome->used || !chrome->total || !chrome->start ||
	    !chrome->next || !chrome->end)
		return -ENOMEM;
	return order_nodes(chrome);
}

int export_chrome(const struct flame_tree *tree, const struct export_facts *facts, FILE *out)
{
	CLEANUP(chrome_release) struct chrome chrome = {0};
	int err = chrome_init(&chrome, tree, out);

	if (err)
		return err;
	json_open(&chrome.json, '{');
	json_put_string(&chrome.json, "displayTimeUnit", "ms");
	json_put_open(&chrome.json, "otherData", '{');
	json_put_string(&chrome.json, "exporter", "pyprof");
	json_put_string(&chrome.json, "title", facts->title);
	json_put_string(&chrome.json, "note",
			"widths are sums over the whole profile; their order is not that of time");
	json_close(&chrome.json, '}');
	json_put_open(&chrome.json, "traceEvents", '[');
	err = put_groups(&chrome);
	if (err)
		return err;
	json_close(&chrome.json, ']');
	json_close(&chrome.json, '}');
	putc('\n', out);
	return json_finish(&chrome.json);
}
