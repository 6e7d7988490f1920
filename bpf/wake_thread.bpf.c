/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* For `wakers`: takes the stack of the thread that wakes a waiting one.  It runs as the waker, or
 * in an interrupt above some thread, with a lock of the scheduler held: no allocation, no sleep, no
 * page fault. */
#include "lib/budget.bpf.h"
#include "lib/identify.bpf.h"
#include "lib/threads.bpf.h"
#include "lib/wait_reason.bpf.h"
#include "lib/walk.bpf.h"

/* Interrupts have a stack of their own: the tracepoint's arguments do not lie on the thread's.  But
 * on x86-64 they use the thread's where they came out of user space
 * (arch/x86/include/asm/irq_stack.h): then the thread is in no system call. */
static __always_inline bool is_interrupt(struct switch_state *state, void *ctx,
					 struct task_struct *task, bool is_kernel_thread)
{
	volatile __u64 *context = &state->context;

	*context = (__u64)ctx;
	if (*context - (__u64)BPF_CORE_READ(task, stack) >= THREAD_BYTES)
		return true;
#if defined(__TARGET_ARCH_arm64)
	return false;
#else
	return !is_kernel_thread && (__s64)syscall_number((void *)state->registers) < 0;
#endif
}

/* Takes every waker's kernel stack, and the user stack of processes that are known. */
static __always_inline void walk_waker(void *ctx, struct pp_walk *w, __u32 slot,
				       struct switch_state *state, struct task_struct *task,
				       bool is_user, __u64 now_ns, const struct pp_config *cfg)
{
	walk_reset(w, 0, now_ns, PP_SWITCH_WALK_NS);
	if (!(cfg->flags & PP_CONFIG_NO_KERNEL))
		take_kernel_stack(w, slot, ctx);
	walk_clock_grant(w);
	if (is_user && w->context.map_set && !use_registers(w, (void *)state->registers)) {
		w->thread_pointer = task_thread_pointer(task);
		walk_user(slot);
	}
	walk_emit_stacks(slot);
}

static __always_inline void wake(void *ctx, struct switch_state *state, struct task_struct *task,
				 __u32 woken_tid, __u32 shift, __u64 now_ns,
				 const struct pp_config *cfg)
{
	__u32 flags = BPF_CORE_READ(task, flags);
	bool is_kernel_thread = flags & PF_KTHREAD;
	struct pp_waker waker = {.weight_shift = shift};
	struct scratch taken;

	copy_saved((void *)state->registers, task);
	if (is_interrupt(state, ctx, task, is_kernel_thread))
		waker.flags = PP_WAKE_INTERRUPT;
	scratch_enter(&taken);
	if (!taken.walk)
		return;
	identify(taken.walk, task, bpf_get_current_pid_tgid(), flags, false, cfg);
	walk_waker(ctx, taken.walk, taken.slot, state, task, !waker.flags && !is_kernel_thread,
		   now_ns, cfg);
	waker.user_stack = taken.walk->hash;
	waker.kernel_stack = taken.walk->kernel_hash;
	if (!waker.flags) {
		waker.id = taken.walk->id;
		waker.tid = taken.walk->tid;
	}
	scratch_leave(&taken);
	bpf_map_update_elem(&wakers, &woken_tid, &waker, BPF_ANY);
}

/* Returns whether this thread is in a wait that is counted. */
static __always_inline bool is_waiting(const struct pp_thread *t)
{
	return (t->flags & (PP_THREAD_MATCHES | PP_THREAD_WAITING | PP_THREAD_SKIPPED)) ==
		       (PP_THREAD_MATCHES | PP_THREAD_WAITING) &&
	       t->wait != PP_WAIT_RUN_QUEUE;
}

SEC("tp_btf/sched_waking")
int BPF_PROG(on_waking, struct task_struct *woken)
{
	struct task_struct *task = (struct task_struct *)bpf_get_current_task();
	struct pp_config *cfg = config_get();
	__u32 tid = woken->pid, zero = 0, shift;
	struct switch_state *state;
	const struct pp_thread *t;
	__u64 now_ns, took_ns;

	if (!cfg || cfg->flags & PP_CONFIG_PAUSED)
		return 0;
	t = thread_find(tid, cfg);
	state = bpf_map_lookup_elem(&switches, &zero);
	if (!t || !state || !is_waiting(t))
		return 0;
	now_ns = bpf_ktime_get_ns();
	budget_tick_of_switches(&state->budget, now_ns);
	if (!budget_takes(&state->budget, &shift))
		return 0;
	if (shift)
		count_loss(PP_LOSS_WAITS_WEIGHTED);
	wake(ctx, state, task, tid, shift, now_ns, cfg);
	took_ns = bpf_ktime_get_ns() - now_ns;
	budget_spend(&state->budget, took_ns);
	times_add(PP_PROGRAM_WAKING, took_ns);
	return 0;
}
