/* SPDX-License-Identifier: BSD-2-Clause */
#include "render/code_table.h"

#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/cleanup.h"
#include "base/io.h"

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
	err = INDEX_RESERVE(&table->index, hash, table->code, table->count, table->capacity);
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

/* ---- groups of samples ---- */

void groups_init(struct groups *groups, struct profile *profile, const struct grouping *by)
{
	*groups = (struct groups){.profile = profile, .by = *by};
}

void groups_release(struct groups *groups)
{
	free(groups->group);
	id_map_release(&groups->of_set);
	index_table_release(&groups->index);
	*groups = (struct groups){0};
}

void groups_label_keys(const struct grouping *by, const char *key[GROUPS_MAX_KEYS])
{
	static const struct {
		uint32_t by;
		const char *key;
	} needed[] = {
		{GROUP_BY_PROCESS | GROUP_BY_THREAD, "pid"},
		{GROUP_BY_THREAD, "tid"},
		{GROUP_BY_PROCESS | GROUP_BY_COMM | GROUP_BY_THREAD, "comm"},
		{GROUP_BY_THREAD | GROUP_BY_THREAD_NAME, "thread_name"},
		{GROUP_BY_THREAD | GROUP_BY_THREAD_NAME, "thread"},
		{GROUP_BY_CONTAINER, "container_id"},
		{GROUP_BY_CONTAINER, "container"},
		{GROUP_BY_WAIT, "wait"},
	};
	size_t count = 0;

	for (size_t i = 0; i < ARRAY_SIZE(needed); i++)
		if (needed[i].by & by->keys)
			key[count++] = needed[i].key;
	for (size_t i = 0; i < by->label_count; i++)
		key[count++] = by->label[i];
	key[count] = NULL;
}

static int read_labels(struct groups *groups, uint32_t set, struct group *group)
{
	const uint32_t by = groups->by.keys;
	int err = 0;

	if (by & (GROUP_BY_PROCESS | GROUP_BY_THREAD))
		group->pid = profile_label_number(groups->profile, set, "pid");
	if (by & GROUP_BY_THREAD)
		group->tid = profile_label_number(groups->profile, set, "tid");
	if (by & (GROUP_BY_PROCESS | GROUP_BY_THREAD | GROUP_BY_COMM))
		group->comm = profile_label_text(groups->profile, set, "comm");
	if (by & (GROUP_BY_THREAD | GROUP_BY_THREAD_NAME))
		group->thread = profile_label_text(groups->profile, set, "thread_name")
					?: profile_label_text(groups->profile, set, "thread");
	if (by & GROUP_BY_CONTAINER)
		group->container =
			profile_label_text(groups->profile, set, "container")
				?: profile_label_text(groups->profile, set, "container_id");
	if (by & GROUP_BY_WAIT)
		group->wait = profile_label_text(groups->profile, set, "wait");
	for (uint32_t i = 0; i < groups->by.label_count && !err; i++)
		err = profile_label_as_text(groups->profile, set, groups->by.label[i],
					    &group->other[i]);
	return err;
}

static const char *text_of(const struct groups *groups, uint32_t string)
{
	return intern_get(groups->profile->strings, string, NULL);
}

static void put_part(FILE *out, const char *what, int64_t number, const char *name)
{
	fprintf(out, "%s%s", ftell(out) ? " / " : "", what);
	if (number)
		fprintf(out, "%s%" PRId64, what[0] ? " " : "", number);
	if (name[0])
		fprintf(out, "%s%s", what[0] || number ? " " : "", name);
	else if (!number)
		fprintf(out, " [unknown]");
}

static void put_label(const struct groups *groups, const struct group *group, FILE *out)
{
	const uint32_t by = groups->by.keys;

	for (uint32_t i = 0; i < groups->by.label_count; i++)
		put_part(out, groups->by.label[i], 0,
			 group->other[i] ? text_of(groups, group->other[i]) : "none");
	if (by & GROUP_BY_CONTAINER)
		put_part(out, "container", 0,
			 group->container ? text_of(groups, group->container) : "none");
	if (by & (GROUP_BY_PROCESS | GROUP_BY_THREAD))
		put_part(out, "pid", group->pid, text_of(groups, group->comm));
	else if (by & GROUP_BY_COMM)
		put_part(out, "", 0, group->comm ? text_of(groups, group->comm) : "[no name]");
	if (by & GROUP_BY_THREAD)
		put_part(out, "thread", group->tid, text_of(groups, group->thread));
	else if (by & GROUP_BY_THREAD_NAME)
		put_part(out, "thread", 0,
			 group->thread ? text_of(groups, group->thread) : "[no name]");
	if (by & GROUP_BY_WAIT)
		put_part(out, "", 0, group->wait ? text_of(groups, group->wait) : "on the CPU");
	if (!by)
		fputs("all", out);
}

static int make_label(struct groups *groups, struct group *group)
{
	OWNED_MEM char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);

	if (!out)
		return -ENOMEM;
	put_label(groups, group, out);
	if (close_memory_file(out, &text))
		return -ENOMEM;
	return intern_bytes(groups->profile->strings, text, size, &group->label);
}

static bool group_equal(const void *context, uint32_t index, const void *key)
{
	const struct groups *groups = context;

	return !memcmp(&groups->group[index], key, offsetof(struct group, label));
}

static int find_group(struct groups *groups, struct group *group, uint32_t *ret_group)
{
	uint32_t hash = (uint32_t)XXH3_64bits(group, offsetof(struct group, label));
	int err;

	if (index_table_find(&groups->index, hash, group_equal, groups, group, ret_group))
		return 0;
	err = make_label(groups, group);
	if (!err)
		err = INDEX_RESERVE(&groups->index, hash, groups->group, groups->count,
				    groups->capacity);
	if (err)
		return err;
	groups->group[groups->count] = *group;
	*ret_group = groups->count++;
	return 0;
}

int groups_of_set(struct groups *groups, uint32_t label_set, uint32_t *ret_group)
{
	struct group group;
	int err;

	if (id_map_find(&groups->of_set, label_set, ret_group))
		return 0;
	err = id_map_reserve(&groups->of_set, groups->profile->label_set_capacity);
	if (err)
		return err;
	/* The padding is hashed too. */
	memset(&group, 0, sizeof(group));
	err = read_labels(groups, label_set, &group);
	if (!err)
		err = find_group(groups, &group, ret_group);
	if (!err)
		id_map_set(&groups->of_set, label_set, *ret_group);
	return err;
}
