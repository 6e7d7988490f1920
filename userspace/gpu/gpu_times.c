/* SPDX-License-Identifier: BSD-2-Clause */
#include "gpu/gpu_times.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "attach/cuda_side.h"
#include "base/clock.h"
#include "discover/process_table.h"
#include "drain/gpu_states.h"
#include "options/options.h"
#include "probes/probes.h"
#include "profile/queue_line.h"
#include "windows/profiles.h"
#include "windows/source.h"

struct gpu_times {
	struct gpu_times_sources sources;
	struct gpu_states *states; /* owned */
};

int gpu_times_new(const struct gpu_times_sources *sources, struct gpu_times **ret_times)
{
	OWNED(gpu_times) struct gpu_times *times = NULL;
	int err;

	*ret_times = NULL;
	if (!(sources->options->events & PP_CAPTURE_CUDA))
		return 0;
	times = calloc(1, sizeof(*times));
	if (!times)
		return -ENOMEM;
	times->sources = *sources;
	err = gpu_states_new(&times->states);
	if (err)
		return err;
	*ret_times = TAKE(times);
	return 0;
}

void gpu_times_free(struct gpu_times *times)
{
	if (!times)
		return;
	gpu_states_free(times->states);
	free(times);
}

static bool is_alive(void *context, struct pp_process_id id)
{
	const struct gpu_times *times = context;

	return process_table_is_alive(times->sources.processes, id);
}

int gpu_times_collect(struct gpu_times *times)
{
	const struct cuda_side *side = times ? probes_cuda(times->sources.probes) : NULL;
	struct cuda_side_states of;
	struct gpu_tables tables;

	if (!side)
		return 0;
	of = cuda_side_states(side);
	tables = (struct gpu_tables){.processes = of.processes,
				     .streams = of.streams,
				     .wholes = of.wholes,
				     .stream_bytes = of.stream_bytes,
				     .shares = of.shares,
				     .is_alive = is_alive,
				     .context = times};
	return gpu_states_collect(times->states, &tables, mono_ns());
}

struct describing {
	const struct gpu_times *times;
	struct profiles *profiles;
};

static int describe(void *context, const struct gpu_state_times *of)
{
	const struct describing *describing = context;
	const struct process *process =
		process_table_find(describing->times->sources.processes, of->id);
	char text[QUEUE_LINE_CHARS], comm[PP_COMM_BYTES + 1] = "";

	if (process)
		memcpy(comm, process->comm, PP_COMM_BYTES);
	queue_line_format(&(struct queue_line){.pid = of->id.tgid,
					       .others = of->others,
					       .comm = comm,
					       .queued_ns = of->ns[PP_GPU_QUEUED],
					       .drained_ns = of->ns[PP_GPU_DRAINED],
					       .unknown_ns = of->ns[PP_GPU_UNKNOWN]},
			  text);
	return profiles_add_comment_to(describing->profiles, 1U << PP_PROFILE_CUDA, text);
}

int gpu_times_describe(struct gpu_times *times, struct profiles *profiles)
{
	struct describing describing = {.times = times, .profiles = profiles};

	return times ? gpu_states_take(times->states, describe, &describing) : 0;
}

/* ---- as a source ---- */

static int source_open(const struct services *services, void **ret_state)
{
	const struct gpu_times_sources sources = {
		.options = services->options,
		.probes = services->sources->state[PP_SOURCE_PROBES],
		.processes = services->processes};
	struct gpu_times *times = NULL;
	int err = gpu_times_new(&sources, &times);

	*ret_state = times;
	return err;
}

static bool source_close(void *state)
{
	gpu_times_free(state);
	return true;
}

static int source_collect(void *state, const struct source_window *window)
{
	(void)window;
	return gpu_times_collect(state);
}

static int source_describe(void *state, struct profiles *profiles)
{
	return gpu_times_describe(state, profiles);
}

const struct source gpu_times_source = {.name = "gpu_times",
					.open = source_open,
					.close = source_close,
					.collect = source_collect,
					.describe = source_describe};
