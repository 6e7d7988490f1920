/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* On-CPU samples: the spine of the kernel side, from the perf event to the counter. */
#include "lib/budget.bpf.h"
#include "lib/identify.bpf.h"
#include "lib/maps.bpf.h"
#include "lib/timeline.bpf.h"
#include "lib/times.bpf.h"
#include "lib/user_registers.bpf.h"
#include "lib/walk.bpf.h"

/* Very deep stacks very often would leave their program little of the CPU. */
static __always_inline bool sample_is_taken(struct budget *budget, __u32 *ret_shift)
{
	budget_tick_of_samples(budget, bpf_ktime_get_ns());
	if (!budget_takes(budget, ret_shift))
		return false;
	if (*ret_shift)
		count_loss(PP_LOSS_SAMPLES_WEIGHTED);
	return true;
}

static __always_inline void sample_stack(struct bpf_perf_event_data *ctx, struct pp_walk *w,
					 __u32 slot, struct task_struct *task, __u32 task_flags,
					 bool hit_user, const struct pp_config *cfg)
{
	if (!hit_user && !(cfg->flags & PP_CONFIG_NO_KERNEL))
		take_kernel_stack(w, slot, ctx);
	if (task_flags & PF_KTHREAD) {
		w->stop = PP_STOP_NO_USER;
	} else if (!take_user_registers(w, task, ctx, hit_user)) {
		w->thread_pointer = task_thread_pointer(task);
		walk_user(slot);
		if (!walk_emit_miss(slot)) {
			if (timeline_is_on)
				timeline_sample(w, false);
			return;
		}
	}
	walk_emit(slot);
	if (timeline_is_on && !(task_flags & PF_KTHREAD))
		timeline_sample(w, true);
}

static __always_inline void sample(struct bpf_perf_event_data *ctx, struct pp_walk *w, __u32 slot,
				   __u64 pid_tgid, const struct pp_config *cfg)
{
	struct task_struct *task = (struct task_struct *)bpf_get_current_task();
	__u32 task_flags = BPF_CORE_READ(task, flags), zero = 0, shift;
	bool hit_user = registers_are_user((struct user_registers *)&ctx->regs);
	struct budget *budget = bpf_map_lookup_elem(&sample_budget, &zero);
	__u64 took_ns;

	if (!budget || !identify(w, task, pid_tgid, task_flags, hit_user, cfg))
		return;
	if (cfg->flags & PP_CONFIG_SEE_RUNNING && !(task_flags & PF_KTHREAD))
		thread_see(slot);
	if (!sample_is_taken(budget, &shift))
		return;
	walk_reset(w, ctx->sample_period << shift);
	sample_stack(ctx, w, slot, task, task_flags, hit_user, cfg);
	took_ns = bpf_ktime_get_ns() - w->started_ns;
	budget_spend(budget, took_ns);
	times_add(PP_PROGRAM_SAMPLE, took_ns);
}

SEC("perf_event")
int on_cpu_sample(struct bpf_perf_event_data *ctx)
{
	__u64 pid_tgid = bpf_get_current_pid_tgid();
	struct pp_config *cfg = config_get();
	struct scratch taken;

	if (!(__u32)pid_tgid || !cfg || cfg->flags & PP_CONFIG_PAUSED)
		return 0; /* the idle task */
	scratch_enter(&taken);
	if (!taken.walk)
		return 0;
	sample(ctx, taken.walk, taken.slot, pid_tgid, cfg);
	scratch_leave(&taken);
	return 0;
}
