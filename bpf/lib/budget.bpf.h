/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What walks may cost: 1.5 % of a CPU at context switches, 20 % for samples.  Beyond it only one wait or
 * sample in 2^shift is walked, chosen by chance before its length or cost is known, and stands for the
 * others: sums of many stay true (docs/offcpu.md). */
#ifndef BPF_LIB_BUDGET_H
#define BPF_LIB_BUDGET_H

#include "lib/maps.bpf.h"

#define BUDGET_PERIOD_NS 10000000LL
/* What comes in each period, and is saved at most: a second's worth of switches, which come in bursts. */
#define BUDGET_SWITCHES_NS 150000LL
#define BUDGET_SWITCHES_CREDIT_NS 15000000LL
#define BUDGET_SAMPLES_NS 2000000LL
#define BUDGET_SAMPLES_CREDIT_NS 20000000LL
#define BUDGET_MAX_SHIFT 14U

/* Halves the share while more is spent than comes in and nothing is left; doubles it while half of the
 * credit is there.  A debt alone is paid back at the share that pays it: few waits that stand for very
 * many each would tell nothing. */
static __always_inline void budget_adjust(struct budget *budget, __u64 now_ns, __s64 period_ns,
					  __s64 max_credit_ns)
{
	__u64 periods = (now_ns - budget->started_ns) / BUDGET_PERIOD_NS;
	bool is_over;

	if (periods > (__u64)max_credit_ns / period_ns)
		periods = (__u64)max_credit_ns / period_ns;
	is_over = budget->spent_ns > periods * period_ns;
	budget->credit_ns += (__s64)periods * period_ns;
	if (budget->credit_ns > max_credit_ns)
		budget->credit_ns = max_credit_ns;
	if (budget->credit_ns < 0 && is_over && budget->shift < BUDGET_MAX_SHIFT)
		budget->shift++;
	else if (budget->credit_ns > max_credit_ns / 2 && budget->shift)
		budget->shift--;
	/* A debt is no reason to look away for long. */
	if (budget->credit_ns < -max_credit_ns)
		budget->credit_ns = -max_credit_ns;
	budget->spent_ns = 0;
	budget->started_ns = now_ns;
}

/* Of the constants above. */
static __always_inline void budget_tick(struct budget *budget, __u64 now_ns, __s64 period_ns,
					__s64 max_credit_ns)
{
	if (now_ns - budget->started_ns >= BUDGET_PERIOD_NS)
		budget_adjust(budget, now_ns, period_ns, max_credit_ns);
}

static __always_inline void budget_tick_of_switches(struct budget *budget, __u64 now_ns)
{
	budget_tick(budget, now_ns, BUDGET_SWITCHES_NS, BUDGET_SWITCHES_CREDIT_NS);
}

static __always_inline void budget_tick_of_samples(struct budget *budget, __u64 now_ns)
{
	budget_tick(budget, now_ns, BUDGET_SAMPLES_NS, BUDGET_SAMPLES_CREDIT_NS);
}

static __always_inline void budget_spend(struct budget *budget, __u64 ns)
{
	budget->credit_ns -= ns;
	budget->spent_ns += ns;
}

/* Whether this wait or sample is to be walked; *ret_shift: it stands for 1 << as many. */
static __always_inline bool budget_takes(const struct budget *budget, __u32 *ret_shift)
{
	*ret_shift = budget->shift;
	return !(bpf_get_prandom_u32() & ((1U << (budget->shift & 15)) - 1));
}

#endif
