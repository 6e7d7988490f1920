/* SPDX-License-Identifier: BSD-2-Clause */
/* The probes of a run as a source.  Their counters are in the kernel's tables; CUDA's are totals,
 * which a source of its own collects (gpu/cuda.h). */
#include <pyprofd/sample.h>

#include "drain/text_table.h"
#include "probes/probes.h"
#include "windows/label.h"
#include "windows/source.h"
#include "windows/summary.h"

static int source_open(const struct services *services, void **ret_state)
{
	struct probes *probes = NULL;
	int err = probes_new(services, &probes);

	*ret_state = probes;
	return err;
}

static bool source_close(void *state)
{
	return probes_free(state);
}

static void source_prepare(void *state, pid_t pid, const char *command)
{
	probes_prepare(state, pid, command);
}

static int source_check(void *state)
{
	return probes_check(state);
}

static int source_is_ready(void *state)
{
	return probes_are_ready(state);
}

static int source_begin(void *state, uint64_t started_ns)
{
	probes_start(state, started_ns);
	return 0;
}

static void source_see_process(void *state, const struct process *process, bool is_new)
{
	(void)is_new;
	probes_see(state, process);
}

static void source_forget_process(void *state, struct pp_process_id id)
{
	probes_forget(state, id);
}

static bool source_tick(void *state, uint64_t now_ns)
{
	(void)now_ns;
	probes_tick(state);
	return false;
}

/* Of CUDA's calls a source of its own knows what they do. */
static int source_label(void *state, const struct pp_count_key *key, struct intern *strings,
			struct profile_sample *sample)
{
	const struct probe_plan plan = probes_plan(state);
	const char *module;

	switch (key->kind) {
	case PP_KIND_GC:
		label_number(sample, "generation", (int64_t)key->detail);
		return 0;
	case PP_KIND_IMPORT:
		module = text_table_find(probes_texts(state), key->detail);
		return label_string(strings, sample, "module", module ? module : "[unknown]");
	default:
		return key->detail < plan.count
			       ? label_string(strings, sample, "probe", plan.name[key->detail])
			       : 0;
	}
}

static int source_describe(void *state, struct profiles *profiles)
{
	return probes_describe(state, profiles);
}

static void source_summarize(void *state, struct summary *summary)
{
	struct probe_bounds_now now;

	probes_get_now(state, &now);
	summary->probes_cost_ppm = now.cost_ppm;
	summary->probes_on_ppm = now.least_ppm;
}

const struct source probes_source = {.name = "probes",
				     .open = source_open,
				     .close = source_close,
				     .prepare = source_prepare,
				     .check = source_check,
				     .is_ready = source_is_ready,
				     .begin = source_begin,
				     .see_process = source_see_process,
				     .forget_process = source_forget_process,
				     .tick = source_tick,
				     .labelled_kinds = 1U << PP_KIND_GC | 1U << PP_KIND_IMPORT |
						       1U << PP_KIND_PROBE,
				     .label = source_label,
				     .describe = source_describe,
				     .summarize = source_summarize};
