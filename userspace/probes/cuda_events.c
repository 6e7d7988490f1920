/* SPDX-License-Identifier: BSD-2-Clause */
#include "probes/cuda_events.h"

#include <pyprofd/probe.h>

#include "attach/cuda_side.h"
#include "base/log.h"
#include "probes/probe_plan.h"
#include "probes/probe_worker.h"

void cuda_events_begin(struct cuda_events *events, const struct probe_plan *plan,
		       struct probe_worker *worker)
{
	*events = (struct cuda_events){.row = plan->cuda_events_row};
	if (events->row < PP_PROBES_MAX)
		probe_worker_hold(worker, events->row, true);
}

/* What the kernel side goes by must not be true for a moment without the links. */
static void set_followed(struct cuda_events *events, const struct cuda_side *side,
			 bool are_followed)
{
	if (are_followed == events->are_followed)
		return;
	if (cuda_side_follow_events(side, are_followed))
		return;
	events->are_followed = are_followed;
	log_debug("events of CUDA are %s", are_followed ? "followed" : "not followed any more");
}

void cuda_events_look(struct cuda_events *events, struct probe_worker *worker, uint64_t now_ns)
{
	const struct cuda_side *side =
		events->row < PP_PROBES_MAX ? probe_worker_cuda(worker) : NULL;
	uint32_t captures;
	bool are_wanted;

	if (!side || cuda_side_captures(side, &captures))
		return;
	if (captures != events->captures)
		events->changed_ns = now_ns;
	events->captures = captures;
	are_wanted = events->changed_ns && now_ns - events->changed_ns < CUDA_EVENTS_KEPT_NS;
	if (!are_wanted)
		set_followed(events, side, false);
	if (are_wanted != events->are_wanted)
		probe_worker_hold(worker, events->row, !are_wanted);
	events->are_wanted = are_wanted;
	if (are_wanted)
		set_followed(events, side, probe_worker_is_on(worker, events->row));
}
