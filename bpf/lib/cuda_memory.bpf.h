/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The device's memory that is live: cuda_blocks[] has what was allocated and not freed, by address
 * (include/pyprofd/cuda.h).  A block is there before the call that allocates it returns to the
 * program, and is taken out when the call that frees it has returned without an error: one that
 * another thread gets at the same address meanwhile has taken its place by then, which its time
 * tells. */
#ifndef BPF_LIB_CUDA_MEMORY_H
#define BPF_LIB_CUDA_MEMORY_H

#include "lib/cuda_walks.bpf.h"
#include "lib/maps.bpf.h"
#include "lib/user.bpf.h"

/* ---- which calls have their stacks taken ---- */

/* Says for how many calls of a row the current allocation is to have its stack taken; 0: it is not.
 * All are, within a budget of their own; beyond it, those that are as any call. */
__noinline int cuda_block_walk(__u64 id)
{
	struct pp_cuda_totals *totals = bpf_map_lookup_elem(&cuda_totals, &id);
	struct cuda_process *process =
		totals ? cuda_process_of(totals->what.id.tgid, totals->what.id.generation) : NULL;
	struct pp_user_share *share = process ? share_of(process->user) : NULL;
	struct cuda_machine *machine = cuda_machine_get();
	const struct pp_config *cfg = config_get();

	if (!totals || !cfg)
		return 0;
	if (!process || !machine ||
	    !walk_take(cfg, &process->blocks_until_ns, share ? &share->gpu_blocks_until_ns : NULL,
		       &machine->blocks_until_ns))
		return cuda_walk_due(totals, cfg, id, 1);
	walk_window(totals, cfg);
	return walk_stands_for(totals, 1);
}

/* ---- how many there may be ---- */

static __always_inline __u64 *cuda_block_count(enum pp_cuda_block_count which)
{
	__u32 index = which;

	return bpf_map_lookup_elem(&cuda_block_counts, &index);
}

/* Takes room for one.  A user may have as many as are left for all others; root is bounded by the
 * whole alone. */
static __always_inline bool cuda_block_take(__u32 user)
{
	__u64 *added = cuda_block_count(PP_CUDA_BLOCKS_ADDED), count;
	const __u64 *removed = cuda_block_count(PP_CUDA_BLOCKS_REMOVED);
	struct pp_user_share *share = share_of(user);

	if (!added || !removed)
		return false;
	count = *(volatile __u64 *)added - *(const volatile __u64 *)removed;
	if (count >= PP_CUDA_BLOCKS_MAX ||
	    (share && *(volatile __u32 *)&share->gpu_blocks >= PP_CUDA_BLOCKS_MAX - count))
		return false;
	if (share)
		__sync_fetch_and_add(&share->gpu_blocks, 1);
	__sync_fetch_and_add(added, 1);
	return true;
}

static __always_inline void cuda_block_give(__u32 user)
{
	__u64 *added = cuda_block_count(PP_CUDA_BLOCKS_ADDED);
	struct pp_user_share *share = share_of(user);

	if (share && share->gpu_blocks)
		__sync_fetch_and_add(&share->gpu_blocks, -1);
	if (added)
		__sync_fetch_and_add(added, -1);
}

/* ---- calls ---- */

/* Notes until the call returns what an allocation of so many bytes is asked for, or with bytes == 0
 * which block is freed.  address: where the new one's will be stored, or the block's own.  In the
 * call, `more` is that address, and `what` the bytes, or the block's time: 0: it is not known. */
__noinline int cuda_block_begin(__u64 sp, __u64 address, __u64 bytes, __u32 generation,
				__u32 object)
{
	struct pp_cuda_block_key key = {.address = address, .object = object};
	struct cuda_call *call = cuda_call_at(sp);
	const struct pp_cuda_block *block;

	if (!call)
		return 1;
	call->what = bytes;
	call->more = address;
	if (bytes)
		return 0;
	key.tgid = bpf_get_current_pid_tgid() >> 32;
	block = bpf_map_lookup_elem(&cuda_blocks, &key);
	if (block && block->generation == generation)
		call->what = block->since_ns;
	return 0;
}

/* Puts a block into the table, in the place of one at the same address whose free was not seen. */
static __always_inline int cuda_block_put(const struct pp_cuda_block_key *key,
					  struct pp_cuda_block *block)
{
	const struct pp_cuda_block *known = bpf_map_lookup_elem(&cuda_blocks, key);

	if (known)
		block->user = known->user;
	else if (!cuda_block_take(block->user))
		return 1;
	if (!bpf_map_update_elem(&cuda_blocks, key, block, BPF_ANY))
		return 0;
	if (!known)
		cuda_block_give(block->user);
	return 1;
}

/* An allocation has returned without an error. */
__noinline int cuda_block_got(__u64 sp, __u32 generation, __u32 object)
{
	const __u64 id = bpf_get_current_pid_tgid();
	const struct cuda_thread *thread = bpf_map_lookup_elem(&cuda_threads, &id);
	struct pp_cuda_block_key key = {.tgid = id >> 32, .object = object};
	struct pp_cuda_block block = {.user_stack = PP_STACK_OTHERS, .generation = generation};
	const struct cuda_call *call = cuda_call_at(sp);

	if (!thread || !call || !call->what ||
	    bpf_probe_read_user(&key.address, sizeof(key.address), (const void *)call->more) ||
	    !key.address)
		return 1;
	if (call->stands_for) {
		block.user_stack = call->row.user_stack;
		block.flags = call->row.flags;
	}
	block.row = call->id;
	block.bytes = call->what;
	block.since_ns = bpf_ktime_get_ns();
	block.context = thread->context;
	block.device = thread->device;
	block.tid = (__u32)id;
	block.user = thread->user;
	if (!cuda_block_put(&key, &block))
		return 0;
	count_loss(PP_LOSS_CUDA_BLOCKS_FULL);
	return 1;
}

/* A free has returned without an error. */
__noinline int cuda_block_freed(__u64 sp, __u32 object)
{
	struct pp_cuda_block_key key = {.object = object};
	const struct cuda_call *call = cuda_call_at(sp);
	const struct pp_cuda_block *block;
	__u32 user;

	if (!call || !call->more /* NULL may be freed */)
		return 1;
	if (!call->what) {
		count_loss(PP_LOSS_CUDA_FREES_UNKNOWN);
		return 1;
	}
	key.tgid = bpf_get_current_pid_tgid() >> 32;
	key.address = call->more;
	block = bpf_map_lookup_elem(&cuda_blocks, &key);
	if (!block || block->since_ns != call->what)
		return 1;
	user = block->user;
	if (!bpf_map_delete_elem(&cuda_blocks, &key))
		cuda_block_give(user);
	return 0;
}

/* ---- contexts ---- */

/* A context ends, and with it all memory in it; or that of a device (PP_CUDA_ALL_OF_DEVICE).  The
 * agent takes the blocks out. */
__noinline int cuda_memory_ended(__u32 generation, __u64 context)
{
	struct pp_cuda_handle key = {.handle = context};
	const __u64 now_ns = bpf_ktime_get_ns();

	key.id.tgid = bpf_get_current_pid_tgid() >> 32;
	key.id.generation = generation;
	if (!bpf_map_update_elem(&cuda_ended, &key, &now_ns, BPF_ANY))
		return 0;
	count_loss(PP_LOSS_CUDA_BLOCKS_FULL);
	return 1;
}

#endif
