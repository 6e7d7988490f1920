/* SPDX-License-Identifier: BSD-2-Clause */
#include "probes/probe_bounds.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/task.h"
#include "options/options.h"
#include "probes/probe_plan.h"
#include "probes/probe_worker.h"
#include "windows/profiles.h"

#define LOOK_NS NS_PER_SEC
#define UNBOUNDED_LOOK_NS (10 * NS_PER_SEC) /* nothing comes of it but what is shown */
#define LEAST_SHARE 10U /* a tenth of the time is the programs' own, however late they are */
#define COMMENT_BYTES 512U

static bool is_bounded(const struct probe_row *row)
{
	return row->place == PROBE_IN_BINARY || row->place == PROBE_IN_ANY;
}

/* Blocks that are freed while free's probe is off seem to be held: it is on whenever malloc's is,
 * or with leaks=yes always. */
static uint32_t leader_of(const struct options *options, const struct probe_plan *plan,
			  uint32_t probe)
{
	if (options->leaks || probe != plan->alloc_row + PROBE_ALLOC_FREE)
		return probe;
	return plan->alloc_row + PROBE_ALLOC_COMMON;
}

uint32_t probe_bounds_leader(const struct probe_bounds *bounds, uint32_t probe)
{
	return bounds->governor.probe[probe].leader;
}

void probe_bounds_init(struct probe_bounds *bounds, const struct options *options,
		       const struct probe_plan *plan, struct probe_worker *worker)
{
	*bounds = (struct probe_bounds){.plan = plan, .worker = worker};
	bounds->governor.bound_ppm = options->slowdown_ppm ?: OPTIONS_SLOWDOWN_PPM;
	bounds->governor.count = (uint32_t)plan->count;
	for (uint32_t i = 0; i < plan->count; i++) {
		struct probe_governed *probe = &bounds->governor.probe[i];

		probe->leader = leader_of(options, plan, i);
		probe->share_ppm = PROBE_SHARE_FULL;
		probe->stays_on = !is_bounded(&plan->row[i]) ||
				  (options->leaks && i == plan->alloc_row + PROBE_ALLOC_FREE);
		bounds->has_bounded |= !probe->stays_on;
		if (!probe->stays_on)
			probe_worker_bound(worker, i, probe->leader);
		bounds->probe[i].has_return = plan->row[i].leg_count > 1 &&
					      plan->row[i].leg[1].is_return &&
					      plan->row[i].place == PROBE_IN_BINARY;
	}
}

void probe_bounds_see_site(struct probe_bounds *bounds, uint32_t probe, enum probe_cost cost)
{
	bounds->probe[probe].is_seen = true;
	if (cost > bounds->probe[probe].cost)
		bounds->probe[probe].cost = cost;
}

/* ---- the programs' CPU time ---- */

void probe_bounds_add_process(struct probe_bounds *bounds, pid_t pid)
{
	for (size_t i = 0; i < bounds->process_count; i++)
		if (bounds->process[i].pid == pid)
			return;
	if (bounds->process_count == PROBE_BOUNDS_PROCESSES)
		return;
	bounds->process[bounds->process_count].pid = pid;
	bounds->process[bounds->process_count].delay_ns = process_delay_ns(pid);
	bounds->process[bounds->process_count++].cpu_ns = process_cpu_ns(pid);
}

void probe_bounds_drop_process(struct probe_bounds *bounds, pid_t pid)
{
	for (size_t i = 0; i < bounds->process_count; i++)
		if (bounds->process[i].pid == pid) {
			bounds->process[i] = bounds->process[--bounds->process_count];
			return;
		}
}

/* Takes what the programs took since the last look.  Of all processes, one CPU is assumed; so it is
 * of programs that sleep, but not of such as wait for a CPU. */
static struct probe_programs take_programs(struct probe_bounds *bounds, uint64_t elapsed_ns)
{
	struct probe_programs programs = {.elapsed_ns = elapsed_ns, .least_ns = elapsed_ns};
	uint64_t delay_ns = 0;

	for (size_t i = 0; i < bounds->process_count; i++) {
		const pid_t pid = bounds->process[i].pid;
		const uint64_t cpu_ns = process_cpu_ns(pid), late_ns = process_delay_ns(pid);

		if (cpu_ns > bounds->process[i].cpu_ns)
			programs.cpu_ns += cpu_ns - bounds->process[i].cpu_ns;
		if (late_ns > bounds->process[i].delay_ns)
			delay_ns += late_ns - bounds->process[i].delay_ns;
		bounds->process[i].cpu_ns = cpu_ns;
		bounds->process[i].delay_ns = late_ns;
	}
	if (delay_ns > elapsed_ns - elapsed_ns / LEAST_SHARE)
		delay_ns = elapsed_ns - elapsed_ns / LEAST_SHARE;
	programs.least_ns -= delay_ns;
	return programs;
}

/* ---- looking ---- */

/* Returns what one hit costs.  A call with both of its ends counts as two hits. */
static uint32_t hit_ns_of(const struct probe_prices *prices, enum probe_cost cost, bool has_return)
{
	const uint64_t begin_ns = prices->hit_ns[cost];

	return (uint32_t)(has_return ? (begin_ns + prices->return_ns) / 2 : begin_ns);
}

static void set_costs(struct probe_bounds *bounds)
{
	const struct probe_worker_prices prices = probe_worker_get_prices(bounds->worker);

	for (uint32_t i = 0; i < bounds->plan->count; i++) {
		struct probe_governed *probe = &bounds->governor.probe[i];

		probe->is_used = bounds->probe[i].is_seen;
		probe->hit_ns =
			hit_ns_of(&prices.of, bounds->probe[i].cost, bounds->probe[i].has_return);
		/* Ends of allocations are no hits. */
		if (i == bounds->plan->alloc_row + PROBE_ALLOC_COMMON)
			probe->hit_ns += (uint32_t)prices.alloc_end_ns;
	}
}

/* What was before does not count: nothing was attached yet. */
static void begin_telling(struct probe_bounds *bounds, const struct probe_costs *costs,
			  uint64_t now_ns)
{
	bounds->told_ns = now_ns;
	for (uint32_t i = 0; i < bounds->plan->count; i++) {
		bounds->probe[i].told = costs->hits[i];
		bounds->probe[i].told_on_ns = costs->on_ns[i];
	}
}

void probe_bounds_look(struct probe_bounds *bounds, uint64_t now_ns)
{
	const uint64_t elapsed_ns = now_ns - bounds->looked_ns;
	struct probe_programs programs;
	struct probe_costs costs;

	if (bounds->looked_ns && elapsed_ns < (bounds->has_bounded ? LOOK_NS : UNBOUNDED_LOOK_NS))
		return;
	if (probe_worker_get_costs(bounds->worker, &costs))
		return;
	if (!bounds->looked_ns)
		begin_telling(bounds, &costs, now_ns);
	else
		set_costs(bounds);
	bounds->looked_ns = now_ns;
	programs = take_programs(bounds, elapsed_ns);
	if (!probe_governor_look(&bounds->governor, &costs, &programs))
		return;
	for (uint32_t i = 0; i < bounds->plan->count; i++)
		if (!bounds->governor.probe[i].stays_on)
			probe_worker_set_share(bounds->worker, i,
					       bounds->governor.probe[i].share_ppm,
					       bounds->governor.probe[i].hit_ns);
}

void probe_bounds_get_now(const struct probe_bounds *bounds, struct probe_bounds_now *ret_now)
{
	*ret_now = (struct probe_bounds_now){.cost_ppm = bounds->governor.cost_ppm,
					     .least_ppm = PROBE_SHARE_FULL};
	for (uint32_t i = 0; i < bounds->plan->count; i++)
		if (bounds->governor.probe[i].share_ppm < ret_now->least_ppm)
			ret_now->least_ppm = bounds->governor.probe[i].share_ppm;
}

/* ---- telling ---- */

/* "probe name=malloc hits=120000 ns_per_hit=640 on=0.23 scaled" */
static int describe(struct probe_bounds *bounds, uint32_t number, const struct probe_costs *costs,
		    uint64_t elapsed_ns, struct profiles *profiles)
{
	const struct probe_governed *probe = &bounds->governor.probe[number];
	const uint64_t hits = costs->hits[number].hits - bounds->probe[number].told.hits;
	const uint64_t ns = costs->hits[number].ns - bounds->probe[number].told.ns;
	const uint64_t on_ns = costs->on_ns[number] - bounds->probe[number].told_on_ns;
	const bool is_scaled = !probe->stays_on && elapsed_ns && on_ns < elapsed_ns / 100 * 99;
	char text[COMMENT_BYTES];
	int used;

	used = snprintf(text, sizeof(text), "probe name=%s hits=%" PRIu64 " ns_per_hit=%" PRIu64,
			bounds->plan->row[number].name, hits,
			probe->hit_ns + (hits ? ns / hits : 0));
	if (is_scaled && used > 0 && (size_t)used < sizeof(text))
		snprintf(text + used, sizeof(text) - (size_t)used, " on=%.3f scaled",
			 (double)on_ns / (double)elapsed_ns);
	bounds->probe[number].told = costs->hits[number];
	bounds->probe[number].told_on_ns = costs->on_ns[number];
	return profiles_add_comment(profiles, text);
}

int probe_bounds_describe(struct probe_bounds *bounds, struct profiles *profiles, uint64_t now_ns)
{
	const uint64_t elapsed_ns = now_ns - bounds->told_ns;
	struct probe_costs costs;
	int err = 0;

	if (!bounds->told_ns || probe_worker_get_costs(bounds->worker, &costs))
		return 0;
	set_costs(bounds);
	for (uint32_t i = 0; i < bounds->plan->count && !err; i++)
		if (bounds->probe[i].is_seen)
			err = describe(bounds, i, &costs, elapsed_ns, profiles);
	bounds->told_ns = now_ns;
	return err;
}
