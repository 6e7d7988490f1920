/* SPDX-License-Identifier: BSD-2-Clause */
#include "gpu/cuda.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "attach/cuda_side.h"
#include "base/array.h"
#include "base/intern.h"
#include "discover/proc_scan.h"
#include "discover/process_table.h"
#include "drain/cuda_names.h"
#include "drain/cuda_totals.h"
#include "gpu/cuda_devices.h"
#include "gpu/gauges.h"
#include "gpu/kernel_names.h"
#include "options/options.h"
#include "probes/cuda_functions.h"
#include "probes/probes.h"
#include "profile/profile.h"
#include "windows/label.h"
#include "windows/modules.h"
#include "windows/source.h"
#include "windows/summary.h"

#define OTHER_KERNELS "[other kernels]"

struct cuda {
	const struct services *services;
	struct cuda_totals *totals;   /* owned */
	struct cuda_names *handles;   /* owned */
	struct kernel_names *names;   /* owned */
	struct cuda_devices *devices; /* owned */
	struct frame *frame;	      /* owned: those of cuda_add_kernel() */
	size_t frame_capacity;
};

/* Of a process that nobody knows (any more) nobody answers: they have one share. */
static uint32_t user_of(void *context, struct pp_process_id id)
{
	const struct cuda *cuda = context;
	struct process *process = process_table_find(cuda->services->processes, id);

	return process ? process_user_kept(process) : UINT32_MAX;
}

static int source_open(void *state)
{
	struct cuda *cuda = state;
	int err = cuda_totals_new(&cuda->totals);

	if (!err)
		err = cuda_names_new(user_of, cuda, &cuda->handles);
	if (!err)
		err = cuda_devices_new(&cuda->devices);
	return err ? err
		   : kernel_names_new(cuda->services, cuda->handles, cuda->totals, &cuda->names);
}

static bool source_close(void *state)
{
	struct cuda *cuda = state;

	cuda_totals_free(cuda->totals);
	kernel_names_free(cuda->names);
	cuda_names_free(cuda->handles);
	cuda_devices_free(cuda->devices);
	free(cuda->frame);
	return true;
}

/* ---- the end of a window ---- */

static bool is_alive(void *context, struct pp_process_id id)
{
	const struct cuda *cuda = context;

	return process_table_is_alive(cuda->services->processes, id);
}

/* Keeps what a row's kernel is called. */
static int note_name(void *context, const struct cuda_fresh *fresh)
{
	const struct cuda *cuda = context;
	const struct pp_cuda_handle handle = {.id = fresh->what.id, .handle = fresh->what.ident};

	return fresh->name ? cuda_names_note_text(cuda->handles, &handle, fresh->name,
						  cuda->services->texts)
			   : 0;
}

static int device_of(void *context, struct pp_process_id id)
{
	return gauges_device_of(context, id.tgid);
}

/* Of a row without a device: a window's samples and totals get the same answer. */
static int note_device(const struct cuda *cuda, const struct cuda_fresh *fresh)
{
	void *gauges = cuda->services->sources->state[PP_SOURCE_GAUGES];

	return fresh->what.device || !gauges
		       ? 0
		       : cuda_devices_note(cuda->devices, fresh->what.id, device_of, gauges);
}

static int note_row(void *context, const struct cuda_fresh *fresh)
{
	const int err = note_name(context, fresh);

	return err ? err : note_device(context, fresh);
}

/* Divides what was added up until now among the window's counters. */
static int source_collect(void *state, const struct source_window *window)
{
	struct cuda *cuda = state;
	const struct cuda_side *side =
		probes_cuda(cuda->services->sources->state[PP_SOURCE_PROBES]);
	struct cuda_tables tables = {
		.is_timed = cuda_function_is_timed, .is_alive = is_alive, .context = cuda};
	uint64_t rows;
	int err;

	if (!side)
		return 0;
	tables.totals = side->totals;
	tables.removed = side->removed;
	tables.shares = side->shares;
	cuda_names_tidy(cuda->handles, is_alive, cuda);
	kernel_names_tidy(cuda->names, is_alive, cuda);
	cuda_devices_begin(cuda->devices, is_alive, cuda);
	err = cuda_names_collect(cuda->handles, side->names, cuda->services->texts);
	if (!err)
		err = cuda_totals_collect(cuda->totals, &tables, window->counts, &rows);
	if (!err)
		err = cuda_totals_fresh(cuda->totals, note_row, cuda);
	return err ? err : cuda_side_set_count(side, rows);
}

/* ---- what a counter's calls do ---- */

/* Kernels have their names before their counters are labelled. */
static int source_add(void *state, const struct source_window *window, const struct slice *slice)
{
	const struct cuda *cuda = state;

	return kernel_names_resolve(cuda->names, window->counts, slice);
}

static void put_stream(const struct pp_cuda_what *what, char ret_text[CUDA_TEXT_BYTES])
{
	static const char *const named[] = {[PP_CUDA_STREAM_NONE] = "",
					    [PP_CUDA_STREAM_DEFAULT] = "default",
					    [PP_CUDA_STREAM_PER_THREAD] = "per-thread"};

	if (what->stream < ARRAY_SIZE(named))
		snprintf(ret_text, CUDA_TEXT_BYTES, "%s", named[what->stream]);
	else
		snprintf(ret_text, CUDA_TEXT_BYTES, "0x%" PRIx64, (uint64_t)what->stream);
}

/* Writes the handle of what the call is about, where it is of that kind. */
static void put_handle(const struct pp_cuda_what *what, bool is_of_kind, const char *before,
		       char ret_text[CUDA_TEXT_BYTES])
{
	ret_text[0] = '\0';
	if (is_of_kind && what->ident != PP_CUDA_IDENT_OTHERS)
		snprintf(ret_text, CUDA_TEXT_BYTES, "%s0x%" PRIx64, before, (uint64_t)what->ident);
}

/* NVML counts all GPUs by their places on the bus; a program counts those that it may use
 * (CUDA_VISIBLE_DEVICES), the fastest first.  So a number of NVML's says whose it is. */
static void put_device(const struct cuda *cuda, const struct pp_cuda_what *what,
		       char ret_text[CUDA_TEXT_BYTES])
{
	int device;

	if (what->device) {
		snprintf(ret_text, CUDA_TEXT_BYTES, "%u", what->device - 1);
		return;
	}
	device = cuda_devices_find(cuda->devices, what->id);
	if (device < 0)
		snprintf(ret_text, CUDA_TEXT_BYTES, "unknown");
	else
		snprintf(ret_text, CUDA_TEXT_BYTES, "nvml:%d", device);
}

static const char *kernel_of(const struct cuda *cuda, const struct pp_cuda_what *what)
{
	const struct cuda_function *function = cuda_function_get(what->api);

	if (!function || !function->has_kernel)
		return "";
	return what->ident == PP_CUDA_IDENT_OTHERS ? OTHER_KERNELS
						   : kernel_names_get(cuda->names, what);
}

int cuda_find(const struct cuda *cuda, uint64_t detail, struct cuda_call *ret_call)
{
#define DIRECTION_TEXT(id, label) [PP_CUDA_##id] = label,
	static const char *const directions[] = {PP_CUDA_DIRECTIONS(DIRECTION_TEXT)};
	const struct pp_cuda_what *what = cuda_totals_what(cuda->totals, detail);
	const struct cuda_function *function;

	if (!what)
		return -ENOENT;
	function = cuda_function_get(what->api);
	cuda_function_label(what->api, ret_call->api);
	ret_call->direction =
		what->direction < ARRAY_SIZE(directions) ? directions[what->direction] : "";
	ret_call->kernel = kernel_of(cuda, what);
	put_device(cuda, what, ret_call->device);
	put_stream(what, ret_call->stream);
	put_handle(what, function && function->has_graph, "graph@", ret_call->graph);
	put_handle(what, function && function->has_communicator, "", ret_call->communicator);
	return 0;
}

void cuda_hold(struct cuda *cuda, uint64_t detail)
{
	cuda_totals_hold(cuda->totals, detail);
}

int cuda_fresh(const struct cuda *cuda,
	       int (*on_fresh)(void *context, const struct cuda_fresh *fresh), void *context)
{
	return cuda_totals_fresh(cuda->totals, on_fresh, context);
}

int cuda_add_kernel(struct cuda *cuda, uint64_t detail, struct intern *strings,
		    struct modules *modules, struct profile_sample *sample)
{
	struct frame frame = {.kind = FRAME_NATIVE};
	struct cuda_call call;
	int err;

	if (!cuda || cuda_find(cuda, detail, &call) || !call.kernel[0])
		return 0;
	err = ARRAY_EXTEND(cuda->frame, sample->frame_count + 1, cuda->frame_capacity);
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

/* ---- as a source ---- */

static int source_label(void *state, const struct pp_count_key *key, struct intern *strings,
			struct profile_sample *sample)
{
	struct cuda_call call;
	int err = 0;

	if (cuda_find(state, key->detail, &call))
		return 0;

	const struct {
		const char *key, *value;
	} label[] = {{"api", call.api},
		     {"kernel", call.kernel},
		     {"direction", call.direction},
		     {"device", call.device},
		     {"stream", call.stream},
		     {"graph", call.graph},
		     {"communicator", call.communicator}};

	for (size_t i = 0; i < ARRAY_SIZE(label) && !err; i++)
		err = label_string(strings, sample, label[i].key, label[i].value);
	return err;
}

static void source_summarize(void *state, struct summary *summary)
{
	const struct cuda *cuda = state;

	summary->loss[PP_LOSS_KERNELS_UNNAMED] = kernel_names_unnamed(cuda->names);
}

const struct source cuda_source = {.name = "cuda",
				   .bytes = sizeof(struct cuda),
				   .open = source_open,
				   .close = source_close,
				   .collect = source_collect,
				   .add = source_add,
				   .labelled_kinds = CUDA_KINDS,
				   .label = source_label,
				   .summarize = source_summarize};
