/* SPDX-License-Identifier: BSD-2-Clause */
#include "profile/pprof_code.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "profile.pb-c.h"
#include "profile/array.h"
#include "profile/pprof_fields.h"

#define KERNEL_MAPPING "[kernel.kallsyms]"

void pprof_code_release(struct pprof_code *code)
{
	free(code->mapping_id);
	free(code->order);
	free(code->function);
	index_table_release(&code->function_index);
	*code = (struct pprof_code){0};
}

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* How well a module serves as the title of the profile: readers show the first mapping as "File:". */
static int title_rank(const struct profile *profile, const struct profile_module *module)
{
	const char *path = intern_get(profile->strings, module->module.path, NULL);
	const char *base = base_name(path);

	if (!(module->kinds & 1U << FRAME_NATIVE))
		return module->kinds & 1U << FRAME_KERNEL ? 0 : 1;
	if (path[0] == '[')
		return 1;
	if (!strncmp(base, "libpython", strlen("libpython")))
		return 3;
	return strstr(base, ".so") ? 2 : 4;
}

/* The title first, the kernel last, the others in the order in which they came. */
static void order_mappings(struct pprof_code *code)
{
	const struct profile *profile = code->profile;
	uint32_t title = 0, last = 0;
	int best_rank = -1;

	for (uint32_t i = 1; i <= profile->module_count; i++) {
		const struct profile_module *module = &profile->module[i - 1];
		int rank = title_rank(profile, module);

		if (!module->kinds || rank < best_rank ||
		    (rank == best_rank && module->weight <= profile->module[title - 1].weight))
			continue;
		best_rank = rank;
		title = i;
	}
	if (title)
		code->order[last++] = title;
	for (int kernel = 0; kernel <= 1; kernel++) {
		for (uint32_t i = 1; i <= profile->module_count; i++) {
			uint32_t kinds = profile->module[i - 1].kinds;

			if (!kinds || i == title || (kinds >> FRAME_KERNEL & 1U) != (uint32_t)kernel)
				continue;
			code->order[last++] = i;
		}
	}
	code->mapping_count = last;
	for (uint32_t i = 0; i < last; i++)
		code->mapping_id[code->order[i]] = i + 1;
}

/* Kernel frames without a module get the kernel's mapping, made up when there is none. */
static void find_kernel_mapping(struct pprof_code *code)
{
	const struct profile *profile = code->profile;

	for (uint32_t i = code->mapping_count; i; i--) {
		if (profile->module[code->order[i - 1] - 1].kinds & 1U << FRAME_KERNEL) {
			code->kernel_mapping_id = i;
			return;
		}
	}
	for (uint32_t i = 0; i < profile->stacks.location_count; i++) {
		if (profile->stacks.location[i].kind == FRAME_KERNEL) {
			code->kernel_mapping_id = code->mapping_count + 1;
			return;
		}
	}
}

int pprof_code_init(struct pprof_code *code, const struct profile *profile,
		    struct pprof_strings *strings, struct gzip_sink *sink)
{
	size_t modules = (size_t)profile->module_count + 1;

	*code = (struct pprof_code){.profile = profile, .strings = strings, .sink = sink};
	code->mapping_id = calloc(modules, sizeof(*code->mapping_id));
	code->order = calloc(modules, sizeof(*code->order));
	if (!code->mapping_id || !code->order)
		return -ENOMEM;
	order_mappings(code);
	find_kernel_mapping(code);
	return 0;
}

/* With has_functions false a reader looks for the file on its own machine and warns. */
static int put_mapping(struct pprof_code *code, uint32_t id, const struct module *module,
		       uint32_t file, uint32_t build_id)
{
	Perftools__Profiles__Mapping message = PERFTOOLS__PROFILES__MAPPING__INIT;

	message.id = id;
	message.memory_start = module->start;
	message.memory_limit = module->limit;
	message.file_offset = module->offset;
	message.filename = file;
	message.build_id = build_id;
	message.has_functions = 1;
	message.has_filenames = 1;
	message.has_line_numbers = 1;
	message.has_inline_frames = 1;
	return gzip_sink_put_message(code->sink, PPROF_PROFILE_MAPPING, &message.base);
}

static int put_mappings(struct pprof_code *code)
{
	const struct module none = {0};
	uint32_t file, build_id;

	for (uint32_t i = 0; i < code->mapping_count; i++) {
		const struct module *module = &code->profile->module[code->order[i] - 1].module;
		int err = pprof_strings_add(code->strings, module->path, &file);

		if (!err)
			err = pprof_strings_add(code->strings, module->build_id, &build_id);
		if (!err)
			err = put_mapping(code, i + 1, module, file, build_id);
		if (err)
			return err;
	}
	if (code->kernel_mapping_id > code->mapping_count) {
		int err = pprof_strings_add_text(code->strings, KERNEL_MAPPING, &file);

		return err ? err : put_mapping(code, code->kernel_mapping_id, &none, file, 0);
	}
	return 0;
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

/* Readers drop locations without a function: one that has no name is shown by its file's. */
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
	/* pprof demangles a system name that equals the name, and takes <module> for a template. */
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
	if (module)
		message.mapping_id = code->mapping_id[frame->module];
	else if (frame->kind == FRAME_KERNEL)
		message.mapping_id = code->kernel_mapping_id;
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
	int err = put_mappings(code);

	for (uint32_t i = 0; !err && i < code->profile->stacks.location_count; i++)
		err = put_location(code, i);
	for (uint32_t i = 0; !err && i < code->function_count; i++)
		err = put_function(code, i);
	return err;
}
