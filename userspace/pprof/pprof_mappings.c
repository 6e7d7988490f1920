/* SPDX-License-Identifier: BSD-2-Clause */
#include "pprof/pprof_mappings.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define ENTRY_OF_KIND 0x80000000U

static const char *const kind_name[FRAME_KINDS] = {
	[FRAME_PYTHON] = "[python]",	      [FRAME_NATIVE] = "[unknown]",
	[FRAME_KERNEL] = "[kernel.kallsyms]", [FRAME_JIT] = "[anon]",
	[FRAME_MARKER] = "[pyprofd]",
};

void pprof_mappings_release(struct pprof_mappings *mappings)
{
	free(mappings->entry);
	free(mappings->module_id);
	*mappings = (struct pprof_mappings){0};
}

static uint32_t known_kind(const struct frame *frame)
{
	return frame->kind < FRAME_KINDS ? frame->kind : FRAME_NATIVE;
}

/* Returns how well a module serves as title: readers show the first mapping as "File:". */
static int title_rank(const struct profile *profile, const struct profile_module *module)
{
	const char *path = intern_get(profile->strings, module->module.path, NULL);
	const char *slash = strrchr(path, '/');
	const char *base = slash ? slash + 1 : path;

	if (!(module->kinds & 1U << FRAME_NATIVE))
		return module->kinds & 1U << FRAME_KERNEL ? 0 : 1;
	if (path[0] == '[')
		return 1;
	if (!strncmp(base, "libpython", strlen("libpython")))
		return 3;
	return strstr(base, ".so") ? 2 : 4;
}

/* Returns the module of the best rank, of equals the one in most samples.  0: none. */
static uint32_t find_title(const struct profile *profile)
{
	int64_t best_weight = 0;
	int best_rank = -1;
	uint32_t title = 0;

	for (uint32_t i = 1; i <= profile->module_count; i++) {
		const struct profile_module *module = &profile->module[i - 1];
		int rank = title_rank(profile, module);

		if (!module->kinds || rank < best_rank ||
		    (rank == best_rank && module->weight <= best_weight))
			continue;
		best_rank = rank;
		best_weight = module->weight;
		title = i;
	}
	return title;
}

static void add_entry(struct pprof_mappings *mappings, uint32_t entry)
{
	mappings->entry[mappings->count++] = entry;
	if (entry >= ENTRY_OF_KIND)
		mappings->kind_id[entry - ENTRY_OF_KIND] = mappings->count;
	else
		mappings->module_id[entry] = mappings->count;
}

static void add_modules(struct pprof_mappings *mappings, bool of_kernel)
{
	for (uint32_t i = 1; i <= mappings->profile->module_count; i++) {
		uint32_t kinds = mappings->profile->module[i - 1].kinds;
		bool is_kernel = kinds & 1U << FRAME_KERNEL;

		if (kinds && !mappings->module_id[i] && is_kernel == of_kernel)
			add_entry(mappings, i);
	}
}

/* Returns the kinds of frames without a module: bits 1 << kind. */
static uint32_t kinds_without_module(const struct profile *profile)
{
	uint32_t kinds = 0;

	for (uint32_t i = 0; i < profile->stacks.location_count; i++) {
		const struct frame *frame = &profile->stacks.location[i];

		if (!profile_frame_module(profile, frame))
			kinds |= 1U << known_kind(frame);
	}
	return kinds;
}

/* Returns the kernel's module with most samples.  0: none. */
static uint32_t find_kernel(const struct profile *profile)
{
	uint32_t kernel = 0;

	for (uint32_t i = 1; i <= profile->module_count; i++) {
		const struct profile_module *module = &profile->module[i - 1];

		if (module->kinds & 1U << FRAME_KERNEL &&
		    (!kernel || module->weight > profile->module[kernel - 1].weight))
			kernel = i;
	}
	return kernel;
}

/* Orders the mappings: the title first, the kernel last. */
static void order_mappings(struct pprof_mappings *mappings)
{
	uint32_t kinds = kinds_without_module(mappings->profile);
	uint32_t title = find_title(mappings->profile), kernel;

	if (title)
		add_entry(mappings, title);
	add_modules(mappings, false);
	for (uint32_t kind = 0; kind < FRAME_KINDS; kind++)
		if (kind != FRAME_KERNEL && kinds & 1U << kind)
			add_entry(mappings, ENTRY_OF_KIND + kind);
	add_modules(mappings, true);
	if (!(kinds & 1U << FRAME_KERNEL))
		return;
	kernel = find_kernel(mappings->profile);
	if (kernel)
		mappings->kind_id[FRAME_KERNEL] = mappings->module_id[kernel];
	else
		add_entry(mappings, ENTRY_OF_KIND + FRAME_KERNEL);
}

int pprof_mappings_init(struct pprof_mappings *mappings, const struct profile *profile)
{
	size_t modules = (size_t)profile->module_count + 1;

	*mappings = (struct pprof_mappings){.profile = profile};
	mappings->entry = calloc(modules + FRAME_KINDS, sizeof(*mappings->entry));
	mappings->module_id = calloc(modules, sizeof(*mappings->module_id));
	if (!mappings->entry || !mappings->module_id)
		return -ENOMEM;
	order_mappings(mappings);
	return 0;
}

uint32_t pprof_mappings_id(const struct pprof_mappings *mappings, const struct frame *frame)
{
	return profile_frame_module(mappings->profile, frame)
		       ? mappings->module_id[frame->module]
		       : mappings->kind_id[known_kind(frame)];
}

const char *pprof_mappings_get(const struct pprof_mappings *mappings, uint32_t index,
			       const struct module **ret_module)
{
	uint32_t entry = mappings->entry[index];

	if (entry >= ENTRY_OF_KIND)
		return kind_name[entry - ENTRY_OF_KIND];
	*ret_module = &mappings->profile->module[entry - 1].module;
	return NULL;
}
