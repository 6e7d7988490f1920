/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Walks the Python frames of the sampled thread, leaf to root, and cuts them into segments.  A
 * segment is what one activation of the eval loop executes; it ends at an anchor on the C stack,
 * inside that activation's native frame (docs/python.md).  The native walk comes later and places
 * the segments by these anchors. */
#ifndef BPF_LIB_WALK_PYTHON_H
#define BPF_LIB_WALK_PYTHON_H

#include "lib/code.bpf.h"
#include "lib/thread_state.bpf.h"
#include "lib/walk.bpf.h"

/* ---- the thread's state ----
 * Finds the sampled thread's PyThreadState by the thread's slots or, where there are several
 * interpreters and no slot follows the thread from one to another (CPython up to 3.11), by its C
 * stack (docs/design/walking.md). */

#define STATES_MAX 256U /* that are looked at */
#define STACK_SPAN_BYTES (8ULL << 20)
#define SCAN_WORDS 64U
#define SCAN_BYTES (SCAN_WORDS * 8)
#define SCAN_CHUNKS 32U
_Static_assert(SCAN_BYTES <= WALK_FRAMES_BYTES, "room");

/* struct pyinterpreters of 3.7 and later: head, then main, which is the oldest. */
static __always_inline bool has_several_interpreters(const struct pp_walk *w,
						     const struct pp_python *py)
{
	__u64 head[2] = {};

	if (likely(!py->interp_head) ||
	    bpf_probe_read_user(head, sizeof(head),
				(const void *)(py->interp_head + w->context.python_bias)))
		return false;
	if (py->runtime)
		return head[0] && head[0] != head[1];
	return head[0] && read_u64(head[0]); /* interp->next */
}

/* Returns whether an address lies on this thread's C stack above its stack pointer.  A thread that
 * pthread_create() made has its thread pointer right above its stack; the main thread has nothing
 * there. */
static __always_inline bool is_on_stack(const struct pp_walk *w, __u64 address)
{
	__u64 high = w->sp + STACK_SPAN_BYTES;

	if (w->thread_pointer > w->sp && w->thread_pointer < high)
		high = w->thread_pointer;
	return address >= w->sp && address < high;
}

static __always_inline void states_add(struct walk_states *s, __u64 state, bool is_mine)
{
	__u32 at = s->count < WALK_STATES ? s->count : WALK_STATES - 1;

	if (s->count >= WALK_STATES && !is_mine)
		return;
	BARRIER(at);
	s->state[at & (WALK_STATES - 1)] = state;
	s->count = at + 1;
	if (state < s->lowest)
		s->lowest = state;
	if (state > s->highest)
		s->highest = state;
}

/* Compares the state whose head is in w->state with the best one so far. */
static __always_inline void states_weigh(struct pp_walk *w, const struct pp_python *py, __u64 state)
{
	struct walk_states *s = &w->states;
	bool is_mine = state_field(w, py->ts_thread_id) == w->thread_pointer;
	__u64 anchor = state_field(w, py->ts_frame);

	if (!anchor)
		return; /* it runs nothing */
	if (py->chain == PP_CHAIN_FRAME_OBJECT) {
		if (is_mine)
			s->mine = state;
		states_add(s, state, is_mine);
		return;
	}
	if (py->chain == PP_CHAIN_FRAME_CFRAME)
		anchor = state_field(w, py->ts_cframe);
	/* The youngest activation lies lowest on the stack. */
	if (is_on_stack(w, anchor) && (!s->found || anchor < s->anchor)) {
		s->found = state;
		s->anchor = anchor;
	}
}

/* Takes the next of all thread states, newest interpreter first.  Returns nonzero when there are no
 * more. */
__noinline int states_step(__u32 slot)
{
	struct pp_walk *w = walk_get(slot);
	const struct pp_python *py = w ? python_of(w) : NULL;
	__u64 state;

	if (!py || !w->states.interp)
		return 1;
	state = w->states.next;
	w->states.next = 0;
	/* A state that was freed meanwhile belongs to no thread. */
	if (state_read(w, state) && state_field(w, py->ts_interp) == w->states.interp) {
		w->states.next = state_field(w, py->ts_next);
		states_weigh(w, py, state);
	}
	if (!w->states.next) {
		w->states.interp = read_u64(w->states.interp);
		w->states.next = read_u64(w->states.interp + py->interp_threads);
	}
	return 0;
}

static __always_inline bool states_has(struct walk_states *s, __u64 word)
{
	if (word - s->lowest > s->highest - s->lowest)
		return false;
	for (__u32 i = 0; i < WALK_STATES; i++)
		if (i < s->count && s->state[i] == word) {
			s->found = word;
			return true;
		}
	return false;
}

/* Looks for one of the states in a piece of the C stack.  Nonzero: done. */
__noinline int states_scan(__u32 slot, __u32 chunk)
{
	struct pp_walk *w = walk_get(slot);

	if (!w || bpf_probe_read_user(w->bytes, SCAN_BYTES,
				      (const void *)((w->sp & ~7ULL) + (__u64)chunk * SCAN_BYTES)))
		return 1;
	for (__u32 i = 0; i < SCAN_WORDS; i++)
		if (states_has(&w->states, ((const __u64 *)w->bytes)[i]))
			return 1;
	return 0;
}

/* Registers that a function keeps for its caller. */
static __always_inline bool states_in_registers(struct pp_walk *w)
{
#if defined(__TARGET_ARCH_arm64)
	static const __u8 kept[] = {19, 20, 21, 22, 23, 24, 25, 26, 27, 28};
#else
	static const __u8 kept[] = {3, 6, 12, 13, 14, 15};
#endif

#pragma unroll
	for (__u32 i = 0; i < sizeof(kept); i++)
		if (states_has(&w->states, w->registers[kept[i]]))
			return true;
	return false;
}

/* Sets w->states.found to the state that the stack shows, 0 if it shows none. */
__noinline int states_find(__u32 slot)
{
	struct pp_walk *w = walk_get(slot);
	const struct pp_python *py = w ? python_of(w) : NULL;

	if (!py)
		return 1;
	__builtin_memset(&w->states, 0, sizeof(w->states));
	w->states.lowest = ~0ULL;
	w->states.interp = read_u64(py->interp_head + w->context.python_bias);
	w->states.next = read_u64(w->states.interp + py->interp_threads);
	for (__u32 i = 0; i < STATES_MAX; i++)
		if (states_step(slot))
			break;
	if (!w->states.count || states_in_registers(w))
		return 0;
	/* A thread that runs Python, or that released the GIL and will take it again, has its
	 * state's address on the stack; the innermost activation's lies lowest. */
	for (__u32 i = 0; i < SCAN_CHUNKS; i++)
		if (states_scan(slot, i))
			break;
	return 0;
}

static __always_inline void ask_thread_state(struct pp_walk *w, const struct pp_thread_key *key)
{
	struct pp_event event = {
		.type = PP_EVENT_THREAD_STATE,
		.tid = w->tid,
		.time_ns = w->started_ns,
		.id = w->id,
	};
	__u64 asked = 0;

	/* Do not insert from an NMI: the agent updates this map too, and no kernel guards LRU lists
	 * against NMIs. */
	if (w->may_hold_lock)
		return;
	if (bpf_map_update_elem(&thread_states, key, &asked, BPF_NOEXIST))
		return;
	if (bpf_ringbuf_output(&events, &event, sizeof(event), 0))
		count_loss(PP_LOSS_EVENTS_FULL);
}

static __always_inline __u64 state_of_slots(struct pp_walk *w, const struct pp_python *py)
{
	__u64 state = tls_value(w, &w->context.tls[0]);

	if (state_is_ours(w, py, state, w->context.tls[0].mode))
		return state;
	state = tls_value(w, &w->context.tls[1]);
	return state_is_ours(w, py, state, w->context.tls[1].mode) ? state : 0;
}

static __always_inline __u64 state_of_agent(struct pp_walk *w, const struct pp_python *py)
{
	struct pp_thread_key key = {.id = w->id, .tid = w->tid};
	__u64 *known = bpf_map_lookup_elem(&thread_states, &key);

	if (!known)
		ask_thread_state(w, &key);
	else if (state_is_ours(w, py, *known, PP_TLS_NONE))
		return *known;
	else if (*known && !w->may_hold_lock)
		bpf_map_delete_elem(&thread_states, &key); /* freed since: ask again */
	return 0;
}

/* Chooses a state when there are several interpreters and the stack shows none of their states:
 * either no Python runs here or the state lies deeper than we look.  Takes the state that the
 * thread was bound to first if that one runs, else another that the thread made. */
static __always_inline __u64 state_guess(struct pp_walk *w, const struct pp_python *py)
{
	__u64 first = tls_value(w, &w->context.tls[1]), mine = w->states.mine;

	if (state_read(w, first) && (!mine || state_field(w, py->ts_frame)))
		mine = first;
	if (!state_read(w, mine))
		return 0;
	if (py->chain == PP_CHAIN_FRAME_OBJECT && state_field(w, py->ts_frame))
		count_loss(PP_LOSS_STATES_GUESSED);
	return mine;
}

/* Sets w->thread_state to the state's address and reads its head into w->state. */
static __always_inline bool find_thread_state(struct pp_walk *w, const struct pp_python *py,
					      __u32 slot)
{
	__u64 state = 0;

	if (unlikely(has_several_interpreters(w, py)) && !states_find(slot)) {
		state = w->states.found;
		if (!state_read(w, state))
			state = state_guess(w, py);
	} else {
		state = state_of_slots(w, py);
	}
	if (!state && w->context.tls[1].mode == PP_TLS_NONE)
		state = state_of_agent(w, py);
	w->thread_state = state;
	return state;
}

/* ---- frames ---- */

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

/* Where a frame was read to, in w->bytes; NO_FRAME: its memory is not there. */
#define NO_FRAME (~0U)

static __always_inline __u32 read_frame(struct pp_walk *w, __u64 address, __u64 size)
{
	if (bpf_probe_read_user(w->bytes + WALK_FRAMES_BYTES, size, (const void *)address))
		return NO_FRAME;
	return WALK_FRAMES_BYTES;
}

/* Frames of 3.11 and later lie one above another on the thread's data stack, except for shims,
 * which lie on the C stack, and generators, which lie in the heap. */
#define NEAR_BYTES 4096U
#define PAGE_MASK 4095ULL

/* Reads the memory below the frame as well, because the walk continues there, but not beyond the
 * frame's own page, which is the only one sure to be there. */
static __always_inline __u32 read_frames(struct pp_walk *w, __u64 address)
{
	__u64 below = address & PAGE_MASK, size;

	if (below > WALK_FRAMES_BYTES - INTERPRETER_FRAME_BYTES)
		below = WALK_FRAMES_BYTES - INTERPRETER_FRAME_BYTES;
	size = below + INTERPRETER_FRAME_BYTES;
	BARRIER(size);
	if (size > WALK_FRAMES_BYTES)
		return NO_FRAME;
	w->frames_bytes = 0;
	if (bpf_probe_read_user(w->bytes, size, (const void *)(address - below)))
		return read_frame(w, address, INTERPRETER_FRAME_BYTES);
	w->frames_start = address - below;
	w->frames_bytes = size;
	return below;
}

/* Reads a frame of 3.11 and later. */
static __always_inline __u32 take_frame(struct pp_walk *w, __u64 address)
{
	__u64 at = address - w->frames_start;

	if (at <= WALK_FRAMES_BYTES - INTERPRETER_FRAME_BYTES &&
	    at + INTERPRETER_FRAME_BYTES <= w->frames_bytes)
		return at;
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
	__u64 size =
		py->chain <= PP_CHAIN_FRAME_CFRAME ? PP_FRAME_READ_BYTES : INTERPRETER_FRAME_BYTES;

	bpf_probe_read_user(w->bytes, size, (const void *)address);
	w->py_stop = PP_PY_STOP_MAX_TIME;
}

/* Takes a step from one Python frame.  Returns nonzero when the walk is over; w->py_stop says
 * why. */
static __always_inline int walk_python_step(struct pp_walk *w, const struct pp_python *py,
					    __u32 slot)
{
	__u64 address = w->python_frame;
	__u32 at;

	if (!address) {
		w->py_stop = PP_PY_STOP_ROOT;
		return 1;
	}
	if (unlikely(walk_clock_step(w))) {
		end_in_time(w, py, address);
		return 1;
	}
	if (unlikely(py->chain <= PP_CHAIN_FRAME_CFRAME))
		at = read_frame(w, address, PP_FRAME_READ_BYTES);
	else
		at = take_frame(w, address);
	/* The verifier goes on with any offset, and not once with each way that leads here. */
	at += (__u32)w->zero;
	if (at > WALK_FRAMES_BYTES) {
		w->py_stop = PP_PY_STOP_READ_FAULT;
		return 1;
	}
	return step_python_frame(w, py, w->bytes + at, slot);
}

#endif
