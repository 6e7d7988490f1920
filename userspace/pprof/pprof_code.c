/* SPDX-License-Identifier: BSD-2-Clause */
#include "pprof/pprof_code.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/array.h"
#include "pprof/pprof_fields.h"
#include "profile.pb-c.h"

void pprof_code_release(struct pprof_code *code)
{
	pprof_mappings_release(&code->mappings);
	free(code->function);
	index_table_release(&code->function_index);
	*code = (struct pprof_code){0};
}

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

int pprof_code_init(struct pprof_code *code, const struct profile *profile,
		    struct pprof_strings *strings, struct gzip_sink *sink)
{
	*code = (struct pprof_code){.profile = profile, .strings = strings, .sink = sink};
	return pprof_mappings_init(&code->mappings, profile);
}

static bool function_equal(const void *context, uint32_t index, const void *key)
{
	const struct pprof_code *code = context;

	return !memcmp(&code->function[index], key, sizeof(code->function[0]));
}

static int function_id(struct pprof_code *code, const struct pprof_function *function,
		       uint32_t *ret_id)
{
	uint32_t hash = (uint32_t)XXH3_64bits(function, sizeof(*function));
	uint32_t found;
	int err;

	if (!index_table_find(&code->function_index, hash, function_equal, code, function,
			      &found)) {
		found = code->function_count;
		err = ARRAY_RESERVE(code->function, found, code->function_capacity);
		if (err)
			return err;
		err = index_table_add(&code->function_index, hash, found);
		if (err)
			return err;
		code->function[code->function_count++] = *function;
	}
	*ret_id = found + 1;
	return 0;
}

/* Names a location without a function, which readers would drop, after its file. */
static int unnamed(struct pprof_code *code, const struct module *module, uint32_t *ret_name)
{
	const char *path = module ? intern_get(code->profile->strings, module->path, NULL) : "";
	OWNED_MEM char *name = NULL;

	if (!path[0])
		return pprof_strings_add_text(code->strings, "[unknown]", ret_name);
	if (path[0] == '[')
		return pprof_strings_add(code->strings, module->path, ret_name);
	if (asprintf(&name, "[%s]", base_name(path)) < 0) {
		name = NULL;
		return -ENOMEM;
	}
	return pprof_strings_add_text(code->strings, name, ret_name);
}

static int describe_function(struct pprof_code *code, const struct frame *frame,
			     const struct module *module, struct pprof_function *ret_function)
{
	struct pprof_function function = {.start_line = frame->start_line};
	uint32_t file = frame->file;
	int err;

	if (!file && module && frame->kind != FRAME_PYTHON)
		file = module->path;
	err = frame->name ? pprof_strings_add(code->strings, frame->name, &function.name)
			  : unnamed(code, module, &function.name);
	if (!err)
		err = pprof_strings_add(code->strings, file, &function.file);
	/* pprof demangles a system name that equals the name, and would take <module> for a
	 * template. */
	if (!err && frame->kind != FRAME_PYTHON && frame->system_name != frame->name)
		err = pprof_strings_add(code->strings, frame->system_name, &function.system_name);
	if (!err)
		*ret_function = function;
	return err;
}

static int put_location(struct pprof_code *code, uint32_t index)
{
	const struct frame *frame = &code->profile->stacks.location[index];
	const struct module *module = profile_frame_module(code->profile, frame);
	Perftools__Profiles__Location message = PERFTOOLS__PROFILES__LOCATION__INIT;
	Perftools__Profiles__Line line = PERFTOOLS__PROFILES__LINE__INIT;
	Perftools__Profiles__Line *lines[] = {&line};
	struct pprof_function function;
	uint32_t id;
	int err = describe_function(code, frame, module, &function);

	if (!err)
		err = function_id(code, &function, &id);
	if (err)
		return err;
	line.function_id = id;
	line.line = frame->line;
	message.id = (uint64_t)index + 1;
	message.mapping_id = pprof_mappings_id(&code->mappings, frame);
	message.address = frame->address;
	message.n_line = 1;
	message.line = lines;
	return gzip_sink_put_message(code->sink, PPROF_PROFILE_LOCATION, &message.base);
}

static int put_function(struct pprof_code *code, uint32_t index)
{
	const struct pprof_function *function = &code->function[index];
	Perftools__Profiles__Function message = PERFTOOLS__PROFILES__FUNCTION__INIT;

	message.id = (uint64_t)index + 1;
	message.name = function->name;
	message.system_name = function->system_name;
	message.filename = function->file;
	message.start_line = function->start_line;
	return gzip_sink_put_message(code->sink, PPROF_PROFILE_FUNCTION, &message.base);
}

int pprof_code_write(struct pprof_code *code)
{
	int err = pprof_mappings_write(&code->mappings, code->strings, code->sink);

	for (uint32_t i = 0; !err && i < code->profile->stacks.location_count; i++)
		err = put_location(code, i);
	for (uint32_t i = 0; !err && i < code->function_count; i++)
		err = put_function(code, i);
	return err;
}
