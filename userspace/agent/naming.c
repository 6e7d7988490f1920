/* SPDX-License-Identifier: BSD-2-Clause */
/* Where symbolize/ gets names from: files, the kernel, JITs; and the window's modules. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "agent/agent.h"
#include "elf/elf_symbols.h"
#include "symbolize/symbolizer.h"

#define NO_MODULE UINT32_MAX

struct naming {
	struct agent *agent;
	char *name; /* of the call's answers; owned */
	size_t name_size, name_capacity;
	uint32_t *module; /* by file id: index in the window's profile + 1, 0: not asked yet */
	size_t module_count;
	const struct profile *profile;
};

int naming_new(struct agent *agent, struct naming **ret_naming)
{
	struct naming *naming = calloc(1, sizeof(*naming));

	if (!naming)
		return -ENOMEM;
	naming->agent = agent;
	*ret_naming = naming;
	return 0;
}

void naming_free(struct naming *naming)
{
	if (!naming)
		return;
	free(naming->name);
	free(naming->module);
	free(naming);
}

struct found { struct symbol *ret; };
static void on_found(void *context, size_t i, const struct elf_function *f)
{
	struct symbol *r = context;
	static char buf[65536][64];
	if (f->name) { snprintf(buf[i & 65535], 64, "%.*s", (int)f->name_size, f->name); r[i].name = buf[i&65535]; }
}
static void name_native(void *context, uint32_t id, const uint64_t *address, size_t n,
			struct symbol *ret)
{
	struct naming *naming = context;
	struct file *file = file_table_find(naming->agent->files, id);
	struct elf_image *image;
	static char unk[65536][64]; static unsigned u; char *b = unk[u++ & 65535];
	const char *base = file ? strrchr(file->path, '/') : NULL;
	snprintf(b, 64, "[%s]", base ? base + 1 : file ? file->path : "gone");
	for (size_t i = 0; i < n; i++)
		ret[i] = (struct symbol){b, ""};
	if (file && !file_image(file, &image))
		elf_symbols_find_many(image, "/", file->path, address, n, on_found, ret);
}

static void name_kernel(void *context, uint64_t address, const char **ret_name, const char **ret_module)
{
	(void)context;(void)address;(void)ret_module;
	*ret_name = "kernel_function";
}

static bool name_anonymous(void *context, struct pp_process_id id, uint64_t address,
			   const char **ret_name)
{
	(void)context;(void)id;(void)address;(void)ret_name;
	return false;
}

/* ---- modules ---- */

static void hex(const uint8_t *bytes, size_t size, char *text)
{
	for (size_t i = 0; i < size; i++)
		sprintf(text + 2 * i, "%02x", bytes[i]);
	text[2 * size] = '\0';
}

static int describe_file(struct naming *naming, const struct file *file, struct module *module)
{
	struct intern *strings = naming->agent->strings;
	char build_id[2 * BUILD_ID_MAX_BYTES + 1];
	int err = intern_string(strings, file->path, &module->path);

	hex(file->key.build_id, file->key.build_id_size, build_id);
	if (!err)
		err = intern_string(strings, build_id, &module->build_id);
	if (file->segment_count) {
		module->start = file->segment[0].vaddr;
		module->limit = file->max_vaddr;
		module->offset = file->segment[0].offset;
	}
	return err;
}

static int describe(struct naming *naming, uint32_t id, struct module *module)
{
	const struct file *file = file_table_find(naming->agent->files, id);
	struct intern *strings = naming->agent->strings;

	if (id == PP_FILE_NONE)
		return intern_string(strings, "[kernel.kallsyms]", &module->path);
	if (id == PP_FILE_ANONYMOUS)
		return intern_string(strings, "[anon]", &module->path);
	if (!file)
		return intern_string(strings, "[unmapped file]", &module->path);
	return describe_file(naming, file, module);
}

static uint32_t get_module(void *context, uint32_t id)
{
	struct naming *naming = context;
	struct module module = {};
	uint32_t index = 0;

	if (id >= naming->module_count) {
		size_t count = (size_t)id + 256;
		uint32_t *grown = realloc(naming->module, count * sizeof(*grown));

		if (!grown)
			return 0;
		memset(grown + naming->module_count, 0,
		       (count - naming->module_count) * sizeof(*grown));
		naming->module = grown;
		naming->module_count = count;
	}
	if (naming->module[id])
		return naming->module[id] - 1;
	if (describe(naming, id, &module) ||
	    profile_add_module(naming->agent->profile, &module, &index))
		return 0;
	naming->module[id] = index + 1;
	return index;
}

static bool is_interpreter(void *context, uint32_t id)
{
	struct naming *naming = context;
	const struct file *file = file_table_find(naming->agent->files, id);

	return file && file->python;
}

static bool has_one_frame_runs(void *context, uint8_t python)
{
	struct naming *naming = context;
	struct file_table_stats stats;

	file_table_get_stats(naming->agent->files, &stats);
	for (uint32_t i = 0; python && i < stats.created; i++) {
		const struct file *file =
			file_table_find(naming->agent->files, PP_FILE_FIRST + i);

		if (file && file->python_index == python)
			return file->python->bpf.chain == PP_CHAIN_FRAME_OBJECT;
	}
	return false;
}

void naming_begin(struct naming *naming, struct symbolizer_sources *ret_sources)
{
	if (naming->profile != naming->agent->profile && naming->module)
		memset(naming->module, 0, naming->module_count * sizeof(*naming->module));
	naming->profile = naming->agent->profile;
	*ret_sources = (struct symbolizer_sources){
		.context = naming,
		.native = name_native,
		.kernel = name_kernel,
		.anonymous = name_anonymous,
		.module = get_module,
		.is_interpreter = is_interpreter,
		.has_one_frame_runs = has_one_frame_runs,
	};
}
