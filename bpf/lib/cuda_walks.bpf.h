/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Which calls have their stacks taken, and for how many others each stands
 * (include/pyprofd/cuda.h).  Several threads may change what is kept of a row at the same time: a
 * walk stands for some calls more or less then.  The agent divides exact totals: sums stay
 * right. */
#ifndef BPF_LIB_CUDA_WALKS_H
#define BPF_LIB_CUDA_WALKS_H

#include "lib/cuda_processes.bpf.h"

#define CUDA_GAP_MAX (1U << 20)

/* Takes a walk that costs cost_ns of the time that *until_ns is ahead.  Returns whether there was
 * one: of what is saved, others than first walks leave the half. */
static __always_inline bool walk_take(__u64 *until_ns, __u64 now_ns, __u64 cost_ns, bool is_first)
{
	__u64 until = *(volatile __u64 *)until_ns;

	if (until < now_ns)
		until = now_ns;
	if (until - now_ns > (is_first ? PP_CUDA_SAVED_NS : PP_CUDA_SAVED_NS / 2))
		return false;
	*(volatile __u64 *)until_ns = until + cost_ns;
	return true;
}

/* Takes a walk for a process of the machine.  Returns whether there was one. */
static __always_inline bool cuda_budget_take(const struct pp_process_id *id, __u64 now_ns,
					     bool is_first)
{
	struct cuda_machine *machine = cuda_machine_get();
	struct cuda_process *process = cuda_process_of(id->tgid, id->generation);
	struct pp_user_share *share = process ? share_of(process->user) : NULL;

	return machine && process &&
	       walk_take(&process->walks_until_ns, now_ns, PP_CUDA_PROCESS_NS, is_first) &&
	       (!share ||
		walk_take(&share->cuda_walks_until_ns, now_ns, PP_CUDA_USER_NS, is_first)) &&
	       walk_take(&machine->walks_until_ns, now_ns, PP_CUDA_MACHINE_NS, is_first);
}

/* Says when the next walk is due.  At random, so that no loop of a program keeps time with it. */
static __always_inline void set_next(struct pp_cuda_totals *totals, __u64 calls)
{
	__u32 span = 2 * totals->gap;

	totals->next = calls + 1 + (span > 1 ? bpf_get_prandom_u32() % span : 0);
}

static __always_inline void gap_adjust(struct pp_cuda_totals *totals, bool is_early)
{
	__u32 gap = totals->gap;

	gap = is_early ? gap * 2 : gap / 2;
	totals->gap = gap < 1 ? 1 : gap > CUDA_GAP_MAX ? CUDA_GAP_MAX : gap;
}

/* Of what was called before the window no walk of it tells. */
static __always_inline void walk_window(struct pp_cuda_totals *totals, const struct pp_config *cfg,
					__u64 calls)
{
	if (totals->window == cfg->window)
		return;
	totals->window = cfg->window;
	totals->first = 0;
	totals->walked = calls - 1;
}

/* Returns for how many calls a walk stands that is taken now. */
static __always_inline int walk_stands_for(struct pp_cuda_totals *totals, __u64 calls, __u64 now_ns)
{
	__u64 since = calls - totals->walked;

	since = since < 1 ? 1 : since >> 30 ? 1 << 30 : since;
	totals->walked = calls;
	totals->walked_ns = now_ns;
	totals->squares += since * since;
	return (int)since;
}

/* Says for how many calls of a row the current one is to have its stack taken; 0: it is not.  For
 * what cuda_walk_due() lets through.  Not inlined: a walk leaves none of the stack to spare. */
__noinline int cuda_walk_now(__u64 id)
{
	struct pp_cuda_totals *totals = bpf_map_lookup_elem(&cuda_totals, &id);
	struct pp_config *cfg = config_get();
	__u64 now_ns = bpf_ktime_get_ns(), calls;
	bool is_first;

	if (!totals || !cfg)
		return 0;
	calls = *(volatile __u64 *)&totals->calls;
	walk_window(totals, cfg, calls);
	is_first = totals->first < PP_CUDA_FIRST_WALKS;
	if (!cuda_budget_take(&totals->what.id, now_ns, is_first)) {
		gap_adjust(totals, true);
		set_next(totals, calls);
		return 0;
	}
	if (is_first)
		totals->first++;
	else
		gap_adjust(totals, now_ns - totals->walked_ns < PP_CUDA_ROW_NS);
	if (totals->first < PP_CUDA_FIRST_WALKS)
		totals->next = 0;
	else
		set_next(totals, calls);
	return walk_stands_for(totals, calls, now_ns);
}

/* Returns for how many calls the current one's stack would stand; 0: it is not taken. */
static __always_inline __u32 cuda_walk_due(const struct pp_cuda_totals *totals,
					   const struct pp_config *cfg, __u64 id)
{
	if (*(volatile const __u32 *)&totals->window == *(volatile const __u32 *)&cfg->window &&
	    *(volatile const __u64 *)&totals->calls < *(volatile const __u64 *)&totals->next)
		return 0;
	return cuda_walk_now(id);
}

#endif
