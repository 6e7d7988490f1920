/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Samples threads on the CPU: decides how many periods a sample counts for, and whether it is
 * taken. */
#include "lib/budget.bpf.h"
#include "lib/identify.bpf.h"
#include "lib/timeline.bpf.h"
#include "lib/user_registers.bpf.h"
#include "lib/walk.bpf.h"

/* Takes one event of any source from its registers to its counter.  A source is a BPF program that
 * claims a walk (scratch_enter), asks whose the thread is (identify), sets the event's weight with
 * walk_reset() and what it counts as with w->kind and w->detail, and calls event_count(). */

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

/* Sampling was paused, not the CPU. */
#define GAP_NS 1000000000ULL
/* The longest that a walk takes; what is beyond, a hypervisor gave to somebody else. */
#define WALK_MAX_NS (2ULL * PP_SAMPLE_WALK_NS)

static __always_inline __u64 switches_of(struct task_struct *task)
{
	return CURRENT_READ(task, nvcsw) + CURRENT_READ(task, nivcsw);
}

/* Returns the weight in periods of an event that comes when `passed` periods have passed.  The
 * timer skips periods that end while a walk runs; their time belongs to the same thread's next
 * event. */
static __always_inline __u64 periods_after_gap(const struct sampling *of, __u64 passed,
					       bool is_same, __u64 left, __u64 period_ns)
{
	__u64 walked = 0;

	if (of->ended_ns > of->due_ns)
		walked = (of->ended_ns - of->due_ns + period_ns / 16) / period_ns;
	if (walked > passed - 1)
		walked = passed - 1;
	/* The thread had the CPU all this time. */
	if (is_same && left == of->switches)
		count_losses(PP_LOSS_SAMPLES_UNSEEN, passed - 1 - walked);
	if (is_same)
		return 1 + walked;
	count_losses(PP_LOSS_SAMPLES_SWALLOWED, walked);
	return 1;
}

/* Returns the weight of this event in periods.  Events come on a grid of periods.  One may be
 * missing because the CPU was idle, a walk ran, another tool's program ran (the kernel lets no
 * program of a perf event interrupt one of a tracepoint or kprobe: bpf_prog_active), or a
 * hypervisor had the CPU. */
static __always_inline __u64 periods_of_event(struct sampling *of, struct task_struct *task,
					      __u64 thread, __u64 now_ns, __u64 period_ns)
{
	__u64 due_ns = of->due_ns, since_ns = now_ns - due_ns + period_ns / 16, passed = 1;
	__u64 left = switches_of(task), periods = 1;

	if (!due_ns || since_ns > GAP_NS) {
		due_ns = now_ns;
	} else {
		if (unlikely(since_ns >= 2 * period_ns)) {
			passed = since_ns / period_ns;
			periods = periods_after_gap(of, passed, of->thread == thread, left,
						    period_ns);
		}
		/* The grid follows the earliest events. */
		due_ns += passed * period_ns;
		if (due_ns > now_ns)
			due_ns = now_ns;
	}
	of->due_ns = due_ns;
	of->ended_ns = 0;
	of->thread = thread;
	of->switches = left;
	return periods;
}

/* Returns the time from the last event to the moment when the timer was started anew, and begins
 * the new grid.  The first event after that stands for this time, too: the restart dropped the
 * event that was due.  Where the last event was nobody's (the CPU was idle), it is half a period,
 * as the restart comes at a random time. */
static __always_inline __u64 cut_ns(struct sampling *of, const struct pp_sample_timer *timer,
				    __u64 started_ns)
{
	__u64 cut = started_ns - of->due_ns;

	if (!of->due_ns || cut > of->period_ns)
		cut = of->period_ns / 2;
	of->due_ns = of->started_ns = started_ns;
	of->period_ns = timer->period_ns;
	return cut;
}

/* Returns for how many ns an event of the timer stands. */
static __always_inline __u64 time_of_event(struct sampling *of, const struct pp_sample_timer *timer,
					   struct task_struct *task, __u64 thread, __u64 now_ns)
{
	const __u64 started_ns = timer->started_ns;
	__u64 cut = 0;

	if (unlikely(started_ns != of->started_ns)) {
		cut = cut_ns(of, timer, started_ns);
		if (now_ns - started_ns > of->period_ns + of->period_ns / 2)
			cut = 0; /* the first event came while the CPU was idle */
	}
	return periods_of_event(of, task, thread, now_ns, of->period_ns) * of->period_ns + cut;
}

/* Deep stacks at a high rate would leave their program little of the CPU. */
static __always_inline bool sample_is_taken(struct budget *budget, __u64 now_ns, __u32 *ret_shift)
{
	budget_tick_of_samples(budget, now_ns);
	if (!budget_takes(budget, ret_shift))
		return false;
	if (*ret_shift)
		count_loss(PP_LOSS_SAMPLES_WEIGHTED);
	return true;
}

static __always_inline void sample(struct bpf_perf_event_data *ctx, struct sampling *of,
				   struct pp_walk *w, __u32 slot, __u64 thread, __u64 now_ns,
				   const struct pp_config *cfg)
{
	struct task_struct *task = task_current();
	__u32 task_flags = CURRENT_READ(task, flags), shift;
	bool hit_user = registers_are_user((struct user_registers *)&ctx->regs);
	__u32 cpu = bpf_get_smp_processor_id();
	const struct pp_sample_timer *timer = bpf_map_lookup_elem(&sample_timers, &cpu);
	__u64 weight = ctx->sample_period, took_ns;

	if (timer && timer->period_ns)
		weight = time_of_event(of, timer, task, thread, now_ns);
	if (!identify(w, task, thread, task_flags, hit_user, cfg))
		return;
	if (cfg->flags & PP_CONFIG_SEE_RUNNING && !(task_flags & PF_KTHREAD))
		thread_see(slot);
	if (!sample_is_taken(&of->budget, now_ns, &shift))
		return;
	walk_reset(w, weight << shift, now_ns, PP_SAMPLE_WALK_NS);
	event_count(ctx, w, slot, task, task_flags, hit_user, cfg);
	took_ns = bpf_ktime_get_ns() - now_ns;
	budget_spend(&of->budget, took_ns);
	times_add(PP_PROGRAM_SAMPLE, took_ns);
	of->ended_ns = now_ns + (took_ns < WALK_MAX_NS ? took_ns : WALK_MAX_NS);
}

SEC("perf_event")
int on_cpu_sample(struct bpf_perf_event_data *ctx)
{
	__u64 thread = bpf_get_current_pid_tgid();
	struct pp_config *cfg;
	__u32 zero = 0;
	struct sampling *of;
	struct scratch taken;

	if (!(__u32)thread)
		return 0; /* the idle task, whose CPU has nothing of ours in its caches */
	cfg = config_get();
	of = bpf_map_lookup_elem(&sampling, &zero);
	if (!cfg || !of || cfg->flags & PP_CONFIG_PAUSED)
		return 0;
	scratch_enter(&taken);
	if (!taken.walk)
		return 0;
	sample(ctx, of, taken.walk, taken.slot, thread, bpf_ktime_get_ns(), cfg);
	scratch_leave(&taken);
	return 0;
}
