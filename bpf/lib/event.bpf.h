/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Takes one event of any source from its registers to its counter.  A source is a BPF program that
 * claims a walk (scratch_enter), asks whose the thread is (identify), sets the event's weight with
 * walk_reset() and what it counts as with w->kind and w->detail, and calls event_count(). */
#ifndef BPF_LIB_EVENT_H
#define BPF_LIB_EVENT_H

#include "lib/gpu.bpf.h"
#include "lib/timeline.bpf.h"
#include "lib/user_registers.bpf.h"
#include "lib/walk.bpf.h"

/* Counts an event of the current thread.  ctx has the registers of user space if hit_user is
 * set; otherwise the kernel stack is taken, and the registers with which the thread entered the
 * kernel. */
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
		if (unlikely(w->is_gpu && w->kind == PP_KIND_CPU))
			w->count_flags |= gpu_of_thread(&w->id, &w->tid, w->sp, cfg)
					  << PP_COUNT_GPU_SHIFT;
		walk_user(slot);
		if (unlikely(is_incomplete(w)) && !walk_emit_incomplete(slot)) {
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
