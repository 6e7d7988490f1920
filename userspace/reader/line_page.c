/* SPDX-License-Identifier: BSD-2-Clause */
/* Selects the lines of a source file that are shown. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/clock.h"
#include "reader/line_views.h"

#define CONTEXT_LINES 2U

void lines_page_release(struct lines_page *page)
{
	source_release(&page->source);
	free(page->span);
	*page = (struct lines_page){0};
}

/* Adds a span; spans come in ascending order of their first lines, and those that touch become
 * one. */
static int add_span(struct lines_page *page, uint32_t first, uint32_t last)
{
	struct lines_span *before = page->count ? &page->span[page->count - 1] : NULL;
	int err;

	if (!first)
		first = 1;
	if (page->source.count && last > page->source.count)
		last = last > page->source.count + CONTEXT_LINES ? last : page->source.count;
	if (before && first <= before->last + 1) {
		if (last > before->last)
			before->last = last;
		return 0;
	}
	err = ARRAY_RESERVE(page->span, page->count, page->capacity);
	if (!err)
		page->span[page->count++] = (struct lines_span){first, last};
	return err;
}

static bool function_matches(const char *name, const char *wanted)
{
	size_t name_size = strlen(name), size = strlen(wanted);

	if (name_size < size || strcmp(name + name_size - size, wanted))
		return false;
	return name_size == size || name[name_size - size - 1] == '.';
}

/* Adds the functions of a name.  Returns 0; -ENOENT: there is none; -ENOMEM. */
static int add_named(const char *wanted, bool (*matches)(const char *, const char *),
		     const struct line_file *file, struct lines_page *page)
{
	bool found = false;
	int err = 0;

	for (uint32_t i = 0; !err && i < file->function_count; i++) {
		const struct line_function *function = &file->function[i];
		uint32_t last = function->last_line, end;

		if (!matches(function->name, wanted))
			continue;
		found = true;
		end = source_block_end(&page->source, function->start_line);
		err = add_span(page, function->start_line, end > last ? end : last);
	}
	return err ? err : found ? 0 : -ENOENT;
}

static bool is_equal(const char *name, const char *wanted)
{
	return !strcmp(name, wanted);
}

/* Before 3.11 CPython does not tell a method's class: where "Model.step" is not there, "step"
 * is. */
static int add_functions(const struct lines_view *view, const struct line_file *file,
			 struct lines_page *page)
{
	const char *dot = strrchr(view->function, '.');
	int err = add_named(view->function, function_matches, file, page);

	if (err != -ENOENT || !dot)
		return err;
	err = add_named(dot + 1, is_equal, file, page);
	if (!err && !page->note[0])
		snprintf(
			page->note, sizeof(page->note),
			"this CPython does not tell what a function is inside of: every '%.64s' of "
			"the file",
			dot + 1);
	return err;
}

static int add_surroundings(const struct line_file *file, struct lines_page *page)
{
	int err = 0;

	for (uint32_t i = 0; !err && i < file->count; i++) {
		uint32_t line = file->row[i].line;

		if (page->source.line)
			err = add_span(page, line > CONTEXT_LINES ? line - CONTEXT_LINES : 1,
				       line + CONTEXT_LINES);
		else
			err = add_span(page, line, line);
	}
	return err;
}

static void note_source(const struct lines_view *view, const struct line_file *file,
			struct lines_page *page)
{
	const struct source *source = &page->source;
	uint32_t last = file->count ? file->row[file->count - 1].line : 0;

	if (source->error) {
		snprintf(page->note, sizeof(page->note),
			 "the source %s: only line numbers (--source PATH reads another file)",
			 source->error);
		return;
	}
	if (last > source->count) {
		snprintf(page->note, sizeof(page->note),
			 "the source has changed: it has %" PRIu32 " lines, line %" PRIu32 " ran",
			 source->count, last);
		return;
	}
	for (uint32_t i = 0; view->is_python && i < file->function_count; i++) {
		const struct line_function *function = &file->function[i];

		if (!function->start_line ||
		    source_defines(source, function->start_line, function->name))
			continue;
		snprintf(page->note, sizeof(page->note),
			 "the source has changed: '%s' does not begin at line %" PRIu32 " any more",
			 function->name, function->start_line);
		return;
	}
	if (view->end_wall_ns && (uint64_t)source->modified_s > view->end_wall_ns / NS_PER_SEC)
		snprintf(page->note, sizeof(page->note),
			 "the source was written after the profile: lines may have moved");
}

int lines_page_make(const struct lines_view *view, const struct line_file *file,
		    struct lines_page *ret_page)
{
	CLEANUP(lines_page_release) struct lines_page page = {0};
	int err = view->source_path
			  ? source_read(view->source_path, SOURCE_NAMED_BY_USER, &page.source)
			  : source_read(file->path, SOURCE_NAMED_BY_PROFILE, &page.source);

	if (err)
		return err;
	note_source(view, file, &page);
	if (view->function)
		err = add_functions(view, file, &page);
	else if (view->all && page.source.count)
		err = add_span(&page, 1, page.source.count);
	else
		err = add_surroundings(file, &page);
	if (err)
		return err;
	*ret_page = page;
	page = (struct lines_page){0};
	return 0;
}
