/* SPDX-License-Identifier: BSD-2-Clause */
#include "render/short_paths.h"

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"

/* The most programs of one machine; files of further ones are named from their top directory. */
#define MAX_ROOTS 256U
/* Files that are still equal after that keep their whole paths: this bounds the work, not the
 * result. */
#define MAX_COMPONENTS_ADDED 32U
/* "/srv/shop/": directories that differ within these components belong to different programs. */
#define TOP_COMPONENTS 2U
#define LEAST_COMPONENTS 2U

void short_paths_release(struct short_paths *paths)
{
	free(paths->path);
	free(paths->root);
	*paths = (struct short_paths){0};
}

/* ---- components ---- */

static bool is_windows(const char *text)
{
	return (isalpha((unsigned char)text[0]) && text[1] == ':' &&
		(text[2] == '\\' || text[2] == '/')) ||
	       !strncmp(text, "\\\\", 2);
}

static bool is_absolute(const char *text)
{
	return text[0] == '/' || is_windows(text);
}

static bool is_separator(char letter, bool windows)
{
	return letter == '/' || (windows && letter == '\\');
}

/* Bytes [begin, end) of a path; the next one begins at `next`. */
struct part {
	size_t begin, end, next;
};

/* Returns false after the last component. */
static bool next_part(const char *text, bool windows, struct part *part)
{
	size_t at = part->next;

	while (is_separator(text[at], windows))
		at++;
	if (!text[at])
		return false;
	part->begin = at;
	while (text[at] && !is_separator(text[at], windows))
		at++;
	part->end = at;
	while (is_separator(text[at], windows))
		at++;
	part->next = at;
	return true;
}

static bool part_is(const char *text, const struct part *part, const char *name)
{
	return strlen(name) == part->end - part->begin &&
	       !strncmp(text + part->begin, name, part->end - part->begin);
}

/* Returns where the component before `offset` begins; 0: the path is whole. */
static uint32_t component_before(const char *text, uint32_t offset)
{
	bool windows = is_windows(text);
	uint32_t at = offset;

	while (at && is_separator(text[at - 1], windows))
		at--;
	while (at && !is_separator(text[at - 1], windows))
		at--;
	/* When only the root would be left out, the path stays whole. */
	return at == strspn(text, "/") ? 0 : at;
}

/* ---- what a path is relative to ---- */

/* "python3.12", "python3", "python3.13t", "python312.zip". */
static bool is_python_directory(const char *text, const struct part *part)
{
	const char *at = text + part->begin, *end = text + part->end;

	if (end - at < 7 || strncmp(at, "python", 6) || !isdigit((unsigned char)at[6]))
		return false;
	for (at += 6; at < end && (isdigit((unsigned char)*at) || *at == '.'); at++)
		;
	if (at < end && *at == 't')
		at++;
	return at == end || (end - at == 3 && !strncmp(at, "zip", 3));
}

static bool is_lib(const char *text, const struct part *part)
{
	return part_is(text, part, "lib") || part_is(text, part, "lib64") ||
	       part_is(text, part, "Lib");
}

/* C:\Python312\Lib\json\decoder.py */
static bool is_windows_library(const char *text, const struct part *before, const struct part *part)
{
	return part_is(text, part, "Lib") && before->end - before->begin >= 6 &&
	       !strncasecmp(text + before->begin, "python", 6);
}

/* Returns where the path inside installed packages, or the standard library, begins; 0: it is in
 * neither. */
static uint32_t library_offset(const char *text)
{
	bool windows = is_windows(text);
	struct part part = {0}, before = {0};
	size_t packages = 0, standard = 0;

	while (next_part(text, windows, &part) && text[part.next]) {
		if (part_is(text, &part, "site-packages") || part_is(text, &part, "dist-packages"))
			packages = part.next;
		else if ((is_python_directory(text, &part) && is_lib(text, &before)) ||
			 (windows && is_windows_library(text, &before, &part)))
			standard = part.next;
		before = part;
	}
	return (uint32_t)(packages ? packages : standard);
}

/* Returns the path's start relative to the innermost script directory that contains it; 0: none. */
static uint32_t root_offset(const struct short_paths *paths, const char *text)
{
	bool windows = is_windows(text);
	size_t longest = 0;

	for (uint32_t i = 0; i < paths->root_count; i++) {
		const struct short_paths_root *root = &paths->root[i];
		size_t at = root->size;

		if (at < longest || strncmp(text, root->text, at))
			continue;
		while (is_separator(text[at], windows))
			at++;
		if (at > root->size && text[at])
			longest = at;
	}
	return (uint32_t)longest;
}

/* ---- files elsewhere ---- */

/* Returns the end of the first components; 0: the path has fewer. */
static size_t top_size(const char *text)
{
	bool windows = is_windows(text);
	struct part part = {0};

	for (unsigned int i = 0; i < TOP_COMPONENTS; i++)
		if (!next_part(text, windows, &part))
			return 0;
	return text[part.next] ? part.next : 0;
}

/* Returns the size of the innermost directory that contains both, with the separator at its end. */
static size_t common_directory(const char *first, const char *last)
{
	bool windows = is_windows(first);
	size_t common = 0;

	for (size_t i = 0; first[i] && first[i] == last[i]; i++)
		if (is_separator(first[i], windows))
			common = i + 1;
	return common;
}

static uint32_t keep_at_least(const char *text, size_t offset)
{
	uint32_t least = (uint32_t)strlen(text);

	for (unsigned int i = 0; least && i < LEAST_COMPONENTS; i++)
		least = component_before(text, least);
	return offset < least ? (uint32_t)offset : least;
}

static int compare_texts(const void *a, const void *b)
{
	return strcmp(((const struct short_path *)a)->text, ((const struct short_path *)b)->text);
}

static bool is_unplaced(const struct short_path *path)
{
	return !path->offset && is_absolute(path->text);
}

/* Sorts the paths: neighbours have the longest common directories, and the first and the last of a
 * group share what all of it shares. */
static void place_by_top(struct short_paths *paths)
{
	qsort(paths->path, paths->count, sizeof(paths->path[0]), compare_texts);
	for (uint32_t i = 0, next; i < paths->count; i = next) {
		const char *first = paths->path[i].text;
		size_t top = top_size(first), common;
		uint32_t last = i;

		next = i + 1;
		if (!is_unplaced(&paths->path[i]))
			continue;
		for (; top && next < paths->count && !strncmp(paths->path[next].text, first, top);
		     next++)
			if (is_unplaced(&paths->path[next]))
				last = next;
		common = common_directory(first, paths->path[last].text);
		for (uint32_t j = i; j < next; j++)
			if (is_unplaced(&paths->path[j]))
				paths->path[j].offset = keep_at_least(paths->path[j].text, common);
	}
}

/* ---- files with equal short paths ---- */

static int compare_short(const void *a, const void *b)
{
	const struct short_path *path_a = a, *path_b = b;

	return strcmp(path_a->text + path_a->offset, path_b->text + path_b->offset);
}

/* Adds one component to each short path that equals another. */
static bool extend_alike(struct short_paths *paths, bool whole)
{
	bool changed = false;

	qsort(paths->path, paths->count, sizeof(paths->path[0]), compare_short);
	for (uint32_t i = 0, next; i < paths->count; i = next) {
		for (next = i + 1; next < paths->count; next++)
			if (compare_short(&paths->path[i], &paths->path[next]))
				break;
		for (uint32_t j = i; next - i > 1 && j < next; j++) {
			struct short_path *path = &paths->path[j];

			changed |= path->offset > 0;
			path->offset = whole ? 0 : component_before(path->text, path->offset);
		}
	}
	return changed;
}

static int compare_strings(const void *a, const void *b)
{
	uint32_t string_a = ((const struct short_path *)a)->string;
	uint32_t string_b = ((const struct short_path *)b)->string;

	return (string_a > string_b) - (string_a < string_b);
}

int short_paths_resolve(struct short_paths *paths)
{
	unsigned int round = 0;

	for (uint32_t i = 0; i < paths->count; i++) {
		struct short_path *path = &paths->path[i];

		if (!is_absolute(path->text))
			continue;
		path->offset = library_offset(path->text);
		if (!path->offset)
			path->offset = root_offset(paths, path->text);
	}
	if (paths->count) {
		place_by_top(paths);
		while (extend_alike(paths, round >= MAX_COMPONENTS_ADDED) &&
		       round <= MAX_COMPONENTS_ADDED)
			round++;
		qsort(paths->path, paths->count, sizeof(paths->path[0]), compare_strings);
	}
	return 0;
}

/* ---- the table ---- */

int short_paths_add(struct short_paths *paths, uint32_t string, const char *text)
{
	int err = ARRAY_RESERVE(paths->path, paths->count, paths->capacity);

	if (!err)
		paths->path[paths->count++] = (struct short_path){.text = text, .string = string};
	return err;
}

int short_paths_add_script(struct short_paths *paths, const char *script)
{
	uint32_t size = (uint32_t)strlen(script);
	int err;

	if (!is_absolute(script) || paths->root_count == MAX_ROOTS)
		return 0;
	/* "python -m package" runs package/__main__.py. */
	if (size > 12 && !strcmp(script + size - 12, "/__main__.py"))
		size -= 12;
	size = component_before(script, size);
	while (size && is_separator(script[size - 1], is_windows(script)))
		size--;
	/* Everything is below /, so it is no program's directory. */
	if (!size)
		return 0;
	for (uint32_t i = 0; i < paths->root_count; i++)
		if (paths->root[i].size == size && !strncmp(paths->root[i].text, script, size))
			return 0;
	err = ARRAY_RESERVE(paths->root, paths->root_count, paths->root_capacity);
	if (!err)
		paths->root[paths->root_count++] = (struct short_paths_root){script, size};
	return err;
}

const char *short_paths_get(const struct short_paths *paths, uint32_t string, const char *text)
{
	const struct short_path key = {.string = string}, *found;

	if (!paths || !paths->count)
		return text;
	found = bsearch(&key, paths->path, paths->count, sizeof(key), compare_strings);
	return found ? text + found->offset : text;
}

/* ---- of a profile ---- */

/* Returns the frame of the script: the stack's outermost Python code, if that is a module's.  NULL:
 * none. */
static const struct frame *script_of(const struct profile *profile, const struct stack *stack)
{
	for (uint32_t i = stack->count; i-- > 0;) {
		const struct frame *frame = &profile->stacks.location[stack->location[i]];
		const char *file = intern_get(profile->strings, frame->file, NULL);

		/* `python -m` begins in runpy. */
		if (frame->kind != FRAME_PYTHON || strstr(file, "runpy"))
			continue;
		return strcmp(intern_get(profile->strings, frame->name, NULL), "<module>") ? NULL
											   : frame;
	}
	return NULL;
}

int short_paths_of_profile(const struct profile *profile, struct short_paths *ret_paths)
{
	OWNED_MEM uint8_t *seen = calloc((size_t)intern_count(profile->strings) * 2 + 1, 1);
	CLEANUP(short_paths_release) struct short_paths paths = {0};
	uint8_t *seen_script = seen ? seen + intern_count(profile->strings) : NULL;
	int err = seen ? 0 : -ENOMEM;

	for (uint32_t i = 0; !err && i < profile->stacks.location_count; i++) {
		uint32_t file = profile->stacks.location[i].file;

		if (!file || seen[file]++)
			continue;
		err = short_paths_add(&paths, file, intern_get(profile->strings, file, NULL));
		seen[file] = 1;
	}
	for (uint32_t i = 0; !err && i < profile->stacks.stack_count; i++) {
		const struct frame *script = script_of(profile, &profile->stacks.stack[i]);

		if (!script || seen_script[script->file])
			continue;
		seen_script[script->file] = 1;
		err = short_paths_add_script(&paths,
					     intern_get(profile->strings, script->file, NULL));
	}
	if (!err)
		err = short_paths_resolve(&paths);
	if (err)
		return err;
	*ret_paths = paths;
	paths = (struct short_paths){0};
	return 0;
}

/* ---- room ---- */

static bool continues(char letter)
{
	return ((unsigned char)letter & 0xc0) == 0x80;
}

size_t text_columns_of(const char *text)
{
	size_t columns = 0;

	for (; *text; text++)
		columns += !continues(*text);
	return columns;
}

const char *text_skip_columns(const char *text, size_t columns)
{
	while (*text && columns--)
		for (text++; continues(*text);)
			text++;
	return text;
}

/* Returns the last `columns` code points. */
static const char *last_columns(const char *text, size_t columns)
{
	size_t all = text_columns_of(text);

	return text_skip_columns(text, all > columns ? all - columns : 0);
}

const char *path_fit(const char *text, size_t columns, char *buffer, size_t size)
{
	const char *slash = strchr(text, '/'), *tail;
	size_t head;

	if (text_columns_of(text) <= columns)
		return text;
	/* Keep the package, when it fits together with the file. */
	head = slash && slash > text ? (size_t)(slash + 1 - text) : 0;
	if (head && text_columns_of(text) - text_columns_of(slash + 1) + 1 < columns) {
		size_t taken = text_columns_of(text) - text_columns_of(slash + 1);

		tail = strchr(last_columns(slash + 1, columns - taken - 1), '/');
		if (tail) {
			snprintf(buffer, size, "%.*s…%s", (int)head, text, tail);
			return buffer;
		}
	}
	tail = last_columns(text, columns ? columns - 1 : 0);
	slash = strchr(tail, '/');
	snprintf(buffer, size, "…%s", slash && slash[1] ? slash : tail);
	return buffer;
}

const char *name_fit(const char *text, size_t columns, char *buffer, size_t size)
{
	size_t all = text_columns_of(text), before;

	if (all <= columns)
		return text;
	before = columns / 2;
	snprintf(buffer, size, "%.*s…%s", (int)(text_skip_columns(text, before) - text), text,
		 columns > before ? last_columns(text, columns - before - 1) : "");
	return buffer;
}
