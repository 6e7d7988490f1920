/* SPDX-License-Identifier: BSD-2-Clause */
#include "probes/cuda_budget.h"

#include <errno.h>
#include <stdlib.h>

#include "drain/hash_set.h"
#include "probes/probe_governor.h"

#define PPM 1000000.0
/* From one period to the next a share grows by no more than this, and what was needed counts for
 * less: launches come in bursts. */
#define GROWTH 2U
#define FADES 0.8
/* What synchronisations and copies leave to launches at least, of the budget. */
#define LEAST 0.1
#define NEED_MAX 4000 /* CPUs, in 32 bits of ppm */

struct process {
	uint64_t tgid; /* first: hash_set.h */
	struct pp_cuda_hits now, before;
	bool is_seen, is_old; /* in this period; in an earlier one */
	/* Launches that were hit since they were on last: a link is taken off later than its hits
	 * count. */
	uint64_t hits[PP_CUDA_LAUNCHES];
	/* Of a CPU, of launches if they stayed on. */
	double need[PP_CUDA_LAUNCHES];
};

struct cuda_budget {
	uint32_t budget_ppm;
	struct hash_set set;
	struct cuda_budget_now now;
};

int cuda_budget_new(uint32_t budget_ppm, struct cuda_budget **ret_budget)
{
	OWNED(cuda_budget) struct cuda_budget *budget = calloc(1, sizeof(*budget));

	if (!budget)
		return -ENOMEM;
	hash_set_init(&budget->set);
	budget->budget_ppm = budget_ppm;
	for (uint32_t i = 0; i < PP_CUDA_LAUNCHES; i++)
		budget->now.share_ppm[i] = PROBE_SHARE_FULL;
	*ret_budget = TAKE(budget);
	return 0;
}

void cuda_budget_free(struct cuda_budget *budget)
{
	if (!budget)
		return;
	hash_set_release(&budget->set);
	free(budget);
}

int cuda_budget_note(struct cuda_budget *budget, uint32_t tgid, const struct pp_cuda_hits *hits)
{
	struct process *process = hash_set_get(&budget->set, tgid, sizeof(*process));

	if (!process)
		return -ENOMEM;
	process->is_seen = true;
	for (uint32_t i = 0; i < PP_CUDA_HITS; i++)
		process->now.of[i] += hits->of[i];
	return 0;
}

/* ---- a period ---- */

/* Returns the hits of a kind in this period.  Threads end, and the kernel side forgets the oldest
 * of very many: sums that went down say nothing. */
static uint32_t fresh(const struct process *process, uint32_t kind)
{
	const int32_t more = (int32_t)(process->now.of[kind] - process->before.of[kind]);

	return process->is_old && more > 0 ? (uint32_t)more : 0;
}

/* Returns what hits that stay on have taken of a CPU. */
static double fixed_of(const struct process *process, const struct cuda_budget_period *period)
{
	double ns = 0;

	for (uint32_t i = PP_CUDA_LAUNCHES; i < PP_CUDA_HITS; i++)
		ns += (double)fresh(process, i) * period->hit_ns[i];
	return ns / (double)period->elapsed_ns;
}

static void set_needs(struct process *process, const struct cuda_budget_period *period)
{
	for (uint32_t i = 0; i < PP_CUDA_LAUNCHES; i++) {
		double need;

		process->hits[i] += fresh(process, i);
		if (!period->on_ns[i])
			continue;
		need = (double)process->hits[i] * period->hit_ns[i] / (double)period->on_ns[i];
		process->hits[i] = 0;
		process->need[i] *= FADES;
		if (need > process->need[i])
			process->need[i] = need;
	}
}

/* Takes the room for a need.  Returns the share of it that there is. */
static double take(double *room, double need)
{
	const double had = *room;

	*room = need < had ? had - need : 0;
	return need <= had ? 1 : had / need;
}

/* Lowers shares to what a process may have. */
static void bound_by(struct cuda_budget *budget, const struct process *process, double fixed,
		     double share[PP_CUDA_LAUNCHES], double *least)
{
	const double bound = budget->budget_ppm / PPM;
	double room = bound - fixed > bound * LEAST ? bound - fixed : bound * LEAST, need = fixed;

	for (uint32_t i = 0; i < PP_CUDA_LAUNCHES; i++) {
		const double own = take(&room, process->need[i]);

		need += process->need[i];
		if (own < share[i])
			share[i] = own;
		if (own < *least) {
			*least = own;
			budget->now.tgid = (uint32_t)process->tgid;
		}
	}
	if (budget->now.tgid == process->tgid)
		budget->now.need_ppm = need < NEED_MAX ? (uint32_t)(need * PPM) : UINT32_MAX;
}

static bool set_share(uint32_t *share_ppm, double share)
{
	const uint32_t before = *share_ppm;
	uint32_t now = (uint32_t)(share * PPM);

	if (now > before * GROWTH)
		now = before * GROWTH;
	if (now < PROBE_SHARE_MIN)
		now = PROBE_SHARE_MIN;
	*share_ppm = now < PROBE_SHARE_FULL ? now : PROBE_SHARE_FULL;
	return *share_ppm != before;
}

static bool is_seen(const void *context, const void *entry)
{
	const struct process *process = entry;

	(void)context;
	return process->is_seen;
}

static void begin_period(struct process *process)
{
	process->before = process->now;
	process->now = (struct pp_cuda_hits){};
	process->is_old = true;
	process->is_seen = false;
}

bool cuda_budget_look(struct cuda_budget *budget, const struct cuda_budget_period *period)
{
	double share[PP_CUDA_LAUNCHES] = {1, 1}, least = 1;
	bool has_changed = false;

	if (!period->elapsed_ns)
		return false;
	hash_set_filter(&budget->set, is_seen, NULL);
	budget->now.tgid = budget->now.need_ppm = 0;
	for (size_t i = 0; i < budget->set.count; i++) {
		struct process *process = budget->set.entry[i];

		for (uint32_t kind = 0; kind < PP_CUDA_LAUNCHES; kind++)
			budget->now.hits[kind] += fresh(process, kind);
		set_needs(process, period);
		bound_by(budget, process, fixed_of(process, period), share, &least);
		begin_period(process);
	}
	for (uint32_t i = 0; i < PP_CUDA_LAUNCHES; i++)
		has_changed |= set_share(&budget->now.share_ppm[i], share[i]);
	return has_changed;
}

void cuda_budget_get_now(const struct cuda_budget *budget, struct cuda_budget_now *ret_now)
{
	*ret_now = budget->now;
}
