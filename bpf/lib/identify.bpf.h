/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Finds the process context of a thread, and its label `gpu`. */
#ifndef BPF_LIB_IDENTIFY_H
#define BPF_LIB_IDENTIFY_H

#include "lib/user.bpf.h"

/* ---- label `gpu`: include/pyprofd/cuda.h ----
 * Processes without CUDA cost no look-up: the walk and the thread's slot know the process. */

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
	if (!process || process->generation != id->generation || process->sight != cfg->gpu_sight ||
	    cfg->gpu_is_blind)
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

/* ---- the process ---- */

/* Reports a tgid that no fork and no scan of /proc has shown. */
static __always_inline __u32 announce_unknown(struct task_struct *task, __u32 tgid, __u32 flags)
{
	struct pp_event event = {.type = PP_EVENT_UNKNOWN};
	__u64 now = bpf_ktime_get_ns();
	__u32 generation = now >> 10;

	if (flags & (PF_KTHREAD | PF_EXITING) || process_share_take(user_of_current()))
		return 0;
	if (bpf_map_update_elem(&processes, &tgid, &generation, BPF_NOEXIST)) {
		__u32 *known = bpf_map_lookup_elem(&processes, &tgid);

		if (known)
			return *known; /* another CPU was first */
		count_loss(PP_LOSS_PROCESSES_FULL);
		return 0;
	}
	event.time_ns = now;
	event.id.tgid = tgid;
	event.id.generation = generation;
	bpf_probe_read_kernel_str(event.comm, sizeof(event.comm), task->comm);
	if (bpf_ringbuf_output(&events, &event, sizeof(event), BPF_RB_FORCE_WAKEUP))
		count_loss(PP_LOSS_EVENTS_FULL);
	return generation;
}

/* Looks up w's process id and process context. */
static __always_inline void look_up_process(struct pp_walk *w, struct task_struct *task, __u32 tgid,
					    __u32 task_flags, bool may_announce,
					    const struct pp_config *cfg)
{
	/* Read this first: what changes from here on is looked up again next time. */
	__u32 changes = *(const volatile __u32 *)&cfg->process_changes;
	__u32 *generation = bpf_map_lookup_elem(&processes, &tgid);
	struct pp_process_context *context;

	w->id.tgid = tgid;
	w->id.generation = generation ? *generation : 0;
	w->process_changes = changes;
	w->is_identified = !!generation;
	w->is_gpu = gpu_is_used(&w->id.tgid, cfg);
	w->cred = (__u64)BPF_CORE_READ(task, cred);
	w->euid = (__u32)euid_of_current();
	w->user = (__u32)user_claims(w->cred, may_announce);
	w->user_key = pp_user_key(w->user, cfg->name_secret);
	if (!generation && may_announce && !(cfg->flags & PP_CONFIG_FILTER))
		w->id.generation = announce_unknown(task, tgid, task_flags);
	context = bpf_map_lookup_elem(&contexts, &w->id);
	if (context) {
		w->context = *context;
		/* The agent has forgotten the code objects that were sent before: send them
		 * again. */
		w->context.code_space += cfg->code_epoch << 20;
		/* Forks that became other users do not share what they say of their code. */
		w->context.code_space ^= w->user_key >> 32;
	} else {
		__builtin_memset(&w->context, 0, sizeof(w->context));
	}
}

/* Identifies the process of the current thread.  Returns false if it does not match the filter. 
 * may_announce: the caller knows that no bucket's lock can be held below us (5.10 has no guard
 * against that).  A walk is usually lent to a thread of the same process again; one that has become
 * another user has other credentials. */
static __always_inline bool identify(struct pp_walk *w, struct task_struct *task, __u64 pid_tgid,
				     __u32 task_flags, bool may_announce,
				     const struct pp_config *cfg)
{
	__u32 tgid = pid_tgid >> 32;

	w->tid = pid_tgid;
	w->may_hold_lock = !may_announce && cfg->flags & PP_CONFIG_NMI;
	if (unlikely(!w->is_identified || w->id.tgid != tgid ||
		     w->process_changes != cfg->process_changes ||
		     w->cred != (__u64)BPF_CORE_READ(task, cred)))
		look_up_process(w, task, tgid, task_flags, may_announce, cfg);
	return !(cfg->flags & PP_CONFIG_FILTER) || w->context.flags & PP_CONTEXT_MATCHES;
}

#endif
