/* SPDX-License-Identifier: BSD-2-Clause */
#include "probes/cuda_bounds.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "attach/cuda_side.h"
#include "base/clock.h"
#include "base/log.h"
#include "drain/table.h"
#include "options/options.h"
#include "probes/cuda_budget.h"
#include "probes/probe_plan.h"
#include "probes/probe_worker.h"
#include "windows/profiles.h"

#define LOOK_NS NS_PER_SEC
/* What the program takes for a call whose stack is not taken, beside the trap (docs/gpu.md). */
#define PROGRAM_NS 90U
#define COMMENT_BYTES 256U
#define SCALED_BELOW 0.99 /* of the time: less than that is told */

struct cuda_bounds {
	const struct probe_plan *plan;
	struct probe_worker *worker;
	struct cuda_budget *budget; /* owned */
	uint64_t looked_ns, told_ns;
	uint64_t on_ns[PP_CUDA_LAUNCHES], told_on_ns[PP_CUDA_LAUNCHES];
	uint64_t told_hits[PP_CUDA_LAUNCHES];
	uint32_t warned_tgid;
};

int cuda_bounds_new(const struct options *options, const struct probe_plan *plan,
		    struct probe_worker *worker, struct cuda_bounds **ret_bounds)
{
	OWNED(cuda_bounds) struct cuda_bounds *bounds = NULL;
	int err;

	*ret_bounds = NULL;
	if (plan->cuda_row >= plan->count)
		return 0;
	bounds = calloc(1, sizeof(*bounds));
	if (!bounds)
		return -ENOMEM;
	bounds->plan = plan;
	bounds->worker = worker;
	err = cuda_budget_new(options->slowdown_ppm ?: OPTIONS_SLOWDOWN_LAUNCH_PPM,
			      &bounds->budget);
	if (err)
		return err;
	probe_worker_bound_launches(worker, plan->cuda_launch_row);
	*ret_bounds = TAKE(bounds);
	return 0;
}

void cuda_bounds_free(struct cuda_bounds *bounds)
{
	if (!bounds)
		return;
	cuda_budget_free(bounds->budget);
	free(bounds);
}

/* ---- looking ---- */

static uint32_t hit_ns_of(const struct cuda_bounds *bounds, uint32_t kind)
{
	const struct probe_worker_prices prices = probe_worker_get_prices(bounds->worker);
	const bool is_dear = kind == PP_CUDA_HIT_LAUNCH_DEAR || kind == PP_CUDA_HIT_OTHER_DEAR;

	return PROGRAM_NS +
	       (uint32_t)prices.of.hit_ns[is_dear ? PROBE_COST_SINGLE_STEP : PROBE_COST_EMULATED];
}

/* The key of cuda_threads[] is pid and tgid, as bpf_get_current_pid_tgid() has them. */
static int on_thread(void *context, const void *key, const void *value)
{
	return cuda_budget_note(context, (uint32_t)(*(const uint64_t *)key >> 32), value);
}

static int note_threads(struct cuda_bounds *bounds, const struct cuda_side *side)
{
	size_t bytes;
	const int threads = cuda_side_threads(side, &bytes);

	return table_read(threads, sizeof(uint64_t), bytes, on_thread, bounds->budget);
}

/* Says once a process why not all of its launches are seen. */
static void warn(struct cuda_bounds *bounds)
{
	struct cuda_budget_now now;

	cuda_budget_get_now(bounds->budget, &now);
	if (!now.tgid || now.tgid == bounds->warned_tgid)
		return;
	bounds->warned_tgid = now.tgid;
	log_warn("probes of all launches of process %u would take %.1f %% of a CPU: they are on "
		 "for a part of the time, and counts are scaled; --max-slowdown allows more",
		 now.tgid, now.need_ppm / 1e4);
}

static void set_shares(struct cuda_bounds *bounds)
{
	struct cuda_budget_now now;

	cuda_budget_get_now(bounds->budget, &now);
	for (uint32_t i = 0; i < PP_CUDA_LAUNCHES; i++)
		probe_worker_set_share(bounds->worker, bounds->plan->cuda_launch_row + i,
				       now.share_ppm[i], hit_ns_of(bounds, i));
}

void cuda_bounds_look(struct cuda_bounds *bounds, uint64_t now_ns)
{
	const struct cuda_side *side = bounds ? probe_worker_cuda(bounds->worker) : NULL;
	struct cuda_budget_period period = {};

	if (!side || now_ns - bounds->looked_ns < LOOK_NS)
		return;
	if (bounds->looked_ns)
		period.elapsed_ns = now_ns - bounds->looked_ns;
	else
		bounds->told_ns = now_ns;
	bounds->looked_ns = now_ns;
	for (uint32_t i = 0; i < PP_CUDA_HITS; i++)
		period.hit_ns[i] = hit_ns_of(bounds, i);
	for (uint32_t i = 0; i < PP_CUDA_LAUNCHES; i++) {
		const uint64_t on_ns =
			probe_worker_on_ns(bounds->worker, bounds->plan->cuda_launch_row + i);

		period.on_ns[i] = on_ns - bounds->on_ns[i];
		bounds->on_ns[i] = on_ns;
		if (!period.elapsed_ns)
			bounds->told_on_ns[i] = on_ns;
	}
	if (note_threads(bounds, side) || !cuda_budget_look(bounds->budget, &period))
		return;
	warn(bounds);
	set_shares(bounds);
}

/* ---- telling ---- */

int cuda_bounds_describe(struct cuda_bounds *bounds, struct profiles *profiles, uint64_t now_ns)
{
	const uint64_t elapsed_ns = bounds ? now_ns - bounds->told_ns : 0;
	struct cuda_budget_now now;
	char text[COMMENT_BYTES];
	int err = 0;

	if (!bounds || !bounds->looked_ns)
		return 0;
	cuda_budget_get_now(bounds->budget, &now);
	for (uint32_t i = 0; i < PP_CUDA_LAUNCHES && !err; i++) {
		const uint32_t row = bounds->plan->cuda_launch_row + i;
		const uint64_t hits = now.hits[i] - bounds->told_hits[i];
		const uint64_t on_ns = probe_worker_on_ns(bounds->worker, row);
		const double on = (double)(on_ns - bounds->told_on_ns[i]) / (double)elapsed_ns;
		const char *name = bounds->plan->row[row].name;

		bounds->told_hits[i] = now.hits[i];
		bounds->told_on_ns[i] = on_ns;
		if (!hits)
			continue;
		if (on < SCALED_BELOW)
			snprintf(text, sizeof(text),
				 "probe name=%s hits=%" PRIu64 " ns_per_hit=%u on=%.3f scaled",
				 name, hits, hit_ns_of(bounds, i), on);
		else
			snprintf(text, sizeof(text), "probe name=%s hits=%" PRIu64 " ns_per_hit=%u",
				 name, hits, hit_ns_of(bounds, i));
		err = profiles_add_comment(profiles, text);
	}
	bounds->told_ns = now_ns;
	return err;
}
