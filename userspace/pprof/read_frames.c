/* SPDX-License-Identifier: BSD-2-Clause */
/* Converts a pprof file's locations to frames of the profile.  Each location is read once per
 * file. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/utf8.h"
#include "pprof/profile_reader.h"

#define NO_MODULE 0U

/* ---- strings ---- */

int reader_passing_text(struct profile_reader *reader, uint64_t text, const char **ret_text)
{
	const struct pprof_text *at;
	const char *bytes;
	size_t growth;

	if (text >= reader->tables.text_count)
		return reader_fail(reader, -EBADMSG, "cut off or broken: strings are missing");
	at = &reader->tables.text[text];
	bytes = (const char *)reader->tables.bytes + at->offset;
	growth = utf8_is_clean(bytes, at->size) ? 1 : UTF8_CLEAN_MAX_GROWTH;
	if (ARRAY_EXTEND(reader->clean, at->size * growth + 1, reader->clean_capacity))
		return reader_fail(reader, -ENOMEM, "not enough memory");
	reader->clean[utf8_clean(bytes, at->size, reader->clean)] = '\0';
	*ret_text = reader->clean;
	return 0;
}

int reader_text(struct profile_reader *reader, uint64_t text, uint32_t *ret_string)
{
	struct pprof_text *at;
	uint32_t string;
	int err;

	if (text >= reader->tables.text_count)
		return reader_fail(reader, -EBADMSG, "cut off or broken: strings are missing");
	at = &reader->tables.text[text];
	if (!at->interned) {
		err = intern_clean(reader->strings, (const char *)reader->tables.bytes + at->offset,
				   at->size, &string);
		if (err)
			return err;
		at->interned = string + 1;
	}
	*ret_string = at->interned - 1;
	return 0;
}

static const char *string_of(const struct profile_reader *reader, uint32_t string)
{
	return intern_get(reader->strings, string, NULL);
}

/* ---- mappings ---- */

static bool ends_with(const char *text, const char *end)
{
	size_t text_size = strlen(text), end_size = strlen(end);

	return text_size >= end_size && !strcmp(text + text_size - end_size, end);
}

/* Finds the kind of frames by their mapping's name.  Returns true when the name is one of ours for
 * "no file". */
static bool kind_of_mapping(const char *path, uint32_t *ret_kind)
{
	static const struct {
		const char *name;
		uint32_t kind;
	} own[] = {
		{"", FRAME_NATIVE},    {"[python]", FRAME_PYTHON},  {"[unknown]", FRAME_NATIVE},
		{"[anon]", FRAME_JIT}, {"[pyprofd]", FRAME_MARKER},
	};

	for (size_t i = 0; i < ARRAY_SIZE(own); i++) {
		if (!strcmp(path, own[i].name)) {
			*ret_kind = own[i].kind;
			return true;
		}
	}
	*ret_kind = !strncmp(path, "[kernel", strlen("[kernel")) ||
				    strstr(path, "kernel.kallsyms]") || ends_with(path, ".ko") ||
				    ends_with(path, ".ko.xz")
			    ? FRAME_KERNEL
			    : FRAME_NATIVE;
	return false;
}

/* Sets the item's cache: the module, and its frames' kind in cached_count. */
static int resolve_mapping(struct profile_reader *reader, struct pprof_item *item)
{
	struct module module = {0};
	uint64_t start = 0, limit = 0, offset = 0, file = 0, build_id = 0;
	uint64_t *const place[] = {NULL, NULL, &start, &limit, &offset, &file, &build_id};
	uint32_t kind;
	int err;

	if (wire_numbers(item->message, place, ARRAY_SIZE(place)))
		return reader_fail(reader, -EBADMSG, "broken: a mapping does not parse");
	err = reader_text(reader, file, &module.path);
	if (!err)
		err = reader_text(reader, build_id, &module.build_id);
	if (err)
		return err;
	if (kind_of_mapping(string_of(reader, module.path), &kind)) {
		item->cached = NO_MODULE;
	} else {
		/* The same file has other addresses in each process. */
		if (!reader->options.drop_addresses) {
			module.start = start;
			module.limit = limit;
			module.offset = offset;
		}
		err = profile_add_module(reader->profile, &module, &item->cached);
		if (err)
			return err;
	}
	item->cached_count = kind;
	item->is_cached = true;
	return 0;
}

/* ---- functions ---- */

static int parse_function(struct profile_reader *reader, struct wire message,
			  struct read_function *ret_function)
{
	uint64_t name = 0, system_name = 0, file = 0, start_line = 0;
	uint64_t *const place[] = {NULL, NULL, &name, &system_name, &file, &start_line};
	int err = wire_numbers(message, place, ARRAY_SIZE(place));

	if (err)
		return reader_fail(reader, -EBADMSG, "broken: a function does not parse");
	err = reader_text(reader, name ? name : system_name, &ret_function->name);
	if (!err)
		err = reader_text(reader, system_name, &ret_function->system_name);
	if (!err)
		err = reader_text(reader, file, &ret_function->file);
	ret_function->start_line = start_line > INT32_MAX ? 0 : (uint32_t)start_line;
	return err;
}

static int find_function(struct profile_reader *reader, uint64_t id,
			 const struct read_function **ret_function)
{
	struct pprof_item *item = pprof_items_find(&reader->tables.function, id);
	int err;

	if (!item)
		return reader_fail(reader, -EBADMSG, "cut off or broken: a function is missing");
	if (!item->cached) {
		err = ARRAY_RESERVE(reader->function, reader->function_count,
				    reader->function_capacity);
		if (err)
			return reader_fail(reader, err, "not enough memory");
		err = parse_function(reader, item->message,
				     &reader->function[reader->function_count]);
		if (err)
			return err;
		item->cached = ++reader->function_count;
	}
	*ret_function = &reader->function[item->cached - 1];
	return 0;
}

/* ---- locations ---- */

/* Finds Python by the file name: other tools use no mapping for Python, or the interpreter's. */
static bool is_python_file(const char *file)
{
	return ends_with(file, ".py") || ends_with(file, ".pyw") || !strncmp(file, "<frozen ", 8) ||
	       !strncmp(file, "<ipython-", 9);
}

static int append_frame(struct profile_reader *reader, const struct frame *frame)
{
	struct frame kept = *frame;
	uint32_t id;
	int err;

	if (reader->options.python_only && frame->kind != FRAME_PYTHON)
		return 0;
	if (reader->options.drop_addresses)
		kept.address = 0;
	if (reader->options.drop_lines)
		kept.line = 0;
	err = profile_add_location(reader->profile, &kept, &id);
	if (!err)
		err = ARRAY_RESERVE(reader->resolved, reader->resolved_count,
				    reader->resolved_capacity);
	if (err)
		return reader_fail(reader, err, "not enough memory");
	reader->resolved[reader->resolved_count++] = id;
	return 0;
}

/* base: frame with the location's mapping and address. */
static int append_line(struct profile_reader *reader, struct wire message, const struct frame *base,
		       uint32_t mapping_path)
{
	uint64_t function_id = 0, line = 0;
	const struct read_function *function;
	struct frame frame = *base;
	uint64_t *const place[] = {NULL, &function_id, &line};
	int err;

	if (wire_numbers(message, place, ARRAY_SIZE(place)))
		return reader_fail(reader, -EBADMSG, "broken: a line does not parse");
	err = find_function(reader, function_id, &function);
	if (err)
		return err;
	frame.name = function->name;
	frame.file = function->file;
	frame.start_line = function->start_line;
	frame.line = line > INT32_MAX ? 0 : (uint32_t)line;
	if (frame.kind == FRAME_NATIVE && is_python_file(string_of(reader, frame.file)))
		frame.kind = FRAME_PYTHON;
	if (frame.kind == FRAME_PYTHON)
		frame.module = NO_MODULE;
	else if (function->system_name != function->name)
		frame.system_name = function->system_name;
	/* Our own writer puts the module where the source is unknown. */
	if (frame.kind != FRAME_PYTHON && frame.file == mapping_path)
		frame.file = 0;
	return append_frame(reader, &frame);
}

/* Appends a frame that was never symbolized. */
static int append_unnamed(struct profile_reader *reader, const struct frame *base,
			  uint32_t mapping_path)
{
	struct frame frame = *base;
	const char *path = string_of(reader, mapping_path);
	char name[256];
	int err;

	if (path[0] == '[')
		snprintf(name, sizeof(name), "%s", path);
	else if (path[0])
		snprintf(name, sizeof(name), "[%s]", basename(path));
	else
		snprintf(name, sizeof(name), "0x%llx", (unsigned long long)base->address);
	err = intern_string(reader->strings, name, &frame.name);
	return err ? err : append_frame(reader, &frame);
}

struct read_location {
	uint64_t mapping_id, address;
	bool has_lines;
};

static int parse_location(struct wire message, struct read_location *ret_location)
{
	struct wire_field field;
	int more;

	*ret_location = (struct read_location){0};
	while ((more = wire_next(&message, &field)) > 0) {
		if (field.number == 2 && !field.is_bytes)
			ret_location->mapping_id = field.value;
		if (field.number == 3 && !field.is_bytes)
			ret_location->address = field.value;
		if (field.number == 4 && field.is_bytes)
			ret_location->has_lines = true;
	}
	return more;
}

static int find_base(struct profile_reader *reader, const struct read_location *location,
		     struct frame *ret_base, uint32_t *ret_path)
{
	struct pprof_item *mapping;

	*ret_base = (struct frame){.kind = FRAME_NATIVE, .address = location->address};
	*ret_path = 0;
	if (!location->mapping_id)
		return 0;
	mapping = pprof_items_find(&reader->tables.mapping, location->mapping_id);
	if (!mapping)
		return reader_fail(reader, -EBADMSG, "cut off or broken: a mapping is missing");
	if (!mapping->is_cached) {
		int err = resolve_mapping(reader, mapping);

		if (err)
			return err;
	}
	ret_base->kind = mapping->cached_count;
	ret_base->module = mapping->cached;
	if (mapping->cached)
		*ret_path = reader->profile->module[mapping->cached - 1].module.path;
	return 0;
}

static int resolve_location(struct profile_reader *reader, struct pprof_item *item)
{
	struct wire message = item->message;
	uint32_t first = reader->resolved_count, path;
	struct read_location location;
	struct wire_field field;
	struct frame base;
	int err;

	if (parse_location(message, &location))
		return reader_fail(reader, -EBADMSG, "broken: a location does not parse");
	err = find_base(reader, &location, &base, &path);
	while (!err && wire_next(&message, &field) > 0)
		if (field.number == 4 && field.is_bytes)
			err = append_line(reader, field.bytes, &base, path);
	if (!err && !location.has_lines)
		err = append_unnamed(reader, &base, path);
	if (err)
		return err;
	item->cached = first;
	item->cached_count = reader->resolved_count - first;
	item->is_cached = true;
	return 0;
}

int reader_add_location(struct profile_reader *reader, uint64_t location_id)
{
	struct pprof_item *item = pprof_items_find(&reader->tables.location, location_id);
	int err;

	if (!item)
		return reader_fail(reader, -EBADMSG, "cut off or broken: a location is missing");
	if (!item->is_cached) {
		err = resolve_location(reader, item);
		if (err)
			return err;
	}
	if (item->cached_count > READER_MAX_STACK_FRAMES - reader->stack_count ||
	    item->cached_count > reader->frames_left)
		return reader_fail(reader, -EBADMSG, "broken: stacks without end");
	reader->frames_left -= item->cached_count;
	for (uint32_t i = 0; i < item->cached_count; i++) {
		err = ARRAY_RESERVE(reader->stack, reader->stack_count, reader->stack_capacity);
		if (err)
			return reader_fail(reader, err, "not enough memory");
		reader->stack[reader->stack_count++] = reader->resolved[item->cached + i];
	}
	return 0;
}

int reader_add_no_python(struct profile_reader *reader)
{
	struct frame frame = {.kind = FRAME_MARKER};
	uint32_t id;
	int err = intern_string(reader->strings, "[no Python]", &frame.name);

	if (!err)
		err = profile_add_location(reader->profile, &frame, &id);
	if (!err)
		err = ARRAY_RESERVE(reader->stack, reader->stack_count, reader->stack_capacity);
	if (err)
		return reader_fail(reader, err, "not enough memory");
	reader->stack[reader->stack_count++] = id;
	return 0;
}
