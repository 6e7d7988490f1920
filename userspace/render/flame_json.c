/* SPDX-License-Identifier: BSD-2-Clause */
#include "render/flame_json.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/json_writer.h"

#define FIRST_VERSION 1

/* The page contains only the strings that it needs: id of the profile -> index in the page. */
struct texts {
	const struct intern *strings;
	uint32_t *index; /* + 1; 0: not used yet */
	uint32_t *used;	 /* ids, in the page's order */
	uint32_t count;
};

static void texts_release(struct texts *texts)
{
	free(texts->index);
	free(texts->used);
}

static int texts_init(struct texts *texts, const struct intern *strings)
{
	size_t count = intern_count(strings);

	texts->strings = strings;
	texts->index = calloc(count, sizeof(*texts->index));
	texts->used = calloc(count, sizeof(*texts->used));
	return texts->index && texts->used ? 0 : -ENOMEM;
}

static uint32_t text_index(struct texts *texts, uint32_t string)
{
	if (!texts->index[string]) {
		texts->used[texts->count] = string;
		texts->index[string] = ++texts->count;
	}
	return texts->index[string] - 1;
}

static void put_head(struct json_writer *json, const struct flame_tree *tree,
		     const struct flame_json_facts *facts)
{
	const struct profile_options *options = &tree->profile->options;
	const struct profile_value_type *shown = &options->value_type[tree->options.value_index];

	json_put_int(json, "version", FIRST_VERSION);
	json_put_string(json, "title", facts->title);
	json_put_string(json, "unit", shown->unit);
	json_put_string(json, "kind", options->kind);
	json_put_string(json, "sampleType", shown->type);
	json_key(json, "sampleTypes");
	json_open(json, '[');
	for (size_t i = 0; i < options->value_count; i++) {
		json_open(json, '{');
		json_put_string(json, "type", options->value_type[i].type);
		json_put_string(json, "unit", options->value_type[i].unit);
		json_close(json, '}');
	}
	json_close(json, ']');
	json_put_int(json, "start_ns", (int64_t)facts->start_wall_ns);
	json_put_int(json, "duration_ns", (int64_t)facts->duration_ns);
	json_put_int(json, "period", options->period);
	json_put_int(json, "windows", (int64_t)facts->windows);
	json_put_int(json, "sampleCount", (int64_t)facts->sample_count);
	json_newline(json);
}

static void put_frames(struct json_writer *json, const struct flame_tree *tree, struct texts *texts)
{
	json_key(json, "frames");
	json_open(json, '[');
	for (uint32_t i = 0; i < tree->code.count; i++) {
		const struct code *code = &tree->code.code[i];

		json_open(json, '[');
		json_int(json, text_index(texts, code->name));
		json_int(json, text_index(texts, code->file));
		json_int(json, code_line(code));
		json_int(json, code->class);
		json_int(json, text_index(texts, code->module));
		json_close(json, ']');
	}
	json_close(json, ']');
	json_newline(json);
}

/* Writes the short paths that are shown instead of whole ones. */
static void put_short_files(struct json_writer *json, const struct flame_tree *tree,
			    const struct short_paths *paths, struct texts *texts)
{
	json_key(json, "shortFiles");
	json_open(json, '[');
	for (uint32_t i = 0; i < paths->count; i++) {
		const struct short_path *path = &paths->path[i];

		if (!path->offset || path->string >= intern_count(tree->profile->strings) ||
		    !texts->index[path->string])
			continue;
		json_open(json, '[');
		json_int(json, text_index(texts, path->string));
		json_string(json, path->text + path->offset);
		json_close(json, ']');
	}
	json_close(json, ']');
	json_newline(json);
}

static void put_groups(struct json_writer *json, const struct flame_tree *tree)
{
	const struct intern *strings = tree->profile->strings;

	json_key(json, "groups");
	json_open(json, '[');
	for (uint32_t i = 0; i < tree->groups.count; i++) {
		const struct group *group = &tree->groups.group[i];

		json_open(json, '{');
		json_put_string(json, "label", intern_get(strings, group->label, NULL));
		json_put_int(json, "pid", group->pid);
		json_put_int(json, "tid", group->tid);
		json_put_string(json, "comm", intern_get(strings, group->comm, NULL));
		json_put_string(json, "thread", intern_get(strings, group->thread, NULL));
		json_close(json, '}');
	}
	json_close(json, ']');
	json_newline(json);
}

enum column { NODE_FRAME, NODE_PARENT, SAMPLE_NODE, SAMPLE_GROUP, SAMPLE_VALUE, SAMPLE_BASE };

static int64_t cell(const struct flame_tree *tree, enum column column, uint32_t i)
{
	switch (column) {
	case NODE_FRAME:
		return tree->node[i].frame;
	case NODE_PARENT:
		return tree->node[i].parent;
	case SAMPLE_NODE:
		return tree->sample[i].node;
	case SAMPLE_GROUP:
		return tree->sample[i].group;
	case SAMPLE_BASE:
		return tree->sample[i].base;
	default:
		return tree->sample[i].value;
	}
}

static void put_column(struct json_writer *json, const struct flame_tree *tree, const char *name,
		       enum column column)
{
	uint32_t count = column <= NODE_PARENT ? tree->node_count : tree->sample_count;

	json_key(json, name);
	json_open(json, '[');
	for (uint32_t i = 0; i < count; i++)
		json_int(json, cell(tree, column, i));
	json_close(json, ']');
	json_newline(json);
}

static void put_stacks(struct json_writer *json, const struct flame_tree *tree)
{
	json_key(json, "stacks");
	json_open(json, '{');
	put_column(json, tree, "frame", NODE_FRAME);
	json_put_int(json, "count", tree->node_count);
	put_column(json, tree, "parent", NODE_PARENT);
	json_put_int(json, "root", 0);
	json_close(json, '}');
	json_newline(json);
	json_key(json, "samples");
	json_open(json, '{');
	put_column(json, tree, "node", SAMPLE_NODE);
	put_column(json, tree, "group", SAMPLE_GROUP);
	put_column(json, tree, "value", SAMPLE_VALUE);
	if (tree->options.row_base)
		put_column(json, tree, "base", SAMPLE_BASE);
	json_put_int(json, "count", tree->sample_count);
	json_close(json, '}');
	json_newline(json);
}

static void put_sum(struct json_writer *json, const struct totals *totals,
		    const struct totals_sum *sum, const char *name)
{
	json_key(json, name);
	json_open(json, '{');
	json_put_int(json, "value", sum->value);
	json_put_double(json, "share", totals_share(totals, sum));
	json_key(json, "error");
	json_double(json,
		    totals_share_error(totals, sum) < 0 ? NAN : totals_share_error(totals, sum));
	json_put_int(json, "samples", sum->samples);
	json_close(json, '}');
}

static void put_functions(struct json_writer *json, const struct totals *totals)
{
	json_key(json, "functions");
	json_open(json, '[');
	for (uint32_t i = 0; i < totals->count; i++) {
		const struct code *code = &totals->code.code[totals->row[i].code];

		if (i)
			json_newline(json);
		json_open(json, '{');
		json_put_string(json, "name", code_text(&totals->code, code->name));
		json_put_string(json, "file", code_text(&totals->code, code->file));
		json_put_int(json, "line", code->start_line);
		json_put_string(json, "module", code_text(&totals->code, code->module));
		json_put_string(json, "class", frame_class_name((enum frame_class)code->class));
		put_sum(json, totals, &totals->row[i].self, "self");
		put_sum(json, totals, &totals->row[i].total, "total");
		json_close(json, '}');
	}
	json_close(json, ']');
	json_newline(json);
}

/* Last, because only then all needed strings are known. */
static void put_strings(struct json_writer *json, const struct texts *texts)
{
	json_key(json, "strings");
	json_open(json, '[');
	for (uint32_t i = 0; i < texts->count; i++)
		json_string(json, intern_get(texts->strings, texts->used[i], NULL));
	json_close(json, ']');
}

int flame_json_write(const struct flame_tree *tree, const struct flame_json_facts *facts, FILE *out)
{
	struct json_writer json = json_writer_to(out);
	CLEANUP(texts_release) struct texts texts = {0};
	int err = texts_init(&texts, tree->profile->strings);

	if (err)
		return err;
	(void)text_index(&texts, 0);
	json_open(&json, '{');
	put_head(&json, tree, facts);
	if (facts->totals)
		put_functions(&json, facts->totals);
	put_frames(&json, tree, &texts);
	if (facts->short_paths)
		put_short_files(&json, tree, facts->short_paths, &texts);
	put_groups(&json, tree);
	put_stacks(&json, tree);
	if (facts->put_more)
		err = facts->put_more(facts->context, &json, tree);
	if (err)
		return err;
	put_strings(&json, &texts);
	json_close(&json, '}');
	putc('\n', out);
	return json_finish(&json);
}
