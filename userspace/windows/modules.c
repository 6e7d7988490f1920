/* SPDX-License-Identifier: BSD-2-Clause */
#include "windows/modules.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "attach/file_table.h"
#include "base/array.h"
#include "windows/profiles.h"

struct named_module {
	uint32_t file;	/* id of the file that had the slot when its number was given */
	uint32_t index; /* + 1; 0: none was given yet */
};

struct modules {
	const struct file_table *files;
	struct profiles *profiles;
	struct intern *strings;
	struct named_module *module; /* owned; by slot */
	size_t capacity;
	uint32_t gpu; /* index + 1 of MODULES_GPU; 0: none was given yet */
};

int modules_new(const struct file_table *files, struct profiles *profiles,
		struct modules **ret_modules)
{
	struct modules *modules = calloc(1, sizeof(*modules));

	if (!modules)
		return -ENOMEM;
	modules->files = files;
	modules->profiles = profiles;
	*ret_modules = modules;
	return 0;
}

void modules_free(struct modules *modules)
{
	if (!modules)
		return;
	free(modules->module);
	free(modules);
}

void modules_begin(struct modules *modules, struct intern *strings)
{
	modules->strings = strings;
	modules->gpu = 0;
	for (size_t i = 0; i < modules->capacity; i++)
		modules->module[i] = (struct named_module){};
}

static void hex(const uint8_t *bytes, size_t size, char *text)
{
	for (size_t i = 0; i < size; i++)
		snprintf(text + 2 * i, 3, "%02x", bytes[i]);
	text[2 * size] = '\0';
}

static int describe_file(struct modules *modules, const struct file *file, struct module *module)
{
	char build_id[2 * BUILD_ID_MAX_BYTES + 1];
	int err = intern_string(modules->strings, file->path, &module->path);

	hex(file->build_id, file->build_id_size, build_id);
	if (!err)
		err = intern_string(modules->strings, build_id, &module->build_id);
	if (file->segment_count) {
		module->start = file->segment[0].vaddr;
		module->limit = file->max_vaddr;
		module->offset = file->segment[0].offset;
	}
	return err;
}

static int describe(struct modules *modules, uint32_t slot, const struct file *file,
		    struct module *module)
{
	if (slot == PP_FILE_NONE)
		return intern_string(modules->strings, "[kernel.kallsyms]", &module->path);
	if (slot == PP_FILE_ANONYMOUS)
		return intern_string(modules->strings, "[anon]", &module->path);
	if (!file)
		return intern_string(modules->strings, "[unmapped file]", &module->path);
	return describe_file(modules, file, module);
}

uint32_t modules_get(struct modules *modules, uint32_t slot)
{
	const struct file *file = file_table_in_slot(modules->files, slot);
	const uint32_t id = file ? file->id : slot;
	struct module module = {};
	uint32_t index = 0;

	if (ARRAY_EXTEND(modules->module, slot + 1U, modules->capacity))
		return 0;
	if (modules->module[slot].index && modules->module[slot].file == id)
		return modules->module[slot].index - 1;
	if (describe(modules, slot, file, &module) ||
	    profiles_add_module(modules->profiles, &module, &index))
		return 0;
	modules->module[slot] = (struct named_module){.file = id, .index = index + 1};
	return index;
}

uint32_t modules_get_gpu(struct modules *modules)
{
	struct module module = {};
	uint32_t index = 0;

	if (modules->gpu)
		return modules->gpu - 1;
	if (intern_string(modules->strings, MODULES_GPU, &module.path) ||
	    profiles_add_module(modules->profiles, &module, &index))
		return 0;
	modules->gpu = index + 1;
	return index;
}
