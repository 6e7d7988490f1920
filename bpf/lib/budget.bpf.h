/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Bounds what walks may cost on a CPU: config.switch_budget_ns a period at switches and wake-ups,
 * config.sample_budget_ns for samples.  Beyond that, one wait or sample in 2^shift is walked.  It
 * is drawn before its length or cost is known and gets the weight 2^shift, so sums of many stay
 * unbiased (docs/offcpu.md). */
#ifndef BPF_LIB_BUDGET_H
#define BPF_LIB_BUDGET_H

#include "lib/maps.bpf.h"

#define BUDGET_MAX_SHIFT 14U
#define BUDGET_MAX_PERIODS 4096U /* that are made up for: all of the credit */

/* Halves the share of walked events while spending exceeds income and no credit is left, and
 * doubles it while half of the credit is there.  A debt alone does not lower the share: a few waits
 * with a huge weight each would say nothing. */
static __always_inline void budget_adjust(struct budget *budget, __u64 now_ns, __u32 period_ns)
{
	__u64 periods = (now_ns - budget->started_ns) / PP_BUDGET_PERIOD_NS, income_ns;
	bool is_over;

	if (periods > BUDGET_MAX_PERIODS)
		periods = BUDGET_MAX_PERIODS;
	income_ns = periods * period_ns;
	is_over = budget->spent_ns > income_ns;
	budget->credit_ns += (__s64)income_ns;
	if (budget->credit_ns > (__s64)PP_BUDGET_CREDIT_NS)
		budget->credit_ns = PP_BUDGET_CREDIT_NS;
	if (budget->credit_ns < 0 && is_over && budget->shift < BUDGET_MAX_SHIFT)
		budget->shift++;
	else if (budget->credit_ns > (__s64)PP_BUDGET_CREDIT_NS / 2)
		budget->shift = periods < budget->shift ? budget->shift - (__u32)periods : 0;
	/* Limits the debt: no event may stay unwalked for long because of an old overdraft. */
	if (budget->credit_ns < -(__s64)PP_BUDGET_CREDIT_NS)
		budget->credit_ns = -(__s64)PP_BUDGET_CREDIT_NS;
	budget->spent_ns = 0;
	budget->started_ns = now_ns;
}

static __always_inline void budget_tick_of_switches(struct budget *budget, __u64 now_ns)
{
	const struct pp_config *cfg = config_get();

	if (cfg && now_ns - budget->started_ns >= PP_BUDGET_PERIOD_NS)
		budget_adjust(budget, now_ns, cfg->switch_budget_ns);
}

static __always_inline void budget_tick_of_samples(struct budget *budget, __u64 now_ns)
{
	const struct pp_config *cfg = config_get();

	if (cfg && now_ns - budget->started_ns >= PP_BUDGET_PERIOD_NS)
		budget_adjust(budget, now_ns, cfg->sample_budget_ns);
}

/* Time far beyond the walk's deadline was taken by a hypervisor. */
#define BUDGET_SPEND_MAX_NS (2ULL * PP_SAMPLE_WALK_NS)

static __always_inline void budget_spend(struct budget *budget, __u64 ns)
{
	if (ns > BUDGET_SPEND_MAX_NS)
		ns = BUDGET_SPEND_MAX_NS;
	budget->credit_ns -= ns;
	budget->spent_ns += ns;
}

/* Returns whether this wait or sample is walked.  *ret_shift: its weight is 1 << *ret_shift. */
static __always_inline bool budget_takes(const struct budget *budget, __u32 *ret_shift)
{
	*ret_shift = budget->shift;
	return !budget->shift || !(bpf_get_prandom_u32() & ((1U << (budget->shift & 15)) - 1));
}

#endif
