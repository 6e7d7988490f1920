/* SPDX-License-Identifier: BSD-2-Clause */
#include "probes/probe_bounds.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "attach/cuda_side.h"
#include "attach/probe_side.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/task.h"
#include "discover/proc_scan.h"
#include "discover/process_table.h"
#include "drain/table.h"
#include "options/options.h"
#include "probes/probe_plan.h"
#include "probes/probe_worker.h"
#include "windows/profiles.h"

#define LOOK_NS NS_PER_SEC
#define UNBOUNDED_LOOK_NS (10 * NS_PER_SEC) /* nothing comes of it but what is shown */
#define COMMENT_BYTES 512U
#define SCALED_BELOW 0.99 /* of the time: less than that is told */
/* What launches have not used of their bound is theirs for so long. */
#define LAUNCHES_SAVE_NS (10 * NS_PER_SEC)
/* What CUDA's program takes for a call whose stack is not taken, beside the trap (docs/gpu.md),
 * until so many hits were timed. */
#define LAUNCH_NS 90U
#define TIMED_LEAST 16U
#define UID_UNKNOWN UINT32_MAX
#define MAPPINGS_OF_USER 16384U /* that are looked at: half a millisecond */

static bool has_cuda(const struct probe_plan *plan)
{
	return plan->cuda_row < plan->count;
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
	return bounds->probe[probe].leader;
}

static void begin_probe(struct probe_bounds *bounds, const struct options *options, uint32_t probe)
{
	const struct probe_plan *plan = bounds->plan;
	const struct probe_row *row = &plan->row[probe];

	bounds->probe[probe].leader = leader_of(options, plan, probe);
	bounds->probe[probe].stays_on =
		(row->place != PROBE_IN_BINARY && row->place != PROBE_IN_ANY) ||
		(options->leaks && probe == plan->alloc_row + PROBE_ALLOC_FREE);
	bounds->probe[probe].has_return =
		row->leg_count > 1 && row->leg[1].is_return && row->place == PROBE_IN_BINARY;
	if (bounds->probe[probe].stays_on)
		return;
	bounds->has_bounded = true;
	probe_worker_bound(bounds->worker, probe, bounds->probe[probe].leader);
}

int probe_bounds_init(struct probe_bounds *bounds, const struct options *options,
		      const struct probe_plan *plan, struct probe_worker *worker,
		      const struct probe_bounds_users *users)
{
	int err;

	*bounds = (struct probe_bounds){.plan = plan, .worker = worker, .users = *users};
	err = budget_new(options->slowdown_ppm ?: OPTIONS_SLOWDOWN_PPM, &bounds->programs);
	if (!err && has_cuda(plan))
		err = budget_new(options->slowdown_ppm ?: OPTIONS_SLOWDOWN_LAUNCH_PPM,
				 &bounds->launches);
	if (err)
		return err;
	for (uint32_t i = 0; i < plan->count; i++)
		begin_probe(bounds, options, i);
	if (!has_cuda(plan))
		return 0;
	budget_save(bounds->launches, LAUNCHES_SAVE_NS);
	probe_worker_bound_launches(worker, plan->cuda_launch_row);
	return 0;
}

void probe_bounds_release(struct probe_bounds *bounds)
{
	budget_free(bounds->programs);
	budget_free(bounds->launches);
	bounds->programs = bounds->launches = NULL;
	user_quota_release(&bounds->thinned);
}

void probe_bounds_see_site(struct probe_bounds *bounds, uint32_t probe, enum probe_cost cost)
{
	/* CUDA's have a program and an accounting of their own. */
	bounds->probe[probe].is_seen = bounds->plan->row[probe].place < PROBE_IN_DRIVER;
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

/* Whoever hits allocators' functions: most of those hits do nothing, and find out nothing. */
static const struct budget_payer everybody = {.uid = UID_UNKNOWN};

/* Returns whose the process is, and who answers for it. */
static struct budget_payer payer_of(const struct probe_bounds *bounds, uint32_t tgid)
{
	struct process *process = process_table_find_tgid(bounds->users.processes, tgid);

	return (struct budget_payer){.tgid = tgid,
				     .uid = process ? process_user_kept(process) : UID_UNKNOWN};
}

/* Says what each program took since the last look, and all of them together.  One CPU is assumed of
 * programs that sleep, but not of such as wait for a CPU; so it is of all programs where nobody
 * says whose they are. */
static int set_programs_time(struct probe_bounds *bounds, uint64_t elapsed_ns)
{
	uint64_t all_ns = 0, all_late_ns = 0;
	int err = 0;

	for (size_t i = 0; i < bounds->process_count && !err; i++) {
		const pid_t pid = bounds->process[i].pid;
		const struct budget_payer payer = payer_of(bounds, (uint32_t)pid);
		const uint64_t cpu_ns = process_cpu_ns(pid), late_ns = process_delay_ns(pid);
		uint64_t sum_ns = 0, delay_ns = 0;

		if (cpu_ns > bounds->process[i].cpu_ns)
			sum_ns = cpu_ns - bounds->process[i].cpu_ns;
		if (late_ns > bounds->process[i].delay_ns)
			delay_ns = late_ns - bounds->process[i].delay_ns;
		bounds->process[i].cpu_ns = cpu_ns;
		bounds->process[i].delay_ns = late_ns;
		all_ns += sum_ns;
		all_late_ns += delay_ns;
		err = budget_set_time(bounds->programs, &payer, sum_ns,
				      budget_own_ns(elapsed_ns, delay_ns));
	}
	return err
		       ?: budget_set_time(bounds->programs, &everybody, all_ns,
					  budget_own_ns(elapsed_ns, all_late_ns));
}

/* ---- users ---- */

/* Returns the probes of a process, a bit each. */
static uint64_t rows_of(const struct probe_bounds *bounds, const struct process *process)
{
	uint64_t rows = 0;
	uint32_t last = 0;

	for (size_t i = 0; i < process->mapping_count; i++) {
		const uint32_t file = process->mapping[i].file;

		if (file != last)
			rows |= bounds->users.rows_of(bounds->users.context, file);
		last = file;
	}
	return rows;
}

/* Says whose programs have probed files, of which some process takes too much: they stay on for the
 * others.  first: the row of the budget's first source. */
static void expect_users(struct probe_bounds *bounds, struct budget *budget, uint32_t first,
			 uint32_t count)
{
	struct user_quota seen = {};
	struct process *process = NULL;

	if (!bounds->users.rows_of)
		return;
	while ((process = process_table_next(bounds->users.processes, process))) {
		const uint32_t user = process->exit_ns ? 0 : process_user_kept(process);
		uint64_t rows;

		if (process->exit_ns || user_quota_held(&seen, user) > MAPPINGS_OF_USER ||
		    user_quota_note(&seen, user, process->mapping_count))
			continue;
		rows = rows_of(bounds, process);
		for (uint32_t i = 0; i < count; i++)
			if (rows >> (first + i) & 1)
				(void)budget_expect(budget, user, i);
	}
	user_quota_release(&seen);
}

/* Returns whether nobody was told yet that this user's programs take too much. */
static bool is_new_user(struct probe_bounds *bounds, uint32_t user)
{
	uint32_t told;

	user_quota_refuse(&bounds->thinned, user);
	return user_quota_tell(&bounds->thinned, &told);
}

/* ---- looking ---- */

/* Returns what one hit costs.  A call with both of its ends counts as two hits. */
static uint32_t hit_ns_of(const struct probe_bounds *bounds, uint32_t probe)
{
	const struct probe_worker_prices prices = probe_worker_get_prices(bounds->worker);
	const uint64_t begin_ns = prices.of.hit_ns[bounds->probe[probe].cost];
	const bool has_return = bounds->probe[probe].has_return;
	uint64_t ns = has_return ? (begin_ns + prices.of.return_ns) / 2 : begin_ns;

	/* Ends of allocations are no hits. */
	if (probe == bounds->plan->alloc_row + PROBE_ALLOC_COMMON)
		ns += prices.alloc_end_ns;
	return (uint32_t)ns;
}

/* What was before does not count: nothing was attached yet. */
static void begin_telling(struct probe_bounds *bounds, const struct probe_costs *costs,
			  uint64_t now_ns)
{
	bounds->told_ns = bounds->looked_ns = now_ns;
	for (uint32_t i = 0; i < bounds->plan->count; i++) {
		bounds->probe[i].told_hits = costs->hits[i].hits;
		bounds->probe[i].told_ns = costs->hits[i].ns;
		bounds->probe[i].told_on_ns = costs->on_ns[i];
	}
}

/* Returns whether every program hits the probe all the time. */
static bool is_allocators(const struct probe_bounds *bounds, uint32_t probe)
{
	return bounds->plan->row[probe].place == PROBE_IN_ANY;
}

static int on_payer(void *context, const void *key, const void *value)
{
	struct probe_bounds *bounds = context;
	const struct pp_payer_key *of = key;
	const struct pp_payer *took = value;
	const struct budget_payer payer = payer_of(bounds, of->tgid);
	const struct budget_use use = {.hits = took->hits, .ns = took->ns};

	return of->probe < bounds->plan->count && !is_allocators(bounds, of->probe)
		       ? budget_note(bounds->programs, &payer, of->probe, &use)
		       : 0;
}

static int note_programs(struct probe_bounds *bounds, const struct probe_costs *costs,
			 uint64_t elapsed_ns)
{
	int err = set_programs_time(bounds, elapsed_ns);

	for (uint32_t i = 0; i < bounds->plan->count && !err; i++) {
		const struct budget_source source = {.is_used = bounds->probe[i].is_seen,
						     .stays_on = bounds->probe[i].stays_on,
						     .is_everybodys = is_allocators(bounds, i),
						     .leader = bounds->probe[i].leader,
						     .hit_ns = hit_ns_of(bounds, i)};
		const struct budget_use use = {.hits = (uint32_t)costs->hits[i].hits,
					       .ns = costs->hits[i].ns};

		budget_set(bounds->programs, i, &source);
		if (is_allocators(bounds, i))
			err = budget_note(bounds->programs, &everybody, i, &use);
	}
	return err
		       ?: table_read(probe_worker_side(bounds->worker)->payers,
				     sizeof(struct pp_payer_key), sizeof(struct pp_payer), on_payer,
				     bounds);
}

/* Sets which part of a process's hits is taken, and tells of the process once. */
static void on_gate(void *context, const struct budget_payer *payer, uint32_t source,
		    uint32_t gate_ppm)
{
	struct probe_bounds *bounds = context;
	const struct pp_payer_key key = {.tgid = payer->tgid, .probe = source};
	const uint64_t gate = ((uint64_t)gate_ppm << PP_GATE_SCALE_SHIFT) / BUDGET_FULL;

	(void)probe_side_set_payer_gate(probe_worker_side(bounds->worker), &key,
					gate_ppm < BUDGET_FULL ? (uint32_t)gate : 0);
	if (gate_ppm < BUDGET_FULL && is_new_user(bounds, payer->uid))
		log_warn("process %u (user %d) hits probe %s too often: %.1f %% of its hits are "
			 "taken, and their counts scaled; --max-slowdown allows more",
			 payer->tgid, (int)payer->uid, bounds->plan->row[source].name,
			 gate_ppm / 1e4);
}

/* Their own program takes little: all are counted. */
static void on_launch_gate(void *context, const struct budget_payer *payer, uint32_t source,
			   uint32_t gate_ppm)
{
	struct probe_bounds *bounds = context;

	(void)source;
	if (gate_ppm < BUDGET_FULL && is_new_user(bounds, payer->uid))
		log_warn("probes of launches take more of process %u (user %d) than --max-slowdown "
			 "allows: they stay on, as programs of other users have them",
			 payer->tgid, (int)payer->uid);
}

/* Shares a budget out anew after a tick in which its sources were on for so long.  Returns whether
 * some source has another part now. */
static bool share_out(struct probe_bounds *bounds, struct budget *budget, uint64_t elapsed_ns,
		      const uint64_t on_ns[BUDGET_SOURCES_MAX])
{
	const bool is_programs = budget == bounds->programs;
	bool has_changed;

	if (budget_see(budget, elapsed_ns, on_ns))
		expect_users(bounds, budget, is_programs ? 0 : bounds->plan->cuda_launch_row,
			     is_programs ? bounds->plan->count : PP_CUDA_LAUNCHES);
	has_changed = budget_share(budget);
	budget_each_gate(budget, is_programs ? on_gate : on_launch_gate, bounds);
	return has_changed;
}

static void look_at_programs(struct probe_bounds *bounds, uint64_t now_ns)
{
	const uint64_t elapsed_ns = now_ns - bounds->looked_ns;
	struct probe_costs costs;

	if (bounds->looked_ns && elapsed_ns < (bounds->has_bounded ? LOOK_NS : UNBOUNDED_LOOK_NS))
		return;
	if (probe_worker_get_costs(bounds->worker, &costs))
		return;
	if (!bounds->looked_ns)
		begin_telling(bounds, &costs, now_ns);
	bounds->looked_ns = now_ns;
	if (note_programs(bounds, &costs, elapsed_ns) ||
	    !share_out(bounds, bounds->programs, elapsed_ns, costs.on_ns))
		return;
	for (uint32_t i = 0; i < bounds->plan->count; i++)
		if (!bounds->probe[i].stays_on)
			probe_worker_set_share(bounds->worker, i,
					       budget_now(bounds->programs)->share_ppm[i],
					       hit_ns_of(bounds, i));
}

/* ---- launches of CUDA ---- */

static uint32_t launch_ns_of(const struct probe_bounds *bounds, uint32_t kind)
{
	const struct probe_worker_prices prices = probe_worker_get_prices(bounds->worker);
	const bool is_dear = kind == PP_CUDA_HIT_LAUNCH_DEAR || kind == PP_CUDA_HIT_OTHER_DEAR;

	return (bounds->timed.hits < TIMED_LEAST
			? LAUNCH_NS
			: (uint32_t)(bounds->timed.ns / bounds->timed.hits)) +
	       (uint32_t)prices.of.hit_ns[is_dear ? PROBE_COST_SINGLE_STEP : PROBE_COST_EMULATED];
}

/* The key of cuda_threads[] is pid and tgid, as bpf_get_current_pid_tgid() has them. */
static int on_thread(void *context, const void *key, const void *value)
{
	struct probe_bounds *bounds = context;
	const struct pp_cuda_hits *hits = value;
	const uint32_t tgid = (uint32_t)(*(const uint64_t *)key >> 32);
	const struct budget_payer payer = payer_of(bounds, tgid);
	int err = 0;

	bounds->timed.hits += hits->timed;
	bounds->timed.ns += hits->ns;
	for (uint32_t i = 0; i < PP_CUDA_HITS && !err; i++)
		err = budget_note(bounds->launches, &payer, i,
				  &(struct budget_use){.hits = hits->of[i]});
	return err;
}

/* Those that the kernel steps are given up first; synchronisations, copies and allocations stay. */
static void set_launch(struct probe_bounds *bounds, uint32_t kind)
{
	const struct budget_source source = {.is_used = true,
					     .stays_on = kind >= PP_CUDA_LAUNCHES,
					     .leader = kind,
					     .rank = kind == PP_CUDA_HIT_LAUNCH_DEAR,
					     .hit_ns = launch_ns_of(bounds, kind)};

	budget_set(bounds->launches, kind, &source);
}

/* Says once a process why not all of its launches are seen. */
static void warn(struct probe_bounds *bounds)
{
	const struct budget_now *now = budget_now(bounds->launches);

	if (!now->payer.tgid || now->payer.tgid == bounds->warned_tgid)
		return;
	bounds->warned_tgid = now->payer.tgid;
	log_warn("probes of all launches of process %u (user %d) would take %.1f %% of a CPU: they "
		 "are on for a part of the time, and counts are scaled; --max-slowdown allows more",
		 now->payer.tgid, (int)now->payer.uid, now->need_ppm / 1e4);
}

static void look_at_launches(struct probe_bounds *bounds, uint64_t now_ns)
{
	const struct cuda_side *side = probe_worker_cuda(bounds->worker);
	const uint64_t elapsed_ns = now_ns - bounds->launches_looked_ns;
	uint64_t on_ns[BUDGET_SOURCES_MAX] = {};

	if (!side || elapsed_ns < LOOK_NS)
		return;
	for (uint32_t i = 0; i < PP_CUDA_HITS; i++) {
		const uint32_t row = bounds->plan->cuda_launch_row + i;

		set_launch(bounds, i);
		on_ns[i] = i < PP_CUDA_LAUNCHES ? probe_worker_on_ns(bounds->worker, row, now_ns)
						: now_ns;
		if (i < PP_CUDA_LAUNCHES && !bounds->launches_looked_ns)
			bounds->probe[row].told_on_ns = on_ns[i];
	}
	if (!bounds->launches_looked_ns)
		bounds->launches_told_ns = now_ns;
	bounds->launches_looked_ns = now_ns;
	bounds->timed.hits = bounds->timed.ns = 0;
	if (table_read(side->threads, sizeof(uint64_t), side->thread_bytes, on_thread, bounds) ||
	    !share_out(bounds, bounds->launches, elapsed_ns, on_ns))
		return;
	warn(bounds);
	for (uint32_t i = 0; i < PP_CUDA_LAUNCHES; i++)
		probe_worker_set_share(bounds->worker, bounds->plan->cuda_launch_row + i,
				       budget_now(bounds->launches)->share_ppm[i],
				       launch_ns_of(bounds, i));
}

void probe_bounds_look(struct probe_bounds *bounds, uint64_t now_ns)
{
	look_at_programs(bounds, now_ns);
	if (bounds->launches)
		look_at_launches(bounds, now_ns);
}

/* ---- telling ---- */

/* "probe=malloc hits=120000 ns_per_hit=640 on=0.230": the latter where sums are scaled.  whole: how
 * it is told that they are not. */
static int describe(struct probe_bounds *bounds, uint32_t row, uint64_t hits, uint64_t hit_ns,
		    double on, const char *whole, struct profiles *profiles)
{
	char text[COMMENT_BYTES], scaled[32] = "";

	if (on < SCALED_BELOW)
		snprintf(scaled, sizeof(scaled), " on=%.3f", on);
	snprintf(text, sizeof(text), "probe=%s hits=%" PRIu64 " ns_per_hit=%" PRIu64 "%s",
		 bounds->plan->row[row].name, hits, hit_ns, on < SCALED_BELOW ? scaled : whole);
	return profiles_add_comment(profiles, text);
}

static int describe_programs(struct probe_bounds *bounds, struct profiles *profiles,
			     uint64_t now_ns)
{
	const double elapsed_ns = (double)(now_ns - bounds->told_ns);
	struct probe_costs costs;
	int err = 0;

	if (!bounds->told_ns || probe_worker_get_costs(bounds->worker, &costs))
		return 0;
	for (uint32_t i = 0; i < bounds->plan->count && !err; i++) {
		const uint64_t hits = costs.hits[i].hits - bounds->probe[i].told_hits;
		const uint64_t ns = costs.hits[i].ns - bounds->probe[i].told_ns;
		const uint64_t on_ns = costs.on_ns[i] - bounds->probe[i].told_on_ns;

		if (!bounds->probe[i].is_seen)
			continue;
		bounds->probe[i].told_hits += hits;
		bounds->probe[i].told_ns += ns;
		bounds->probe[i].told_on_ns += on_ns;
		err = describe(bounds, i, hits, hit_ns_of(bounds, i) + (hits ? ns / hits : 0),
			       bounds->probe[i].stays_on ? 1 : (double)on_ns / elapsed_ns, "",
			       profiles);
	}
	bounds->told_ns = now_ns;
	return err;
}

static int describe_launches(struct probe_bounds *bounds, struct profiles *profiles,
			     uint64_t now_ns)
{
	const double elapsed_ns = (double)(now_ns - bounds->launches_told_ns);
	int err = 0;

	if (!bounds->launches_told_ns)
		return 0;
	for (uint32_t i = 0; i < PP_CUDA_LAUNCHES && !err; i++) {
		const uint32_t row = bounds->plan->cuda_launch_row + i;
		const uint64_t hits =
			budget_now(bounds->launches)->hits[i] - bounds->probe[row].told_hits;
		const uint64_t on_ns = probe_worker_on_ns(bounds->worker, row, now_ns) -
				       bounds->probe[row].told_on_ns;

		bounds->probe[row].told_hits += hits;
		bounds->probe[row].told_on_ns += on_ns;
		if (hits)
			err = describe(bounds, row, hits, launch_ns_of(bounds, i),
				       (double)on_ns / elapsed_ns, " counts=exact", profiles);
	}
	bounds->launches_told_ns = now_ns;
	return err;
}

/* Adds a comment for each probe, and for each kind of launches that had hits. */
int probe_bounds_describe(struct probe_bounds *bounds, struct profiles *profiles, uint64_t now_ns)
{
	const int err = describe_programs(bounds, profiles, now_ns);

	return err || !bounds->launches ? err : describe_launches(bounds, profiles, now_ns);
}
