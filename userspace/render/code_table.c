/* SPDX-License-Identifier: BSD-2-Clause */
#include "render/code_table.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/array.h"

/* ---- texts of frames ---- */

const char *path_base(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash && slash[1] ? slash + 1 : path;
}

const char *frame_name(const struct profile *profile, const struct frame *frame)
{
	const char *name = intern_get(profile->strings, frame->name, NULL);

	return name[0] ? name : "[unknown]";
}

const char *frame_file(const struct profile *profile, const struct frame *frame)
{
	return intern_get(profile->strings, frame->file, NULL);
}

const char *frame_module_path(const struct profile *profile, const struct frame *frame)
{
	const struct module *module = profile_frame_module(profile, frame);

	return module ? intern_get(profile->strings, module->path, NULL) : "";
}

enum frame_class frame_class(const struct profile *profile, const struct frame *frame)
{
	const char *module;

	switch (frame->kind) {
	case FRAME_PYTHON:
		return FRAME_CLASS_PYTHON;
	case FRAME_KERNEL:
		return FRAME_CLASS_KERNEL;
	case FRAME_MARKER:
		return FRAME_CLASS_OTHER;
	default:
		module = frame_module_path(profile, frame);
		return !strncmp(module, "[gpu", 4) || !strncmp(module, "[cuda", 5)
			       ? FRAME_CLASS_GPU
			       : FRAME_CLASS_NATIVE;
	}
}

const char *frame_class_name(enum frame_class class)
{
	static const char *const name[] = {"python", "native", "kernel", "gpu", "other"};

	return name[class];
}

void code_table_init(struct code_table *table, const struct profile *profile, enum code_by by)
{
	*table = (struct code_table){.profile = profile, .by = by};
}

void code_table_release(struct code_table *table)
{
	free(table->code);
	id_map_release(&table->of_location);
	index_table_release(&table->index);
	*table = (struct code_table){0};
}

static bool code_equal(const void *context, uint32_t index, const void *key)
{
	const struct code_table *table = context;

	return !memcmp(&table->code[index], key, sizeof(table->code[0]));
}

int code_table_add(struct code_table *table, const struct code *code, uint32_t *ret_code)
{
	uint32_t hash = (uint32_t)XXH3_64bits(code, sizeof(*code));
	int err;

	if (index_table_find(&table->index, hash, code_equal, table, code, ret_code))
		return 0;
	err = ARRAY_RESERVE(table->code, table->count, table->capacity);
	if (!err)
		err = index_table_add(&table->index, hash, table->count);
	if (err)
		return err;
	table->code[table->count] = *code;
	*ret_code = table->count++;
	return 0;
}

static uint32_t module_path(const struct profile *profile, const struct frame *frame)
{
	const struct module *module = profile_frame_module(profile, frame);

	return module ? module->path : 0;
}

static struct code code_of_frame(const struct code_table *table, const struct frame *frame)
{
	struct code code = {.class = frame_class(table->profile, frame)};

	switch (table->by) {
	case CODE_BY_LINE:
		code.line = frame->line;
		__attribute__((fallthrough));
	case CODE_BY_FUNCTION:
		code.name = frame->name;
		code.file = frame->file;
		code.start_line = frame->start_line;
		code.module = module_path(table->profile, frame);
		break;
	case CODE_BY_SOURCE_LINE:
		code.line = frame->line;
		__attribute__((fallthrough));
	case CODE_BY_FILE:
		code.file = frame->file;
		if (!code.file)
			code.module = module_path(table->profile, frame);
		break;
	case CODE_BY_MODULE:
		code.module = module_path(table->profile, frame);
		break;
	}
	return code;
}

int code_table_of_location(struct code_table *table, uint32_t location, uint32_t *ret_code)
{
	struct code code;
	int err;

	if (id_map_find(&table->of_location, location, ret_code))
		return 0;
	err = id_map_reserve(&table->of_location, table->profile->stacks.location_capacity);
	if (err)
		return err;
	code = code_of_frame(table, &table->profile->stacks.location[location]);
	err = code_table_add(table, &code, ret_code);
	if (!err)
		id_map_set(&table->of_location, location, *ret_code);
	return err;
}

const char *code_text(const struct code_table *table, uint32_t string)
{
	return intern_get(table->profile->strings, string, NULL);
}

const char *code_name(const struct code_table *table, const struct code *code)
{
	return code->name ? code_text(table, code->name) : "[unknown]";
}

const char *code_place(const struct code_table *table, const struct code *code)
{
	return code_text(table, code->file ? code->file : code->module);
}

const char *code_shown_place(const struct code_table *table, const struct code *code)
{
	const char *place = code_place(table, code);

	return code->file ? short_paths_get(table->short_paths, code->file, place)
			  : path_base(place);
}

uint32_t code_line(const struct code *code)
{
	return code->line ? code->line : code->start_line;
}
