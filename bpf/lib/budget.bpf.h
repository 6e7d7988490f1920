/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Measures how long the programs took, and bounds what walks may cost on a CPU:
 * config.switch_budget_ns a period at switches and wake-ups, config.sample_budget_ns for samples.
 * Beyond that, one wait or sample in 2^shift is walked.  It is drawn before its length or cost is
 * known and gets the weight 2^shift, so sums of many stay unbiased (docs/offcpu.md). */
#ifndef BPF_LIB_BUDGET_H
#define BPF_LIB_BUDGET_H

#include "lib/frames.bpf.h"

/* ---- times ---- */

/* The bucket is computed without a loop or a search. */
static __always_inline __u32 time_bucket(__u64 ns)
{
	__u64 octaves = ns >> PP_TIME_SHIFT;
	__u32 octave = 0;

	if (!octaves)
		return 0;
	if (octaves >> PP_TIME_OCTAVES)
		return PP_TIME_BUCKETS - 1;
	if (octaves >> 16) {
		octave += 16;
		octaves >>= 16;
	}
	if (octaves >> 8) {
		octave += 8;
		octaves >>= 8;
	}
	if (octaves >> 4) {
		octave += 4;
		octaves >>= 4;
	}
	if (octaves >> 2) {
		octave += 2;
		octaves >>= 2;
	}
	octave += octaves >> 1;
	return octave * PP_TIME_PARTS + (ns >> (octave + PP_TIME_SHIFT - 3) & (PP_TIME_PARTS - 1));
}

/* Counts a program's time.  A program may interrupt itself (NMI): then one of the two may not be
 * counted. */
static __always_inline void times_add(enum pp_program program, __u64 ns)
{
	__u32 key = program;
	__u64 bucket = time_bucket(ns);
	struct pp_times *of = bpf_map_lookup_elem(&times, &key);

	BARRIER(bucket); /* 5.10 does not follow the 32 bits that it was made of */
	if (of && bucket < PP_TIME_BUCKETS)
		of->count[bucket]++;
}

/* ---- budgets ---- */

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
