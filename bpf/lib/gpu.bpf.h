/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Finds the label `gpu` of a thread (include/pyprofd/gpu.h).  Processes without CUDA cost no look-
 * up: the walk and the thread's slot already know the process. */
#ifndef BPF_LIB_GPU_H
#define BPF_LIB_GPU_H

#include "lib/user.bpf.h"

/* Returns whether a process has called CUDA.  tgid: points into a map's value, as helpers of 5.10
 * want it. */
static __always_inline bool gpu_is_used(const __u32 *tgid, const struct pp_config *cfg)
{
	return cfg->gpu_sight && bpf_map_lookup_elem(&gpu_processes, tgid);
}

/* Returns the enum pp_gpu of a thread.  id, tid: point into a map's value.  sp: the user stack
 * pointer, now or at the entry into the kernel; above the synchronisation's frame it tells that the
 * thread has left by longjmp() or an exception. */
static __always_inline __u32 gpu_of_thread(const struct pp_process_id *id, const __u32 *tid,
					   __u64 sp, const struct pp_config *cfg)
{
	const struct pp_gpu_wait *wait = bpf_map_lookup_elem(&gpu_waits, tid);
	const struct pp_gpu_process *process;

	if (wait && sp <= wait->sp)
		return PP_GPU_WAIT;
	process = bpf_map_lookup_elem(&gpu_processes, &id->tgid);
	if (!process || process->generation != id->generation ||
	    process->sight != cfg->gpu_sight || cfg->gpu_is_blind)
		return PP_GPU_UNKNOWN;
	return pp_gpu_of(process);
}

/* Removes a thread from the table of those inside a synchronisation. */
static __always_inline void gpu_wait_drop(const __u32 *tid)
{
	const struct pp_gpu_wait *wait = bpf_map_lookup_elem(&gpu_waits, tid);
	struct pp_user_share *share;

	if (!wait)
		return;
	share = share_of(wait->user);
	if (!bpf_map_delete_elem(&gpu_waits, tid) && share && share->gpu_waits)
		__sync_fetch_and_add(&share->gpu_waits, -1);
}

#endif
