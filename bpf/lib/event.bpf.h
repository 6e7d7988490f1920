/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* One event of any source, from its registers to its counter.  A source is a program that claims a walk
 * (scratch_enter), asks whose the thread is (identify), says with walk_reset() what the event weighs and with
 * w->kind and w->detail what it counts as, and calls event_count(). */
#ifndef BPF_LIB_EVENT_H
#define BPF_LIB_EVENT_H

#include "lib/timeline.bpf.h"
#include "lib/user_registers.bpf.h"
#include "lib/walk.bpf.h"

/* ctx: of the current thread; with the registers of user space where hit_user says so.  Else the kernel's stack is
 * taken, and those with which the thread left user space. */
static __always_inline void event_count(struct bpf_perf_event_data *ctx, struct pp_walk *w,
					__u32 slot, struct task_struct *task, __u32 task_flags,
					bool hit_user, const struct pp_config *cfg)
{
	if (!hit_user && !(cfg->flags & PP_CONFIG_NO_KERNEL))
		take_kernel_stack(w, slot, ctx);
	if (task_flags & PF_KTHREAD) {
		w->stop = PP_STOP_NO_USER;
	} else if (!take_user_registers(w, task, ctx, hit_user)) {
		w->thread_pointer = CURRENT_READ(task, TASK_THREAD_POINTER);
		walk_user(slot);
		if (unlikely(is_miss(w)) && !walk_emit_miss(slot)) {
			if (timeline_is_on)
				timeline_sample(w, false);
			return;
		}
	}
	walk_emit(slot);
	if (cfg->flags & PP_CONFIG_SEE_RUNNING && !(task_flags & PF_KTHREAD))
		thread_sampled(slot);
	if (timeline_is_on && !(task_flags & PF_KTHREAD))
		timeline_sample(w, true);
}

#endif
