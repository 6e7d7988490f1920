/* SPDX-License-Identifier: BSD-2-Clause */
/* Source: https://www.speedscope.app/file-format-schema.json */
/* A profile as nested slices in Chrome's format, one track a thread. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

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

struct group_samples {
	uint32_t *order; /* samples, by group */
	uint32_t *first; /* of group g: order[first[g]] .. order[first[g + 1]] */
};

static void group_samples_release(struct group_samples *samples)
{
	free(samples->order);
	free(samples->first);
}

static int sort_samples(const struct flame_tree *tree, struct group_samples *samples)
{
	samples->order = calloc((size_t)tree->sample_count + 1, sizeof(*samples->order));
	samples->first = calloc((size_t)tree->groups.count + 2, sizeof(*samples->first));
	if (!samples->order || !samples->first)
		return -ENOMEM;
	for (uint32_t i = 0; i < tree->sample_count; i++)
		samples->first[tree->sample[i].group + 2]++;
	for (uint32_t g = 2; g <= tree->groups.count; g++)
		samples->first[g] += samples->first[g - 1];
	for (uint32_t i = 0; i < tree->sample_count; i++)
		samples->order[samples->first[tree->sample[i].group + 1]++] = i;
	return 0;
}

static void put_profile(struct json_writer *json, const struct flame_tree *tree, uint32_t group,
			const struct group_samples *samples, uint32_t *frame)
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
		put_stack(json, tree, tree->sample[samples->order[i]].node, frame);
	json_close(json, ']');
	json_put_open(json, "weights", '[');
	for (uint32_t i = first; i < end; i++) {
		int64_t value = tree->sample[samples->order[i]].value;

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
	CLEANUP(group_samples_release) struct group_samples samples = {0};
	OWNED_MEM uint32_t *frame = calloc(MAX_DEPTH, sizeof(*frame));
	int err = sort_samples(tree, &samples);

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
	const uint32_t *child, *first;
	int64_t *value;		   /* of one group: self and total, see flame_tree_group_values() */
	int64_t *start;		   /* of each node, in the profile's unit */
	int64_t *end;		   /* of each group */
	double unit_us;		   /* microseconds in one unit */
	struct chrome_track track; /* of the group; made up where it has none */
};

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
	const int64_t end = add_saturating(start, chrome->value[(size_t)index * 2 + 1]);
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

/* Returns where a group's track ends: a thread that was renamed has several groups but one track,
 * on which they follow each other. */
static int64_t end_of_track(const struct chrome *chrome, uint32_t group)
{
	const struct group *all = chrome->tree->groups.group;

	for (uint32_t g = group; g-- > 0;)
		if (all[g].pid == all[group].pid && all[g].tid == all[group].tid && all[g].tid)
			return chrome->end[g];
	return 0;
}

/* Writes a group.  Parents come before their children, so one pass gives every child its start. */
static void put_group(struct chrome *chrome, uint32_t group)
{
	const struct flame_tree *tree = chrome->tree;

	flame_tree_group_values(tree, group, chrome->value);
	chrome->start[0] = end_of_track(chrome, group);
	chrome->end[group] = add_saturating(chrome->start[0], chrome->value[1]);
	for (uint32_t i = 0; i < tree->node_count; i++) {
		int64_t at = chrome->start[i];

		if (chrome->value[(size_t)i * 2 + 1] <= 0)
			continue;
		if (i)
			put_node(chrome, i);
		for (uint32_t c = chrome->first[i]; c < chrome->first[i + 1]; c++) {
			chrome->start[chrome->child[c]] = at;
			at = add_saturating(at, chrome->value[(size_t)chrome->child[c] * 2 + 1]);
		}
	}
}

static void put_groups(struct chrome *chrome)
{
	const struct flame_tree *tree = chrome->tree;
	const struct intern *strings = tree->profile->strings;

	for (uint32_t g = 0; g < tree->groups.count; g++) {
		const struct group *group = &tree->groups.group[g];

		chrome->track.pid = group->pid ? group->pid : 1;
		chrome->track.tid = group->tid ? group->tid : (int64_t)g + 1;
		if (group->comm)
			chrome_put_name(&chrome->json, "process_name", &chrome->track,
					intern_get(strings, group->comm, NULL));
		chrome_put_name(&chrome->json, "thread_name", &chrome->track,
				intern_get(strings, group->thread ? group->thread : group->label,
					   NULL));
		put_group(chrome, g);
	}
}

int export_chrome(const struct flame_tree *tree, const struct export_facts *facts, FILE *out)
{
	const char *unit = tree->profile->options.value_type[tree->options.value_index].unit;
	double unit_ns = format_unit_ns(unit);
	OWNED_MEM uint32_t *child = NULL, *first = NULL;
	OWNED_MEM int64_t *value = calloc((size_t)tree->node_count * 2, sizeof(*value));
	OWNED_MEM int64_t *start = calloc(tree->node_count, sizeof(*start));
	OWNED_MEM int64_t *end = calloc(tree->groups.count + 1U, sizeof(*end));
	struct chrome chrome = {.json = json_writer_to(out),
				.tree = tree,
				.value = value,
				.start = start,
				.end = end,
				.unit_us = unit_ns > 0 ? unit_ns / 1e3 : 1};
	int err = flame_tree_children(tree, &child, &first);

	if (err || !value || !start || !end)
		return -ENOMEM;
	chrome.child = child;
	chrome.first = first;
	json_open(&chrome.json, '{');
	json_put_string(&chrome.json, "displayTimeUnit", "ms");
	json_put_open(&chrome.json, "otherData", '{');
	json_put_string(&chrome.json, "exporter", "pyprof");
	json_put_string(&chrome.json, "title", facts->title);
	json_put_string(&chrome.json, "note",
			"widths are sums over the whole profile; their order is not that of time");
	json_close(&chrome.json, '}');
	json_put_open(&chrome.json, "traceEvents", '[');
	put_groups(&chrome);
	json_close(&chrome.json, ']');
	json_close(&chrome.json, '}');
	putc('\n', out);
	return json_finish(&chrome.json);
}
