/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Walks one user stack and sends it: what all programs share. */
#include "lib/walk.bpf.h"
#include "lib/emit.bpf.h"
#include "lib/maps.bpf.h"
#include "lib/walk_native.bpf.h"
#include "lib/walk_python.bpf.h"

int walk_kernel_hash(__u32 slot)
{
	struct pp_walk *w = walk_get(slot);
	__u64 hash = 0x6b;

	if (!w)
		return 1;
	for (__u32 i = 0; i < PP_MAX_KERNEL_FRAMES; i++) {
		if (i * 8 >= w->kernel_bytes)
			break;
		hash = hash_mix(hash, w->kernel.address[i]);
	}
	w->kernel_hash = hash | 1;
	return 0;
}

/* Loops inside loops: the verifier keeps a pending branch for each turn of one loop, 8,192 at
 * most.  Not inlined: each is then verified once.  The innermost have their step inlined, which
 * costs a sample less than a call, and the verifier each turn on its own: few of them.  5.10 allows
 * 512 bytes of stack from on_switch() down: what needs much is not called from what needs much. */
#define STEPS_A_TURN 4U
#define PYTHON_TURNS (PP_MAX_STEPS / STEPS_A_TURN)
#define NATIVE_TURNS 64U /* and as many inside; each ends after one frame at least */
_Static_assert(NATIVE_TURNS *NATIVE_TURNS >= PP_MAX_STEPS, "a frame a turn");

__noinline int walk_python_steps(__u32 slot)
{
	struct pp_walk *w = walk_get(slot);
	struct pp_python *py = w ? python_of(w) : NULL;

	if (!py)
		return 1;
	for (__u32 i = 0; i < STEPS_A_TURN; i++)
		if (walk_python_step(w, py, slot))
			return 1;
	return 0;
}

/* Takes up to so many plain frames.  Returns nonzero when the next one is not plain. */
__noinline int walk_plain_steps(__u32 slot)
{
	struct pp_walk *w = walk_get(slot);
	const struct pp_python *py = w ? python_of(w) : NULL;

	if (!w)
		return 1;
	for (__u32 i = 0; i < STEPS_A_TURN; i++)
		if (!walk_plain_step(w, slot, py))
			return 1;
	return 0;
}

__noinline int walk_native_turns(__u32 slot)
{
	struct pp_walk *w = walk_get(slot);

	if (!w)
		return 1;
	for (__u32 i = 0; i < NATIVE_TURNS; i++) {
		if (w->native_count >= PP_MAX_STEPS)
			return 1;
		if (w->native_count <= PP_MAX_STEPS - STEPS_A_TURN && !walk_plain_steps(slot))
			continue;
		if (walk_any_step(slot))
			return 1;
	}
	return 0;
}

static __always_inline void walk_python_frames(struct pp_walk *w, __u32 slot)
{
	for (__u32 i = 0; i < PYTHON_TURNS; i++)
		if (walk_python_steps(slot))
			break;
	if (!w->py_stop)
		w->py_stop = PP_PY_STOP_MAX_STEPS;
}

/* Walk Python first: its frames name the anchors that the native walk looks for. */
int walk_user(__u32 slot)
{
	struct pp_walk *w = walk_get(slot);
	struct task_struct *task = task_current();

	if (!w)
		return 1;
	w->has_user = 1;
	if (CURRENT_READ(task, utask))
		leave_uprobes_page(slot);
	if (!w->context.python)
		w->py_stop = PP_PY_STOP_NOT_PYTHON;
	else if (!walk_python_begin(slot))
		walk_python_frames(w, slot);
	if (w->py_stop == PP_PY_STOP_MAX_TIME) {
		/* The agent continues, and the native frames need the anchors that it finds. */
		w->stop = PP_STOP_MAX_TIME;
		return 0;
	}
	w->native_room = PP_MAX_FRAMES - w->python_stored;
	for (__u32 i = 0; i < NATIVE_TURNS; i++)
		if (walk_native_turns(slot))
			break;
	if (!w->stop)
		w->stop = PP_STOP_MAX_STEPS;
	if (w->is_unsure && w->stop == PP_STOP_ROOT)
		w->stop = PP_STOP_NO_INFO;
	if (w->is_exec && (w->stop == PP_STOP_READ_FAULT || w->stop == PP_STOP_NO_MAPPING)) {
		/* The old program's memory is gone, and the new program has not begun. */
		w->stop = PP_STOP_NO_USER;
		w->has_user = 0;
	}
	return 0;
}

int walk_python_only(__u32 slot)
{
	struct pp_walk *w = walk_get(slot);

	if (!w)
		return 1;
	w->has_user = 1;
	w->stop = PP_STOP_ROOT;
	if (!walk_python_other(slot))
		walk_python_frames(w, slot);
	return 0;
}
