/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The Python frames of the sampled thread, leaf to root, cut into segments: one segment is what one
 * eval activation runs, and ends at a mark that lies on the C stack inside that activation's native
 * frame (docs/python.md).  Native frames come later and place the segments by those marks. */
#ifndef BPF_LIB_WALK_PYTHON_H
#define BPF_LIB_WALK_PYTHON_H

#include "lib/code.bpf.h"
#include "lib/thread_state.bpf.h"
#include "lib/walk_clock.bpf.h"

/* sizeof(_PyInterpreterFrame) of 3.14 and 3.15; nothing behind it is read, as the frame may end
 * where its page does.  PyFrameObject is longer than what is read of it. */
#define INTERPRETER_FRAME_BYTES 88U

static __always_inline __u64 frame_field(const struct pp_walk *w, __u16 offset)
{
	__u64 at = offset;

	BARRIER(at);
	if (at > PP_FRAME_READ_BYTES - 8)
		return 0;
	return *(const __u64 *)(w->bytes + at);
}

static __always_inline __u8 frame_byte(const struct pp_walk *w, __u16 offset)
{
	__u64 at = offset;

	BARRIER(at);
	return w->bytes[at & (PP_FRAME_READ_BYTES - 1)];
}

static __always_inline void end_segment(struct pp_walk *w, __u64 mark)
{
	__u32 at = w->segment_count;

	if (at >= PP_MAX_SEGMENTS) {
		count_loss(PP_LOSS_SEGMENTS_FULL);
		return;
	}
	BARRIER(at);
	at &= PP_MAX_SEGMENTS - 1;
	w->segment[at].mark = mark;
	w->segment[at].frames = w->segment_frames;
	w->segment_count++;
	w->segment_frames = 0;
}

/* The instruction of the frame in w->bytes, as struct pp_frame's `what`. */
static __always_inline __u32 frame_instruction(struct pp_walk *w, const struct pp_python *py,
					       __u64 code)
{
	__u64 instruction = frame_field(w, py->frame_instr), main_copy;
	__u32 copy;

	if (py->flags & PP_PYTHON_LASTI)
		return instruction;
	if (py->frame_tlbc_index == PP_NO_OFFSET)
		return instruction - code;
	/* Free-threaded 3.14+: a thread may run its own copy of the bytecode,
	 * co_tlbc->entries[index] (struct _PyCodeArray: size, then the entries). */
	copy = frame_field(w, py->frame_tlbc_index);
	if (!copy || copy > 4096)
		return instruction - code;
	main_copy = read_u64(read_u64(code + py->code_tlbc) + 8 + 8 * (__u64)copy);
	return instruction - main_copy + py->code_adaptive;
}

static __always_inline int push_code(struct pp_walk *w, const struct pp_python *py, __u32 slot)
{
	__u64 code = frame_field(w, py->frame_code) & ~7ULL; /* 3.14+: tags of stack references */
	__u32 what = frame_instruction(w, py, code);

	w->code_address = code;
	if (walk_code(slot)) {
		w->py_stop = PP_PY_STOP_BAD_CODE;
		return 1;
	}
	if (w->code_id)
		python_push(w, w->code_id, what, PP_FRAME_PYTHON);
	else
		python_push(w, code, what, PP_FRAME_PYTHON_RAW);
	return 0;
}

/* <= 3.10: one frame an activation; 3.10 has a CFrame on the C stack of each. */
static __always_inline int step_frame_object(struct pp_walk *w, const struct pp_python *py,
					     __u32 slot)
{
	if (push_code(w, py, slot))
		return 1;
	if (py->chain == PP_CHAIN_FRAME_CFRAME) {
		end_segment(w, w->cframe);
		w->cframe = read_u64(w->cframe + py->cframe_previous);
	}
	w->python_frame = frame_field(w, py->frame_previous);
	return 0;
}

static __always_inline int step_interpreter_frame(struct pp_walk *w, const struct pp_python *py,
						  __u32 slot)
{
	__u8 owner = frame_byte(w, py->frame_owner);

	if (py->chain == PP_CHAIN_CFRAME_ENTRY) {
		if (push_code(w, py, slot))
			return 1;
		if (frame_byte(w, py->frame_is_entry)) {
			end_segment(w, w->cframe);
			w->cframe = read_u64(w->cframe + py->cframe_previous);
		}
	} else if (owner == py->shim_owner) {
		end_segment(w, w->python_frame);
	} else if (owner < py->shim_owner && push_code(w, py, slot)) {
		return 1;
	}
	w->python_frame = frame_field(w, py->frame_previous);
	return 0;
}

static __always_inline struct pp_python *python_of(const struct pp_walk *w)
{
	__u32 index = w->image.python - 1;

	return w->image.python ? bpf_map_lookup_elem(&pythons, &index) : NULL;
}

/* The first frame of the thread state in w->state. */
static __always_inline void find_first_frame(struct pp_walk *w, const struct pp_python *py)
{
	w->python_frame = state_field(w, py->ts_frame);
	if (py->chain == PP_CHAIN_FRAME_CFRAME) {
		w->cframe = state_field(w, py->ts_cframe);
	} else if (py->chain == PP_CHAIN_CFRAME_ENTRY || py->chain == PP_CHAIN_CFRAME_SHIM) {
		w->cframe = w->python_frame;
		w->python_frame = read_u64(w->cframe + py->cframe_current);
	}
}

/* Finds the thread state and the first frame.  Nonzero: no Python frames, w->py_stop says why. */
int walk_python_begin(__u32 slot)
{
	struct pp_walk *w = walk_get(slot);
	struct pp_python *py = w ? python_of(w) : NULL;

	if (!w)
		return 1;
	if (!py || !py->chain) {
		w->py_stop = PP_PY_STOP_NOT_PYTHON;
		return 1;
	}
	if (!find_thread_state(w, py)) {
		w->py_stop = PP_PY_STOP_NO_THREAD_STATE;
		return 1;
	}
	w->count_flags |= PP_COUNT_PYTHON;
	if (holds_gil(w, py))
		w->count_flags |= PP_COUNT_GIL_HELD;
	if (collects_garbage(w, py))
		w->count_flags |= PP_COUNT_GC;
	find_first_frame(w, py);
	return 0;
}

/* The same for another thread's state, w->thread_state. */
int walk_python_other(__u32 slot)
{
	struct pp_walk *w = walk_get(slot);
	struct pp_python *py = w ? python_of(w) : NULL;

	if (!py || !py->chain)
		return 1;
	if (bpf_probe_read_user(w->state, sizeof(w->state), (const void *)w->thread_state)) {
		w->py_stop = PP_PY_STOP_READ_FAULT;
		return 1;
	}
	w->count_flags |= PP_COUNT_PYTHON;
	find_first_frame(w, py);
	return 0;
}

/* One frame.  Nonzero: done, w->py_stop says why. */
int walk_python_step(__u32 slot)
{
	struct pp_walk *w = walk_get(slot);
	struct pp_python *py = w ? python_of(w) : NULL;
	__u64 frame, size;

	if (!py)
		return 1;
	frame = w->python_frame;
	if (!frame) {
		w->py_stop = PP_PY_STOP_ROOT;
		return 1;
	}
	if (walk_clock_step(w)) {
		w->py_stop = PP_PY_STOP_MAX_TIME;
		return 1;
	}
	size = py->chain <= PP_CHAIN_FRAME_CFRAME ? PP_FRAME_READ_BYTES : INTERPRETER_FRAME_BYTES;
	if (bpf_probe_read_user(w->bytes, size, (const void *)frame)) {
		w->py_stop = PP_PY_STOP_READ_FAULT;
		return 1;
	}
	if (py->chain <= PP_CHAIN_FRAME_CFRAME)
		return step_frame_object(w, py, slot);
	return step_interpreter_frame(w, py, slot);
}

#endif
