/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Which calls have their stacks taken, and for how many others each stands
 * (include/pyprofd/cuda.h).  Several threads may change what is kept of a row at the same time: a
 * walk stands for some calls more or less then.  The agent divides exact totals: sums stay
 * right. */
#ifndef BPF_LIB_CUDA_WALKS_H
#define BPF_LIB_CUDA_WALKS_H

#include "lib/cuda_maps.bpf.h"
#include "lib/news.bpf.h"

/* What the processes that call CUDA and their users may take of the tables.  A program can call a
 * libcuda of its own a million times a second, from ever new processes: each table has a bound that
 * it reaches before others lose their rows (docs/design/shares.md). */

static __always_inline struct cuda_machine *cuda_machine_get(void)
{
	__u32 zero = 0;

	return bpf_map_lookup_elem(&cuda_machine, &zero);
}

/* ---- what is new ---- */

/* Takes room in a table from which the oldest goes: so fast can one user not push out what others
 * use.  Returns 0; 1: the user of the current thread has had too much that was new lately. */
__noinline int cuda_news_take(void)
{
	const struct pp_config *cfg = config_get();
	const __u32 user = user_of_current();

	if (cfg && !news_are_refused(user, cfg->token_round)) {
		news_add(user);
		return 0;
	}
	count_loss(PP_LOSS_PROBE_SHARE);
	return 1;
}

/* Takes room for a call that is to be followed to its end.  Returns whether there was some. */
static __always_inline bool cuda_open_take(__u32 user)
{
	struct pp_user_share *share = share_of(user);

	if (!share)
		return true;
	if (share->calls >= PP_PROBE_CALLS_USER) {
		count_loss(PP_LOSS_PROBE_SHARE);
		return false;
	}
	__sync_fetch_and_add(&share->calls, 1);
	return true;
}

static __always_inline void cuda_open_give(__u32 user)
{
	struct pp_user_share *share = share_of(user);

	if (share)
		__sync_fetch_and_add(&share->calls, -1);
}

/* ---- calls under way ---- */

/* sp in all: the current thread's stack pointer at the first instruction of the function. */

static __always_inline struct cuda_call *cuda_call_at(__u64 sp)
{
	const struct cuda_call_key key = {.thread = bpf_get_current_pid_tgid(), .sp = sp};

	return bpf_map_lookup_elem(&cuda_calls, &key);
}

/* Returns 0; 1: it cannot be followed to its end, which is counted. */
static __always_inline int cuda_call_put(__u64 sp, const struct cuda_call *call)
{
	const struct cuda_call_key key = {.thread = bpf_get_current_pid_tgid(), .sp = sp};

	if (!bpf_map_update_elem(&cuda_calls, &key, call, BPF_ANY))
		return 0;
	count_loss(PP_LOSS_PROBE_CALLS_FULL);
	return 1;
}

static __always_inline void cuda_call_drop(__u64 sp)
{
	const struct cuda_call_key key = {.thread = bpf_get_current_pid_tgid(), .sp = sp};

	bpf_map_delete_elem(&cuda_calls, &key);
}

/* ---- processes ---- */

static __always_inline bool cuda_processes_are_refused(__u32 user, __u32 round)
{
	struct pp_user_share *share = share_of(user);

	if (!share)
		return false;
	if (share->cuda_round != round) {
		share->cuda_round = round;
		share->cuda_processes = 0;
	}
	if (share->cuda_processes >= PP_CUDA_PROCESSES_NEW)
		return true;
	__sync_fetch_and_add(&share->cuda_processes, 1);
	return false;
}

/* Notes the current thread's process, or the program that it runs now.  Returns 0; 1: it has no
 * room. */
__noinline int cuda_process_add(__u32 generation)
{
	const struct pp_config *cfg = config_get();
	struct cuda_process fresh = {.generation = generation, .user = user_of_current()};
	__u32 tgid = bpf_get_current_pid_tgid() >> 32;

	if (!cfg || cuda_processes_are_refused(fresh.user, cfg->token_round)) {
		count_loss(PP_LOSS_PROBE_SHARE);
		return 1;
	}
	return bpf_map_update_elem(&cuda_processes, &tgid, &fresh, BPF_ANY) ? 1 : 0;
}

/* Returns the current thread's process; NULL: it has no room. */
static __always_inline struct cuda_process *cuda_process_of(__u32 tgid, __u32 generation)
{
	struct cuda_process *process = bpf_map_lookup_elem(&cuda_processes, &tgid);

	if (likely(process && process->generation == generation))
		return process;
	if (cuda_process_add(generation))
		return NULL;
	return bpf_map_lookup_elem(&cuda_processes, &tgid);
}

/* ---- rows of totals ---- */

/* How many rows a process has; some of those that it had made may be removed again. */
static __always_inline __u64 cuda_rows_of(const struct pp_process_id *id,
					  const struct cuda_process *process)
{
	const __u64 *removed = bpf_map_lookup_elem(&cuda_removed, id);
	const __u64 made = *(const volatile __u64 *)&process->totals;

	return made - (removed && *removed < made ? *removed : 0);
}

/* Returns whether a process may have one row more: it, and its user, as many as are left for all
 * others.  Those of [other kernels] are few for each process, and count as the user's alone. */
__noinline int cuda_may_add(__u32 tgid, __u32 generation, __u32 is_of_others)
{
	const struct pp_process_id id = {.tgid = tgid, .generation = generation};
	const __u64 room = PP_CUDA_TOTALS_MAX - (is_of_others ? 0 : PP_CUDA_TOTALS_KEPT);
	const struct cuda_process *process = cuda_process_of(tgid, generation);
	const struct pp_user_share *share;
	__u32 zero = 0;
	const __u64 *made;
	__u64 count;

	made = bpf_map_lookup_elem(&cuda_rows, &zero);
	if (!made || !process)
		return false;
	count = *(const volatile __u64 *)made;
	if (count >= room)
		return false;
	share = share_of(process->user);
	if (share && *(const volatile __u32 *)&share->cuda_rows >= room - count)
		return false;
	return is_of_others || cuda_rows_of(&id, process) < room - count;
}

/* Notes a row that was made for the current thread's process. */
__noinline int cuda_row_made(__u32 tgid, __u32 is_of_others)
{
	struct cuda_process *process = bpf_map_lookup_elem(&cuda_processes, &tgid);
	struct pp_user_share *share = process ? share_of(process->user) : NULL;
	__u32 zero = 0;
	__u64 *made = bpf_map_lookup_elem(&cuda_rows, &zero);

	if (made)
		__sync_fetch_and_add(made, 1);
	if (process && !is_of_others)
		__sync_fetch_and_add(&process->totals, 1);
	if (share)
		__sync_fetch_and_add(&share->cuda_rows, 1);
	return 0;
}

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
