/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Whether another thread may be inside of a launch: what it launches is marked when it begins, and
 * queued at some moment before it returns.  A synchronisation that begins in between may not wait
 * for it, so it proves nothing.
 *
 * Returns are not probed.  A launch has returned when its thread has made another call with the
 * same stack or less, or when it is off the CPU with less. */
#ifndef BPF_LIB_CUDA_LAUNCHERS_H
#define BPF_LIB_CUDA_LAUNCHERS_H

#include "lib/cuda_maps.bpf.h"
#include "lib/user_registers.bpf.h"

/* Takes a row, of those of this process' streams or of its launchers: only one CPU can.  The caller
 * looks whether it is free, writes to it, and gives the claim back. */
static __always_inline bool cuda_claim(__u32 row)
{
	const struct cuda_claim claim = {.tgid = bpf_get_current_pid_tgid() >> 32, .row = row};

	return !bpf_map_update_elem(&cuda_claims, &claim, &row, BPF_NOEXIST);
}

static __always_inline void cuda_unclaim(__u32 row)
{
	const struct cuda_claim claim = {.tgid = bpf_get_current_pid_tgid() >> 32, .row = row};

	bpf_map_delete_elem(&cuda_claims, &claim);
}

static __always_inline bool cuda_has_ended(struct task_struct *task, __u32 tid)
{
	return (__u32)BPF_CORE_READ(task, pid) != tid || BPF_CORE_READ(task, flags) & PF_EXITING;
}

/* Returns whether the current thread is among its process' launchers.  These begin anew when states
 * do (agent: cuda_side_see()). */
static __always_inline bool cuda_is_launcher(const struct cuda_streams *streams,
					     const struct cuda_thread *thread)
{
	__u32 at = thread->launcher - 1;

	BARRIER(at);
	return at < CUDA_LAUNCHERS &&
	       *(const volatile __u32 *)&streams->launcher[at] == (__u32)bpf_get_current_pid_tgid();
}

/* Lists the current thread among the launchers.  Returns 1 + its index; 0: there is no room. */
__noinline int cuda_launcher_list(__u32 generation)
{
	const __u64 own = bpf_get_current_pid_tgid();
	struct pp_process_id id = {.tgid = own >> 32, .generation = generation};
	struct cuda_streams *streams = bpf_map_lookup_elem(&cuda_streams, &id);

	if (!streams)
		return 0;
	for (__u32 i = 0; i < CUDA_LAUNCHERS; i++) {
		const __u32 listed = *(volatile __u32 *)&streams->launcher[i];
		bool is_taken;

		/* What was known of it was forgotten: cuda_threads[] is an LRU hash. */
		if (listed == (__u32)own)
			return i + 1;
		if (listed || !cuda_claim(CUDA_STREAMS + i))
			continue;
		is_taken = !*(volatile __u32 *)&streams->launcher[i];
		if (is_taken)
			*(volatile __u32 *)&streams->launcher[i] = own;
		cuda_unclaim(CUDA_STREAMS + i);
		if (is_taken)
			return i + 1;
	}
	return 0;
}

/* Takes launchers that have ended off the list. */
__noinline int cuda_launchers_sweep(__u32 generation)
{
	const __u64 own = bpf_get_current_pid_tgid();
	struct pp_process_id id = {.tgid = own >> 32, .generation = generation};
	struct cuda_streams *streams = bpf_map_lookup_elem(&cuda_streams, &id);

	if (!streams)
		return 1;
	for (__u32 i = 0; i < CUDA_LAUNCHERS; i++) {
		const __u32 tid = *(volatile __u32 *)&streams->launcher[i];
		const __u64 key = own >> 32 << 32 | tid;
		const struct cuda_thread *thread = bpf_map_lookup_elem(&cuda_threads, &key);

		if (tid && thread && cuda_has_ended((struct task_struct *)thread->task, tid))
			*(volatile __u32 *)&streams->launcher[i] = 0;
	}
	return 0;
}

/* Notes that the current thread launches: before it reads the round for the first time.  Beyond
 * CUDA_LAUNCHERS at a time nothing can be said. */
static __always_inline void cuda_launcher_join(struct cuda_streams *streams,
					       struct cuda_thread *thread)
{
	thread->task = bpf_get_current_task();
	thread->launcher = cuda_launcher_list(thread->generation);
	if (likely(thread->launcher))
		return;
	cuda_launchers_sweep(thread->generation);
	thread->launcher = cuda_launcher_list(thread->generation);
	if (!thread->launcher)
		streams->has_more = 1;
}

/* Notes that the current thread is inside of a launch, for whoever begins a round that it does not
 * see yet: nothing behind it is read before that is written.  (Before Linux 5.12 on x86 alone.) */
static __always_inline void cuda_launch_enter(struct cuda_thread *thread, __u64 sp)
{
	if (has_cmpxchg) {
		__sync_lock_test_and_set(&thread->sp, sp);
		return;
	}
	*(volatile __u64 *)&thread->sp = sp;
	__sync_fetch_and_add(&thread->fence, 1);
}

/* The current thread makes a call with this stack pointer: its last launch has returned, unless
 * this call is made by it. */
static __always_inline void cuda_launch_left(struct cuda_thread *thread, __u64 sp)
{
	if (thread->sp && sp >= thread->sp)
		thread->sp = 0;
}

/* A kernel for one CPU has no such field: the thread is not the current one. */
static __always_inline bool cuda_is_on_cpu(struct task_struct *task)
{
	return bpf_core_field_exists(task->on_cpu) && BPF_CORE_READ_BITFIELD_PROBED(task, on_cpu);
}

/* Returns the user stack pointer of a thread that is off the CPU; 0: it is on one, or cannot be
 * read. */
static __always_inline __u64 cuda_sp_of(struct task_struct *task)
{
	struct task_struct *own = (struct task_struct *)bpf_get_current_task();
	const void *own_registers = saved_registers(own);
	const __u64 bottom = (__u64)BPF_CORE_READ(task, stack);
	const struct user_registers *regs;
	__u64 at = 0, sp = 0;

	if (cuda_is_on_cpu(task) || !bottom)
		return 0;
	/* A copy of a pointer is a number for the verifier. */
	bpf_probe_read_kernel(&at, sizeof(at), &own_registers);
	/* They lie at the same distance from the bottom of every kernel stack. */
	regs = (const void *)(bottom + at - (__u64)BPF_CORE_READ(own, stack));
#if defined(__TARGET_ARCH_arm64)
	bpf_probe_read_kernel(&sp, sizeof(sp), &regs->sp);
#else
	bpf_probe_read_kernel(&sp, sizeof(sp), &regs->rsp);
#endif
	/* It may have run, and have gone on, while it was read. */
	return cuda_is_on_cpu(task) ? 0 : sp;
}

/* Returns 1 when a thread besides the current one may be inside of a launch.  stream: in that one;
 * 0: in any. */
__noinline int cuda_others_launch(__u32 generation, __u64 stream)
{
	const __u64 own = bpf_get_current_pid_tgid();
	struct pp_process_id id = {.tgid = own >> 32, .generation = generation};
	struct cuda_streams *streams = bpf_map_lookup_elem(&cuda_streams, &id);

	if (!streams || streams->has_more)
		return 1;
	for (__u32 i = 0; i < CUDA_LAUNCHERS; i++) {
		const __u32 tid = *(volatile __u32 *)&streams->launcher[i];
		const __u64 key = own >> 32 << 32 | tid;
		const struct cuda_thread *thread;
		struct task_struct *task;

		if (!tid || tid == (__u32)own)
			continue;
		thread = bpf_map_lookup_elem(&cuda_threads, &key);
		if (!thread) {
			/* Nothing is known of its last launch; it joins with the next one. */
			streams->launcher[i] = 0;
			return 1;
		}
		if (!*(const volatile __u64 *)&thread->sp || (stream && thread->stream != stream))
			continue;
		task = (struct task_struct *)thread->task;
		if (cuda_has_ended(task, tid))
			streams->launcher[i] = 0;
		else if (cuda_sp_of(task) <= thread->sp)
			return 1;
	}
	return 0;
}

#endif
