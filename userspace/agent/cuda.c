/* SPDX-License-Identifier: BSD-2-Clause */
#include "agent/cuda.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/cuda_functions.h"
#include "agent/modules.h"
#include "agent/naming.h"
#include "agent/probes.h"
#include "attach/cuda_side.h"
#include "base/array.h"
#include "base/intern.h"
#include "discover/process_table.h"
#include "drain/cuda_names.h"
#include "drain/cuda_totals.h"
#include "drain/text_table.h"
#include "options/options.h"
#include "profile/profile.h"

#define OTHER_KERNELS "[other kernels]"
#define STUB "__device_stub_" /* nvcc's functions on the host, before the kernel's mangled name */

struct cuda {
	struct cuda_sources sources;
	struct cuda_totals *totals; /* owned */
	struct cuda_names *names;   /* owned */
	struct frame *frame;	    /* owned: those of cuda_add_kernel() */
	size_t frame_count, frame_capacity;
};

int cuda_new(const struct cuda_sources *sources, struct cuda **ret_cuda)
{
	OWNED(cuda) struct cuda *cuda = NULL;
	int err;

	*ret_cuda = NULL;
	if (!(sources->options->events & PP_CAPTURE_CUDA))
		return 0;
	cuda = calloc(1, sizeof(*cuda));
	if (!cuda)
		return -ENOMEM;
	cuda->sources = *sources;
	err = cuda_totals_new(&cuda->totals);
	if (!err)
		err = cuda_names_new(&cuda->names);
	if (err)
		return err;
	*ret_cuda = TAKE(cuda);
	return 0;
}

void cuda_free(struct cuda *cuda)
{
	if (!cuda)
		return;
	cuda_totals_free(cuda->totals);
	cuda_names_free(cuda->names);
	free(cuda->frame);
	free(cuda);
}

/* ---- the end of a window ---- */

static bool is_alive(void *context, struct pp_process_id id)
{
	const struct cuda *cuda = context;
	const struct process *process = process_table_find(cuda->sources.processes, id);

	return process && !process->exit_ns;
}

int cuda_collect(struct cuda *cuda, struct counts *counts)
{
	const struct cuda_side *side = cuda ? probes_cuda(cuda->sources.probes) : NULL;
	struct cuda_tables tables = {.is_alive = is_alive, .context = cuda};
	uint64_t rows;
	int err;

	if (!side)
		return 0;
	tables.totals = cuda_side_totals(side);
	cuda_names_tidy(cuda->names, is_alive, cuda);
	err = cuda_names_collect(cuda->names, cuda_side_names(side), cuda->sources.texts);
	if (!err)
		err = cuda_totals_collect(cuda->totals, &tables, counts, &rows);
	return err ? err : cuda_side_set_count(side, rows);
}

/* ---- what a counter's calls do ---- */

static const char *kernel_of(const struct cuda *cuda, const struct pp_cuda_what *what,
			     char handle_text[CUDA_TEXT_BYTES])
{
	const struct cuda_function *function = cuda_function_get(what->api);
	const struct pp_cuda_handle handle = {.id = what->id, .handle = what->ident};
	const char *name;

	if (!function || !function->has_kernel)
		return "";
	if (what->ident == PP_CUDA_IDENT_OTHERS)
		return OTHER_KERNELS;
	name = cuda_names_find(cuda->names, &handle);
	if (name)
		return name;
	snprintf(handle_text, CUDA_TEXT_BYTES, "kernel@0x%" PRIx64, (uint64_t)what->ident);
	return handle_text;
}

int cuda_find(const struct cuda *cuda, uint64_t detail, struct cuda_call *ret_call)
{
#define DIRECTION_TEXT(id, label) [PP_CUDA_##id] = label,
	static const char *const directions[] = {PP_CUDA_DIRECTIONS(DIRECTION_TEXT)};
	const struct pp_cuda_what *what = cuda ? cuda_totals_what(cuda->totals, detail) : NULL;

	if (!what)
		return -ENOENT;
	cuda_function_label(what->api, ret_call->api);
	ret_call->direction =
		what->direction < ARRAY_SIZE(directions) ? directions[what->direction] : "";
	ret_call->kernel = kernel_of(cuda, what, ret_call->handle);
	snprintf(ret_call->device, sizeof(ret_call->device), "unknown");
	if (what->device)
		snprintf(ret_call->device, sizeof(ret_call->device), "%u", what->device - 1U);
	return 0;
}

/* Returns the mapping of a process that an address lies in; NULL: there is none. */
static const struct mapping *mapping_at(const struct process *process, uint64_t address)
{
	for (size_t i = 0; i < process->mapping_count; i++)
		if (address >= process->mapping[i].start && address < process->mapping[i].end)
			return &process->mapping[i];
	return NULL;
}

/* A kernel of the runtime is the address of its stub. */
static const char *stub_name(const struct cuda *cuda, const struct pp_cuda_what *what)
{
	const struct process *process = process_table_find(cuda->sources.processes, what->id);
	const struct mapping *mapping = process ? mapping_at(process, what->ident) : NULL;
	const char *name;

	if (!mapping || !naming_function(cuda->sources.naming, mapping->file,
					 what->ident - mapping->bias, &name))
		return NULL;
	return strncmp(name, STUB, strlen(STUB)) ? name : name + strlen(STUB);
}

int cuda_name(struct cuda *cuda, uint64_t detail)
{
	const struct pp_cuda_what *what = cuda ? cuda_totals_what(cuda->totals, detail) : NULL;
	const struct cuda_function *function = what ? cuda_function_get(what->api) : NULL;
	struct pp_cuda_handle handle;
	char text[CUDA_TEXT_BYTES];
	const char *name;
	int err;

	if (!function || !function->is_runtime || !function->has_kernel ||
	    what->ident == PP_CUDA_IDENT_OTHERS)
		return 0;
	handle = (struct pp_cuda_handle){.id = what->id, .handle = what->ident};
	if (cuda_names_find(cuda->names, &handle))
		return 0;
	name = stub_name(cuda, what);
	/* It is not asked about again. */
	err = cuda_names_add(cuda->names, &handle, name ? name : kernel_of(cuda, what, text));
	return err == -ENOSPC ? 0 : err;
}

int cuda_fresh(const struct cuda *cuda,
	       int (*on_fresh)(void *context, const struct cuda_fresh *fresh), void *context)
{
	return cuda ? cuda_totals_fresh(cuda->totals, on_fresh, context) : 0;
}

static int reserve_frames(struct cuda *cuda, size_t count)
{
	while (cuda->frame_capacity < count) {
		cuda->frame_count = cuda->frame_capacity;
		if (ARRAY_RESERVE(cuda->frame, cuda->frame_count, cuda->frame_capacity))
			return -ENOMEM;
	}
	return 0;
}

int cuda_add_kernel(struct cuda *cuda, uint64_t detail, struct intern *strings,
		    struct modules *modules, struct profile_sample *sample)
{
	struct frame frame = {.kind = FRAME_NATIVE};
	struct cuda_call call;
	int err;

	if (!cuda || cuda_find(cuda, detail, &call) || !call.kernel[0])
		return 0;
	err = reserve_frames(cuda, sample->frame_count + 1);
	if (!err)
		err = intern_string(strings, call.kernel, &frame.name);
	if (err)
		return err;
	frame.module = modules_get_gpu(modules);
	cuda->frame[0] = frame;
	memcpy(cuda->frame + 1, sample->frame, sample->frame_count * sizeof(frame));
	sample->frame = cuda->frame;
	sample->frame_count++;
	return 0;
}
