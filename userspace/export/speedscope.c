/* SPDX-License-Identifier: BSD-2-Clause */
/* Source: https://www.speedscope.app/file-format-schema.json */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_writer.h"
#include "base/saturating.h"
#include "export/exports.h"
#include "render/format.h"

#define SCHEMA "https://www.speedscope.app/file-format-schema.json"
#define MAX_DEPTH 65536U

static void put_frame(struct json_writer *json, const struct code_table *table,
		      const struct code *code)
{
	const char *place = code_place(table, code);
	uint32_t line = code->file ? code_line(code) : 0;

	json_open(json, '{');
	json_put_string(json, "name", code->name ? code_text(table, code->name) : "[unknown]");
	if (place[0])
		json_put_string(json, "file", place);
	if (line)
		json_put_int(json, "line", line);
	json_close(json, '}');
}

static void put_frames(struct json_writer *json, const struct flame_tree *tree)
{
	json_key(json, "shared");
	json_open(json, '{');
	json_key(json, "frames");
	json_open(json, '[');
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
	json_key(json, "samples");
	json_open(json, '[');
	for (uint32_t i = first; i < end; i++)
		put_stack(json, tree, tree->sample[samples->order[i]].node, frame);
	json_close(json, ']');
	json_key(json, "weights");
	json_open(json, '[');
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
	json_key(&json, "profiles");
	json_open(&json, '[');
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
