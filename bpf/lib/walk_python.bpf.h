/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Walks the Python frames of the sampled thread, leaf to root, and cuts them into segments.  A
 * segment is what one activation of the eval loop executes; it ends at an anchor on the C stack,
 * inside that activation's native frame (docs/python.md).  The native walk comes later and places
 * the segments by these anchors. */
#ifndef BPF_LIB_WALK_PYTHON_H
#define BPF_LIB_WALK_PYTHON_H

#include "lib/code.bpf.h"
#include "lib/find_state.bpf.h"
#include "lib/walk_clock.bpf.h"

/* sizeof(_PyInterpreterFrame) of 3.14 and 3.15; nothing behind it is read, as the frame may end
 * where its page does.  PyFrameObject is longer than what is read of it. */
#define INTERPRETER_FRAME_BYTES 88U

static __always_inline __u64 frame_field(const __u8 *frame, __u16 offset)
{
	__u64 at = offset;

	BARRIER(at);
	if (at > PP_FRAME_READ_BYTES - 8)
		return 0;
	return *(const __u64 *)(frame + at);
}

static __always_inline __u8 frame_byte(const __u8 *frame, __u16 offset)
{
	__u64 at = offset;

	BARRIER(at);
	return frame[at & (PP_FRAME_READ_BYTES - 1)];
}

static __always_inline void end_segment(struct pp_walk *w, __u64 anchor)
{
	__u32 at = w->segment_count;

	if (unlikely(at >= PP_MAX_SEGMENTS)) {
		count_loss(PP_LOSS_SEGMENTS_FULL);
		return;
	}
	BARRIER(at);
	at &= PP_MAX_SEGMENTS - 1;
	w->segment[at].anchor = anchor;
	w->segment[at].frames = w->segment_frames;
	w->segment_count++;
	w->segment_frames = 0;
}

/* Returns the frame's instruction as struct pp_frame's `what`. */
static __always_inline __u32 frame_instruction(const __u8 *frame, const struct pp_python *py,
					       __u64 code)
{
	__u64 instruction = frame_field(frame, py->frame_instr), main_copy;
	__u32 copy;

	if (unlikely(py->flags & PP_PYTHON_LASTI))
		return instruction;
	if (likely(py->frame_tlbc_index == PP_NO_OFFSET))
		return instruction - code;
	/* Free-threaded 3.14+: a thread may run its own copy of the bytecode,
	 * co_tlbc->entries[index] (struct _PyCodeArray: size, then the entries). */
	copy = frame_field(frame, py->frame_tlbc_index);
	if (!copy || copy > 4096)
		return instruction - code;
	main_copy = read_u64(read_u64(code + py->code_tlbc) + 8 + 8 * (__u64)copy);
	return instruction - main_copy + py->code_adaptive;
}

static __always_inline int push_code(struct pp_walk *w, const struct pp_python *py,
				     const __u8 *frame, __u32 slot)
{
	__u64 code =
		frame_field(frame, py->frame_code) & ~7ULL; /* 3.14+: tags of stack references */
	__u32 what = frame_instruction(frame, py, code);
	struct walk_code_memo *memo = memo_of(w, code);

	w->code_address = code;
	if (likely(memo_holds(w, py, memo))) {
		w->code_id = memo->id;
	} else if (walk_code(slot)) {
		w->py_stop = PP_PY_STOP_BAD_CODE;
		return 1;
	}
	if (likely(w->code_id))
		python_push(w, w->code_id, what, PP_FRAME_PYTHON);
	else
		python_push(w, code, what, PP_FRAME_PYTHON_RAW);
	return 0;
}

/* Decides whether this frame ends a segment.  Up to 3.10 each activation has one frame; 3.10 has a
 * CFrame on the C stack for each.  In 3.11 an entry frame ends an activation's frames.  Since 3.12
 * a shim frame, which is no function's, does.  All versions share one path: the code that pushes a
 * frame is long, and samples run it with cold caches. */
static __always_inline int step_python_frame(struct pp_walk *w, const struct pp_python *py,
					     const __u8 *frame, __u32 slot)
{
	__u8 owner = frame_byte(frame, py->frame_owner);
	bool ends;

	if (py->chain >= PP_CHAIN_CFRAME_SHIM && owner >= py->shim_owner) {
		if (owner == py->shim_owner)
			end_segment(w, w->python_frame);
	} else {
		if (push_code(w, py, frame, slot))
			return 1;
		ends = py->chain == PP_CHAIN_CFRAME_ENTRY && frame_byte(frame, py->frame_is_entry);
		if (ends || py->chain == PP_CHAIN_FRAME_CFRAME) {
			end_segment(w, w->cframe);
			w->cframe = read_u64(w->cframe + py->cframe_previous);
		}
	}
	w->python_frame = frame_field(frame, py->frame_previous);
	return 0;
}

/* Reads one frame.  Returns NULL when its memory is not there. */
static __always_inline const __u8 *read_frame(struct pp_walk *w, __u64 address, __u64 size)
{
	if (bpf_probe_read_user(w->bytes + WALK_FRAMES_BYTES, size, (const void *)address))
		return NULL;
	return w->bytes + WALK_FRAMES_BYTES;
}

/* Frames of 3.11 and later lie one above another on the thread's data stack, except for shims,
 * which lie on the C stack, and generators, which lie in the heap. */
#define NEAR_BYTES 4096U
#define PAGE_MASK 4095ULL

/* Reads the memory below the frame as well, because the walk continues there, but not beyond the
 * frame's own page, which is the only one sure to be there. */
static __always_inline const __u8 *read_frames(struct pp_walk *w, __u64 address)
{
	__u64 below = address & PAGE_MASK, size;

	if (below > WALK_FRAMES_BYTES - INTERPRETER_FRAME_BYTES)
		below = WALK_FRAMES_BYTES - INTERPRETER_FRAME_BYTES;
	size = below + INTERPRETER_FRAME_BYTES;
	BARRIER(size);
	if (size > WALK_FRAMES_BYTES)
		return NULL;
	w->frames_bytes = 0;
	if (bpf_probe_read_user(w->bytes, size, (const void *)(address - below)))
		return read_frame(w, address, INTERPRETER_FRAME_BYTES);
	w->frames_start = address - below;
	w->frames_bytes = size;
	BARRIER(below);
	if (below > WALK_FRAMES_BYTES - INTERPRETER_FRAME_BYTES)
		return NULL;
	return w->bytes + below;
}

/* Reads a frame of 3.11 and later.  Returns NULL when its memory is not there. */
static __always_inline const __u8 *take_frame(struct pp_walk *w, __u64 address)
{
	__u64 at = address - w->frames_start;

	BARRIER(at);
	if (at <= WALK_FRAMES_BYTES - INTERPRETER_FRAME_BYTES &&
	    at + INTERPRETER_FRAME_BYTES <= w->frames_bytes)
		return w->bytes + at;
	if (!w->frames_bytes || w->frames_start - address < NEAR_BYTES ||
	    w->frame_elsewhere - address < NEAR_BYTES)
		return read_frames(w, address);
	w->frame_elsewhere = address;
	return read_frame(w, address, INTERPRETER_FRAME_BYTES);
}

/* Returns the first frame of the thread state in w->state. */
static __always_inline void find_first_frame(struct pp_walk *w, const struct pp_python *py)
{
	w->python_frame = state_field(w, py->ts_frame);
	w->frames_bytes = w->frame_elsewhere = 0;
	if (py->chain == PP_CHAIN_FRAME_CFRAME) {
		w->cframe = state_field(w, py->ts_cframe);
	} else if (py->chain == PP_CHAIN_CFRAME_ENTRY || py->chain == PP_CHAIN_CFRAME_SHIM) {
		w->cframe = w->python_frame;
		w->python_frame = read_u64(w->cframe + py->cframe_current);
	}
}

/* Finds the thread state and the first frame.  Returns nonzero when there are no Python frames;
 * w->py_stop says why. */
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
	if (!find_thread_state(w, py, slot)) {
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

/* Does the same for another thread's state, w->thread_state. */
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

/* The agent continues here and compares this copy to see whether the frame is still the same. */
static __always_inline void end_in_time(struct pp_walk *w, const struct pp_python *py,
					__u64 address)
{
	__u64 size = py->chain <= PP_CHAIN_FRAME_CFRAME ? PP_FRAME_READ_BYTES :
							  INTERPRETER_FRAME_BYTES;

	bpf_probe_read_user(w->bytes, size, (const void *)address);
	w->py_stop = PP_PY_STOP_MAX_TIME;
}

/* Takes a step from one Python frame.  Returns nonzero when the walk is over; w->py_stop says
 * why. */
static __always_inline int walk_python_step(struct pp_walk *w, const struct pp_python *py,
					    __u32 slot)
{
	__u64 address = w->python_frame;
	const __u8 *frame;

	if (!address) {
		w->py_stop = PP_PY_STOP_ROOT;
		return 1;
	}
	if (unlikely(walk_clock_step(w))) {
		end_in_time(w, py, address);
		return 1;
	}
	if (unlikely(py->chain <= PP_CHAIN_FRAME_CFRAME))
		frame = read_frame(w, address, PP_FRAME_READ_BYTES);
	else
		frame = take_frame(w, address);
	if (!frame) {
		w->py_stop = PP_PY_STOP_READ_FAULT;
		return 1;
	}
	return step_python_frame(w, py, frame, slot);
}

#endif
