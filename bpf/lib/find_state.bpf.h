/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Finds the sampled thread's PyThreadState by the thread's slots or, where there are several
 * interpreters and no slot follows the thread from one to another (CPython up to 3.11), by its C
 * stack (docs/design/walking.md). */
#ifndef BPF_LIB_FIND_STATE_H
#define BPF_LIB_FIND_STATE_H

#include "lib/thread_state.bpf.h"

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

#endif
