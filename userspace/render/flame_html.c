/* SPDX-License-Identifier: BSD-2-Clause */
#include "render/flame_html.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/json_writer.h"
#include "base/utf8.h"
#include "flame_page.h"

#define REPLACEMENT "\xef\xbf\xbd" /* U+FFFD */
#define DATA_BUFFER_BYTES (64U << 10)
#define FIRST_VERSION 1

/* Returns what is written instead of the character at `text`; NULL: the character itself. */
static const char *instead_of(const char *text, size_t size)
{
	switch (text[0]) {
	case '&':
		return "&amp;";
	case '<':
		return "&lt;";
	case '>':
		return "&gt;";
	case '"':
		return "&quot;";
	case '\'':
		return "&#39;";
	default:
		/* U+FFFE and U+FFFF. */
		return size >= 3 && !memcmp(text, "\xef\xbf", 2) && (unsigned char)text[2] >= 0xbe
			       ? REPLACEMENT
			       : NULL;
	}
}

static int put(FILE *out, const char *bytes, size_t size)
{
	if (size && fwrite(bytes, 1, size, out) != size)
		return errno ? -errno : -EIO;
	return 0;
}

static int write_clean(FILE *out, const char *text, size_t size)
{
	size_t done = 0;
	int err;

	for (size_t at = 0; at < size; at++) {
		const char *named = instead_of(text + at, size - at);

		if (!named)
			continue;
		err = put(out, text + done, at - done);
		if (!err)
			err = put(out, named, strlen(named));
		if (err)
			return err;
		if (text[at] == '\xef')
			at += 2;
		done = at + 1;
	}
	return put(out, text + done, size - done);
}

int markup_write(FILE *out, const char *text, size_t size)
{
	OWNED_MEM char *clean = NULL;

	errno = 0;
	if (utf8_is_clean(text, size))
		return write_clean(out, text, size);
	clean = malloc(size * UTF8_CLEAN_MAX_GROWTH);
	if (!clean)
		return -ENOMEM;
	return write_clean(out, clean, utf8_clean(text, size, clean));
}

/* ---- the page ---- */

/* The page's parts: up to the title, up to the data, and the rest. */
_Static_assert(ARRAY_SIZE(flame_page) == 3,
	       "page.html has one @TITLE@ and one @DATA@, in this order");

/* The write function for fopencookie(): 0 means an error. */
static ssize_t write_without_tags(void *cookie, const char *bytes, size_t size)
{
	FILE *out = cookie;
	size_t done = 0;

	while (done < size) {
		const char *tag = memchr(bytes + done, '<', size - done);
		size_t plain = tag ? (size_t)(tag - bytes) - done : size - done;

		if (put(out, bytes + done, plain) || (tag && put(out, "\\u003c", 6)))
			return 0;
		done += plain + (tag ? 1 : 0);
	}
	return (ssize_t)size;
}

static int write_json(FILE *out, int (*write_data)(FILE *data, void *arg), void *arg)
{
	const cookie_io_functions_t functions = {.write = write_without_tags};
	OWNED_FILE FILE *data = fopencookie(out, "w", functions);
	int err;

	if (!data)
		return -ENOMEM;
	setvbuf(data, NULL, _IOFBF, DATA_BUFFER_BYTES);
	errno = 0;
	err = write_data(data, arg);
	if (err)
		return err;
	if (fflush(data) || ferror(data) || ferror(out))
		return errno ? -errno : -EIO;
	return 0;
}

int flame_html_write(FILE *out, const char *title, int (*write_data)(FILE *data, void *arg),
		     void *arg)
{
	int err;

	errno = 0;
	err = put(out, flame_page[0], strlen(flame_page[0]));
	if (!err)
		err = markup_write(out, title, strlen(title));
	if (!err)
		err = put(out, flame_page[1], strlen(flame_page[1]));
	if (!err)
		err = write_json(out, write_data, arg);
	return err ? err : put(out, flame_page[2], strlen(flame_page[2]));
}

/* ---- its data ---- */

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
	json_put_open(json, "sampleTypes", '[');
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
	json_put_open(json, "frames", '[');
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
	json_put_open(json, "shortFiles", '[');
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

	json_put_open(json, "groups", '[');
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

	json_put_open(json, name, '[');
	for (uint32_t i = 0; i < count; i++)
		json_int(json, cell(tree, column, i));
	json_close(json, ']');
	json_newline(json);
}

static void put_stacks(struct json_writer *json, const struct flame_tree *tree)
{
	json_put_open(json, "stacks", '{');
	put_column(json, tree, "frame", NODE_FRAME);
	json_put_int(json, "count", tree->node_count);
	put_column(json, tree, "parent", NODE_PARENT);
	json_put_int(json, "root", 0);
	json_close(json, '}');
	json_newline(json);
	json_put_open(json, "samples", '{');
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
	json_put_open(json, name, '{');
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
	json_put_open(json, "functions", '[');
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
	json_put_open(json, "strings", '[');
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
