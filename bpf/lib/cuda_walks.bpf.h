/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Which calls have their stacks taken, and for how many others each stands
 * (include/pyprofd/cuda.h).  The agent divides exact totals: sums stay right. */
#ifndef BPF_LIB_CUDA_WALKS_H
#define BPF_LIB_CUDA_WALKS_H

#include "lib/cuda_maps.bpf.h"
#include "lib/frames.bpf.h"
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
__noinline int cuda_news_take(__u32 user)
{
	const struct pp_config *cfg = config_get();

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

/* ---- which calls have their stacks taken ----
 * The calls of a row are cut into blocks of `gap`, and of each block one call is walked, at random,
 * so that no loop of a program keeps time with it: it stands for the block.  As long as there is
 * enough of what is saved, blocks have one call.  The less there is, the fewer walks a row may have
 * in a time, whatever it is called: rows with few calls keep all of theirs, and those with many
 * share the rest.  Several threads may change what is kept of a row at the same time; of blocks of
 * one call each still stands for itself. */

#define CUDA_GAP_MAX (1U << 20)
/* After so long, or so many walks, a row's gap is set anew, to twice or half of it at most: what
 * comes in bursts is called less often than it seems in one. */
#define CUDA_PACE_NS (1ULL << 27)
#define CUDA_PACE_WALKS 64U
/* A row has all of its walks as long as more than a half is left of what can be saved.  Below it
 * may have 16 times its process' income by the square of that part: one row is in balance at a
 * quarter, 16 are at a sixteenth. */
#define CUDA_PARTS_SHIFT 8
#define CUDA_ROW_SHIFT 4

/* Returns how much is left of what is saved; *until_ns: how far ahead the walks so far reach. */
static __always_inline __u64 walks_saved(const __u64 *until_ns, __u64 now_ns)
{
	const __u64 until = *(const volatile __u64 *)until_ns;

	if (until <= now_ns)
		return PP_CUDA_SAVED_NS;
	return until - now_ns < PP_CUDA_SAVED_NS ? PP_CUDA_SAVED_NS - (until - now_ns) : 0;
}

static __always_inline void walk_charge(__u64 *until_ns, __u64 now_ns, __u64 cost_ns)
{
	const __u64 until = *(volatile __u64 *)until_ns;

	*(volatile __u64 *)until_ns = (until < now_ns ? now_ns : until) + cost_ns;
}

/* Takes a walk for a process, its user (NULL: root) and the machine.  Returns what was left of the
 * one that has least; 0: there is none. */
static __always_inline __u64 walk_take(const struct pp_config *cfg, __u64 *process, __u64 *user,
				       __u64 *machine)
{
	const __u32 shift = cfg->cuda_walk_shift & 7;
	const __u64 now_ns = bpf_ktime_get_ns();
	const __u64 of_machine = walks_saved(machine, now_ns);
	__u64 left = walks_saved(process, now_ns), of_user;

	BARRIER(user); /* else it is added to before it is looked at */
	of_user = user ? walks_saved(user, now_ns) : PP_CUDA_SAVED_NS;
	left = of_user < left ? of_user : left;
	left = of_machine < left ? of_machine : left;
	if (!left)
		return 0;
	walk_charge(process, now_ns, PP_CUDA_PROCESS_NS << shift);
	if (user)
		walk_charge(user, now_ns, PP_CUDA_USER_NS << shift);
	walk_charge(machine, now_ns, PP_CUDA_MACHINE_NS << shift);
	return left;
}

static __always_inline __u64 cuda_budget_take(const struct pp_config *cfg,
					      const struct pp_process_id *id)
{
	struct cuda_machine *machine = cuda_machine_get();
	struct cuda_process *process = cuda_process_of(id->tgid, id->generation);
	struct pp_user_share *share = process ? share_of(process->user) : NULL;

	if (!machine || !process)
		return 0;
	return walk_take(cfg, &process->walks_until_ns, share ? &share->cuda_walks_until_ns : NULL,
			 &machine->walks_until_ns);
}

/* Sets how many calls a block has from now on, so that the row has as many walks as it may by what
 * is left. */
static __always_inline void gap_adjust(struct pp_cuda_totals *totals, const struct pp_config *cfg,
				       __u64 left)
{
	const __u64 parts = left / (PP_CUDA_SAVED_NS >> CUDA_PARTS_SHIFT);
	const __u64 now_ns = bpf_ktime_get_ns(), ns = now_ns - totals->paced_ns;
	__u64 may, gap;

	totals->walks++;
	if (ns < CUDA_PACE_NS && totals->walks < CUDA_PACE_WALKS)
		return;
	may = ns / (PP_CUDA_PROCESS_NS << (cfg->cuda_walk_shift & 7)) * parts * parts >>
	      (2 * CUDA_PARTS_SHIFT - CUDA_ROW_SHIFT);
	gap = totals->gap * (__u64)totals->walks / (may | 1);
	if (gap > totals->gap * 2ULL)
		gap = totals->gap * 2ULL;
	if (gap < totals->gap / 2)
		gap = totals->gap / 2;
	if (gap < 1 || parts >> (CUDA_PARTS_SHIFT - 1))
		gap = 1;
	totals->gap = gap > CUDA_GAP_MAX ? CUDA_GAP_MAX : gap;
	totals->walks = 0;
	totals->paced_ns = now_ns;
}

/* Begins a block behind so many calls. */
static __always_inline void block_begin(struct pp_cuda_totals *totals, __u64 calls)
{
	const __u32 gap = totals->gap;
	const __u32 before = gap > 1 ? bpf_get_prandom_u32() % gap : 0;

	totals->next = gap > 1 ? calls + 1 + before : 0;
	totals->behind = gap > 1 ? gap - 1 - before : 0;
}

/* A window begins with a call that is walked, and stands for itself: of what was called before, no
 * walk of it tells.  Returns whether it does. */
static __always_inline bool walk_window(struct pp_cuda_totals *totals, const struct pp_config *cfg)
{
	if (totals->window == cfg->window)
		return false;
	totals->window = cfg->window;
	totals->next = totals->behind = totals->owed = 0;
	return true;
}

/* Returns for how many calls a walk stands that is taken now: for those, and for others that had
 * none. */
static __always_inline int walk_stands_for(struct pp_cuda_totals *totals, __u64 calls)
{
	calls += totals->owed;
	totals->owed = 0;
	totals->squares += calls * calls;
	return (int)calls;
}

/* A walk that is due is not taken: the next one stands for its calls, too. */
static __always_inline void walk_owe(struct pp_cuda_totals *totals, __u32 calls)
{
	if (!(totals->owed >> 30))
		totals->owed += calls;
}

/* The same, once the row has let it be taken. */
__noinline int cuda_walk_failed(__u64 id, __u32 calls)
{
	struct pp_cuda_totals *totals = bpf_map_lookup_elem(&cuda_totals, &id);

	if (totals)
		walk_owe(totals, calls);
	return 0;
}

/* Says for how many calls of a row the current one, which counts as so many, is to have its stack
 * taken; 0: it is not.  For what cuda_walk_due() lets through.  Not inlined: a walk leaves none of
 * the stack to spare. */
__noinline int cuda_walk_now(__u64 id, __u32 count)
{
	struct pp_cuda_totals *totals = bpf_map_lookup_elem(&cuda_totals, &id);
	struct pp_config *cfg = config_get();
	__u64 left, calls, end;
	__u32 block = count;

	if (!totals || !cfg)
		return 0;
	calls = *(volatile __u64 *)&totals->calls;
	if (!walk_window(totals, cfg) && totals->gap > count)
		block = totals->gap;
	left = cuda_budget_take(cfg, &totals->what.id);
	end = totals->next + totals->behind;
	gap_adjust(totals, cfg, left);
	block_begin(totals, end > calls ? end : calls);
	if (left)
		return walk_stands_for(totals, block);
	walk_owe(totals, block);
	return 0;
}

/* Returns for how many calls the current one's stack would stand; 0: it is not taken.  count: as
 * how many it counts. */
static __always_inline __u32 cuda_walk_due(const struct pp_cuda_totals *totals,
					   const struct pp_config *cfg, __u64 id, __u32 count)
{
	if (*(volatile const __u32 *)&totals->window == *(volatile const __u32 *)&cfg->window &&
	    *(volatile const __u64 *)&totals->calls < *(volatile const __u64 *)&totals->next)
		return 0;
	return cuda_walk_now(id, count);
}

#endif
