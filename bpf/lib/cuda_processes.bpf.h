/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the processes that call CUDA and their users may take of the tables.  A program can call a
 * libcuda of its own a million times a second, from ever new processes: each table has a bound that
 * it reaches before others lose their rows (docs/design/shares.md). */
#ifndef BPF_LIB_CUDA_PROCESSES_H
#define BPF_LIB_CUDA_PROCESSES_H

#include "lib/cuda_maps.bpf.h"
#include "lib/news.bpf.h"

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

#endif
