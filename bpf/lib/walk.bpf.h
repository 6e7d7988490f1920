/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* One walk, as the programs use it: a scratch slot, a reset, the stacks, their way out.  Functions
 * with external linkage are in walk.bpf.c. */
#ifndef BPF_LIB_WALK_H
#define BPF_LIB_WALK_H

#include "lib/frames.bpf.h"
#include "lib/walk_clock.bpf.h"

/* Names the kernel stack of w->kernel_bytes bytes. */
int walk_kernel_hash(__u32 slot);
/* Walks the user stack from w's registers: Python frames, then native ones. */
int walk_user(__u32 slot);
/* Only the Python frames of w->thread_state, which may be another thread's. */
int walk_python_only(__u32 slot);
/* Sends what is new and counts the sample. */
int walk_emit(__u32 slot);
/* Nonzero: the missed stack could not be sent and is still to be counted here. */
int walk_emit_miss(__u32 slot);
/* Sends what is new and counts nothing; w->hash and w->count_flags are final then. */
int walk_emit_stacks(__u32 slot);
/* threads.bpf.c */
int thread_see(__u32 slot);

struct scratch {
	struct pp_walk *walk; /* NULL: none was free, which is counted */
	__u32 *level;
	__u32 slot;
};

static __always_inline void scratch_enter(struct scratch *taken)
{
	__u32 zero = 0;

	taken->walk = NULL;
	taken->level = bpf_map_lookup_elem(&scratch_level, &zero);
	if (!taken->level)
		return;
	if (*taken->level >= PP_WALK_LEVELS) {
		count_loss(PP_LOSS_NO_SCRATCH);
		return;
	}
	taken->slot = bpf_get_smp_processor_id() * PP_WALK_LEVELS + *taken->level;
	taken->walk = walk_get(taken->slot);
	if (!taken->walk)
		count_loss(PP_LOSS_NO_SCRATCH);
	else
		*taken->level += 1;
}

static __always_inline void scratch_leave(struct scratch *taken)
{
	*taken->level -= 1;
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
	w->is_resumable = 0;
	w->by_frame_pointer = 0;
	w->stop = PP_STOP_NONE;
	w->py_stop = PP_PY_STOP_NONE;
	w->native_stored = w->native_count = 0;
	w->since_run = w->foldable = 0;
	w->thread_state = w->python_frame = w->cframe = 0;
	w->python_stored = w->python_count = 0;
	w->segment_frames = w->segment_count = w->segment_next = 0;
	walk_clock_start(w, w->started_ns);
	w->window_bytes = 0;
}

static __always_inline void take_kernel_stack(struct pp_walk *w, __u32 slot, void *ctx)
{
	long bytes = bpf_get_stack(ctx, w->kernel.address, PP_MAX_KERNEL_FRAMES * 8, 0);

	if (bytes <= 0)
		return;
	w->kernel_bytes = bytes;
	walk_kernel_hash(slot);
}

#endif
