/* SPDX-License-Identifier: BSD-2-Clause */
/* For how long processes had work queued on the GPU, and for how long provably none, as rows of
 * kind gpu.  A source (windows/source.h); the loop's thread. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "attach/cuda_side.h"
#include "base/clock.h"
#include "discover/process_table.h"
#include "drain/gpu_states.h"
#include "probes/probes.h"
#include "windows/process_record.h"
#include "windows/record_sink.h"
#include "windows/source.h"
#include "windows/top.h"

struct gpu_times {
	const struct services *services;
	struct gpu_states *states; /* owned */
};

static int source_open(void *state)
{
	struct gpu_times *times = state;

	return gpu_states_new(&times->states);
}

static bool source_close(void *state)
{
	struct gpu_times *times = state;

	gpu_states_free(times->states);
	return true;
}

static bool is_alive(void *context, struct pp_process_id id)
{
	const struct gpu_times *times = context;

	return process_table_is_alive(times->services->processes, id);
}

/* Takes what the kernel side has up to now. */
static int source_collect(void *state, const struct source_window *window)
{
	struct gpu_times *times = state;
	const struct cuda_side *side =
		probes_cuda(times->services->sources->state[PP_SOURCE_PROBES]);
	struct gpu_tables tables;

	(void)window;
	if (!side)
		return 0;
	tables = (struct gpu_tables){.processes = side->processes,
				     .streams = side->streams,
				     .wholes = side->wholes,
				     .stream_bytes = side->stream_bytes,
				     .shares = side->shares,
				     .is_alive = is_alive,
				     .context = times};
	return gpu_states_collect(times->states, &tables, mono_ns());
}

/* ---- rows ---- */

static int put(void *context, const struct gpu_state_times *of)
{
	static const char *const state[PP_GPU_WAIT] = {[PP_GPU_UNKNOWN] = "unknown",
						       [PP_GPU_QUEUED] = "queued",
						       [PP_GPU_DRAINED] = "drained"};
	const struct record_sink *sink = context;
	const struct process *process = process_table_find(sink->services->processes, of->id);
	const char *comm = process ? process->comm : "";
	struct record record;
	int err;

	err = process_record_begin(sink, PP_PROFILE_GPU, of->id, of->id.tgid ? comm : RECORD_OTHERS,
				   &record);
	for (unsigned int i = 0; i < PP_GPU_WAIT && !err; i++) {
		if (!of->ns[i])
			continue;
		record_next(&record);
		record.sample.value[PP_GPU_TIME] = (int64_t)of->ns[i];
		err = record_about(&record, sink->strings, "gpu", state[i]);
		if (!err)
			err = record_put(sink, &record);
	}
	return err;
}

static int source_finish(void *state, const struct source_window *window, const struct slice *slice)
{
	const struct gpu_times *times = state;
	struct record_sink sink = record_sink_clients(times->services);

	(void)window, (void)slice;
	return top_wants(times->services->top, 1U << PP_PROFILE_GPU) && sink.strings
		       ? gpu_states_part(times->states, put, &sink)
		       : 0;
}

static int source_describe(void *state, struct profiles *profiles)
{
	struct gpu_times *times = state;
	struct record_sink sink = record_sink_profiles(times->services, profiles);

	return gpu_states_take(times->states, put, &sink);
}

const struct source gpu_times_source = {.name = "gpu_times",
					.bytes = sizeof(struct gpu_times),
					.open = source_open,
					.close = source_close,
					.collect = source_collect,
					.finish = source_finish,
					.describe = source_describe};
