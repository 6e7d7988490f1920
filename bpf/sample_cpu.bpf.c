/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* On-CPU samples: the spine of the kernel side, from the perf event to the counter. */
#include "lib/emit.bpf.h"
#include "lib/maps.bpf.h"
#include "lib/user_registers.bpf.h"
#include "lib/walk_native.bpf.h"
#include "lib/walk_python.bpf.h"

/* Tells of a tgid that no fork and no scan has shown. */
static __always_inline __u32 announce_unknown(struct task_struct *task, __u32 tgid, __u32 flags)
{
	struct pp_event event = {.type = PP_EVENT_UNKNOWN};
	__u64 now = bpf_ktime_get_ns();
	__u32 generation = now >> 10;

	if (flags & (PF_KTHREAD | PF_EXITING))
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

/* Who is sampled?  False: nobody that is wanted. */
static __always_inline bool identify(struct pp_walk *w, struct task_struct *task, __u64 pid_tgid,
				     __u32 task_flags, bool hit_user,
				     const struct pp_config *cfg)
{
	__u32 tgid = pid_tgid >> 32;
	__u32 *generation = bpf_map_lookup_elem(&processes, &tgid);
	struct pp_image *image;

	w->id.tgid = tgid;
	w->id.generation = generation ? *generation : 0;
	w->tid = pid_tgid;
	/* In the kernel a bucket's lock may be held below us (5.10 has no guard against that). */
	if (!generation && hit_user && !(cfg->flags & PP_CONFIG_FILTER))
		w->id.generation = announce_unknown(task, tgid, task_flags);
	image = bpf_map_lookup_elem(&images, &w->id);
	if (image) {
		w->image = *image;
		/* Code objects described before the agent forgot them are not known any more. */
		w->image.code_space += cfg->code_epoch << 20;
	} else {
		__builtin_memset(&w->image, 0, sizeof(w->image));
	}
	return !(cfg->flags & PP_CONFIG_FILTER) || w->image.flags & PP_IMAGE_WANTED;
}

static __always_inline void walk_reset(struct pp_walk *w, __u64 weight)
{
	w->started_ns = bpf_ktime_get_ns();
	w->weight = weight;
	w->count_flags = 0;
	w->hash = 0;
	w->kernel_hash = 0;
	w->kernel_bytes = 0;
	w->has_user = 0;
	w->stop = PP_STOP_NONE;
	w->py_stop = PP_PY_STOP_NONE;
	w->native_stored = w->native_count = 0;
	w->since_run = w->foldable = 0;
	w->thread_state = w->python_frame = w->cframe = 0;
	w->python_stored = w->python_count = 0;
	w->segment_frames = w->segment_count = w->segment_next = 0;
	w->steps = 0;
	w->window_start = 0;
}

static __always_inline void take_kernel_stack(struct pp_walk *w, void *ctx)
{
	long bytes = bpf_get_stack(ctx, w->kernel.address, PP_MAX_KERNEL_FRAMES * 8, 0);
	__u64 hash = 0x6b;

	if (bytes <= 0)
		return;
	w->kernel_bytes = bytes;
	for (__u32 i = 0; i < PP_MAX_KERNEL_FRAMES; i++) {
		if (i * 8 >= bytes)
			break;
		hash = hash_mix(hash, w->kernel.address[i]);
	}
	w->kernel_hash = hash | 1;
}

/* Loops inside loops: the verifier keeps a pending branch for each turn of one loop, 8,192 at most. */
#define STEPS_A_TURN 64U
#define TURNS (PP_MAX_STEPS / STEPS_A_TURN)

int walk_python_steps(__u32 slot)
{
	for (__u32 i = 0; i < STEPS_A_TURN; i++)
		if (walk_python_step(slot))
			return 1;
	return 0;
}

int walk_native_steps(__u32 slot)
{
	for (__u32 i = 0; i < STEPS_A_TURN; i++)
		if (walk_native_step(slot))
			return 1;
	return 0;
}

/* Python first: its frames name the marks that the native walk looks for. */
static __always_inline void walk_user(struct pp_walk *w, __u32 slot)
{
	w->has_user = 1;
	if (!w->image.python) {
		w->py_stop = PP_PY_STOP_NOT_PYTHON;
	} else if (!walk_python_begin(slot)) {
		for (__u32 i = 0; i < TURNS; i++)
			if (walk_python_steps(slot))
				break;
		if (!w->py_stop)
			w->py_stop = PP_PY_STOP_MAX_STEPS;
	}
	w->native_room = PP_MAX_FRAMES - w->python_stored;
	w->steps = 0;
	w->native_started_ns = bpf_ktime_get_ns();
	for (__u32 i = 0; i < TURNS; i++)
		if (walk_native_steps(slot))
			break;
	if (!w->stop)
		w->stop = PP_STOP_MAX_STEPS;
}

static __always_inline void sample(struct bpf_perf_event_data *ctx, struct pp_walk *w, __u32 slot,
				   __u64 pid_tgid, const struct pp_config *cfg)
{
	struct task_struct *task = (struct task_struct *)bpf_get_current_task();
	__u32 task_flags = BPF_CORE_READ(task, flags);
	bool hit_user = registers_are_user((struct user_registers *)&ctx->regs);

	if (!identify(w, task, pid_tgid, task_flags, hit_user, cfg))
		return;
	walk_reset(w, ctx->sample_period);
	if (!hit_user && !(cfg->flags & PP_CONFIG_NO_KERNEL))
		take_kernel_stack(w, ctx);
	if (task_flags & PF_KTHREAD) {
		w->stop = PP_STOP_NO_USER;
	} else if (!take_user_registers(w, task, ctx, hit_user)) {
		w->thread_pointer = task_thread_pointer(task);
		walk_user(w, slot);
		if (!walk_emit_miss(slot))
			return;
	}
	walk_emit(slot);
}

SEC("perf_event")
int on_cpu_sample(struct bpf_perf_event_data *ctx)
{
	__u64 pid_tgid = bpf_get_current_pid_tgid();
	struct pp_config *cfg = config_get();
	__u32 zero = 0, *level, slot;
	struct pp_walk *w;

	if (!(__u32)pid_tgid || !cfg || cfg->flags & PP_CONFIG_PAUSED)
		return 0; /* the idle task */
	level = bpf_map_lookup_elem(&scratch_level, &zero);
	if (!level)
		return 0;
	if (*level >= PP_WALK_LEVELS) {
		count_loss(PP_LOSS_NO_SCRATCH);
		return 0;
	}
	slot = bpf_get_smp_processor_id() * PP_WALK_LEVELS + *level;
	w = walk_get(slot);
	if (!w) {
		count_loss(PP_LOSS_NO_SCRATCH);
		return 0;
	}
	*level += 1;
	sample(ctx, w, slot, pid_tgid, cfg);
	*level -= 1;
	return 0;
}
