/* SPDX-License-Identifier: BSD-2-Clause */
#include "python/python_frames.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/bytes.h"
#include "base/cleanup.h"
#include "base/io.h"
#include "base/page_cache.h"
#include "python/python_info.h"

#define MAX_TLS_MODULES 4096U
#define MAX_PTHREAD_KEYS 1024U
#define MAX_TLBC_COPIES 4096U
#define NOT_ALLOCATED (~0ULL) /* a DTV entry of glibc's */

/* struct pthread: bpf/lib/thread_state.bpf.h has the sources. */
#define GLIBC_KEYS_OFFSET 0x310U
#define GLIBC_KEY_BLOCKS_OFFSET 0x510U
#define GLIBC_KEY_BLOCK 32U
#define MUSL_KEYS_OFFSET 0x80U

/* Where the words of GIL waits are, relative to last_holder: as bpf/lib/look.bpf.h. */
#define GIL_WAIT_LOW 24U
#if defined(__aarch64__)
#define GIL_WAIT_HIGH 216U
#else
#define GIL_WAIT_HIGH 200U
#endif

/* The same code objects appear repeatedly. */
#define CHECKED_CODES 64U

/* One walk. */
struct walk {
	const struct python_where *where;
	const struct pp_python *layout;
	struct python_frames *out;
	uint8_t state[PP_TSTATE_READ_BYTES];
	uint8_t head[PP_FRAME_READ_BYTES];    /* of the frame */
	uint64_t frame, cframe;		      /* of the next frame to read */
	uint32_t segment_frames;	      /* of the open segment */
	uint64_t checked_code[CHECKED_CODES]; /* 0: none */
	struct page_cache cache;	      /* frames are next to each other */
};

/* Returns 0 where nothing can be read, as in the kernel. */
static uint64_t read_u64(const struct python_where *where, uint64_t address)
{
	uint64_t value;

	return process_read(where->pid, address, &value, sizeof(value)) ? 0 : value;
}

static uint32_t read_u32(const struct python_where *where, uint64_t address)
{
	uint32_t value;

	return process_read(where->pid, address, &value, sizeof(value)) ? 0 : value;
}

static uint64_t field(const uint8_t *bytes, size_t size, uint16_t offset)
{
	return offset <= size - sizeof(uint64_t) ? load_u64(bytes + offset) : 0;
}

static uint64_t state_field(const struct walk *walk, uint16_t offset)
{
	return field(walk->state, sizeof(walk->state), offset);
}

static uint64_t frame_field(const struct walk *walk, uint16_t offset)
{
	return field(walk->head, sizeof(walk->head), offset);
}

static uint8_t frame_byte(const struct walk *walk, uint16_t offset)
{
	return offset < sizeof(walk->head) ? walk->head[offset] : 0;
}

/* ---- the thread state ---- */

static uint64_t pthread_value(const struct python_where *where, uint64_t tp, uint64_t key_address,
			      bool is_musl)
{
	uint32_t tss[2]; /* Py_tss_t: is_initialized, then the key */
	uint64_t key, block;

	if (process_read(where->pid, key_address - 4, tss, sizeof(tss)) ||
	    tss[1] > MAX_PTHREAD_KEYS)
		return 0;
	key = tss[1];
	if (is_musl)
		return read_u64(where, read_u64(where, tp + MUSL_KEYS_OFFSET) + 8 * key);
	if (key < GLIBC_KEY_BLOCK)
		return read_u64(where, tp + GLIBC_KEYS_OFFSET + 16 * key + 8);
	block = read_u64(where, tp + GLIBC_KEY_BLOCKS_OFFSET + 8 * (key / GLIBC_KEY_BLOCK));
	return block ? read_u64(where, block + 16 * (key % GLIBC_KEY_BLOCK) + 8) : 0;
}

static uint64_t dtv_value(const struct python_where *where, uint64_t tp, const struct pp_tls *tls)
{
	uint64_t module = read_u64(where, tls->address), block;
	uint64_t entry = tls->mode == PP_TLS_DTV ? 16 : 8;

	if (!module || module > MAX_TLS_MODULES)
		return 0;
	block = read_u64(where, read_u64(where, tp + 8) + entry * module);
	if (!block || block == NOT_ALLOCATED)
		return 0;
	return read_u64(where, block + (uint64_t)(int64_t)tls->offset);
}

static uint64_t tls_value(const struct python_where *where, uint64_t tp, const struct pp_tls *tls)
{
	switch (tls->mode) {
	case PP_TLS_THREAD_OFFSET:
		return read_u64(where, tp + (uint64_t)(int64_t)tls->offset);
	case PP_TLS_DTV:
	case PP_TLS_DTV_MUSL:
		return dtv_value(where, tp, tls);
	case PP_TLS_PTHREAD_KEY:
		return pthread_value(where, tp, tls->address, false);
	case PP_TLS_PTHREAD_KEY_MUSL:
		return pthread_value(where, tp, tls->address, true);
	case PP_TLS_GLOBAL:
		return read_u64(where, tls->address);
	default:
		return 0;
	}
}

/* Returns whether a thread state belongs to this thread: one in the thread's own slot does; a
 * global may belong to any thread. */
static bool state_is_ours(const struct python_where *where, uint64_t state, uint32_t mode,
			  uint64_t tp)
{
	uint64_t thread_id;

	if (!state || process_read(where->pid, state + where->layout->ts_thread_id, &thread_id,
				   sizeof(thread_id)))
		return false;
#if defined(__aarch64__)
	/* struct pthread ends at the thread pointer there, and we don't know its size. */
	(void)mode;
	(void)tp;
	return true;
#else
	return mode != PP_TLS_GLOBAL || thread_id == tp;
#endif
}

uint64_t python_thread_state_find(const struct python_where *where, uint64_t thread_pointer)
{
	for (size_t i = 0; i < 2; i++) {
		const struct pp_tls *tls = &where->tls[i];
		uint64_t state = tls_value(where, thread_pointer, tls);

		if (state_is_ours(where, state, tls->mode, thread_pointer))
			return state;
	}
	return 0;
}

/* ---- what the state says: as holds_gil(), collects_garbage() and gil_find() ---- */

static bool holds_gil(const struct walk *walk)
{
	const struct pp_python *layout = walk->layout;
	const struct python_where *where = walk->where;
	uint64_t base, state = walk->out->thread_state;

	switch (layout->gil_mode) {
	case PP_GIL_RUNTIME:
		base = layout->runtime + where->bias + layout->gil_offset;
		return read_u64(where, base) == state && read_u32(where, base + 8) == 1;
	case PP_GIL_INTERPRETER:
		base = read_u64(where, state_field(walk, layout->ts_interp) + layout->gil_offset);
		return base && read_u64(where, base + layout->gil_holder) == state &&
		       read_u32(where, base + layout->gil_locked) == 1;
	case PP_GIL_TSTATE_BIT: /* struct _status of 3.13: holds_gil is bit 5 */
		return state_field(walk, (uint16_t)layout->gil_offset) >> 5 & 1;
	case PP_GIL_TSTATE_INT:
		return (uint32_t)state_field(walk, (uint16_t)layout->gil_offset) != 0;
	case PP_GIL_CURRENT:
		return read_u64(where, where->tls[0].address) == state;
	default:
		return false;
	}
}

static bool collects_garbage(const struct walk *walk)
{
	const struct pp_python *layout = walk->layout;
	uint64_t offset = layout->gc_offset;

	switch (layout->gc_mode) {
	case PP_GC_RUNTIME:
		return read_u32(walk->where, layout->runtime + walk->where->bias + offset) != 0;
	case PP_GC_INTERPRETER:
		return read_u32(walk->where, state_field(walk, layout->ts_interp) + offset) != 0;
	case PP_GC_GLOBAL:
		return read_u32(walk->where, walk->where->bias + offset) != 0;
	default:
		return false;
	}
}

static uint64_t find_gil(const struct walk *walk)
{
	const struct pp_python *layout = walk->layout;
	uint64_t gil;

	if (layout->flags & PP_PYTHON_FREE_THREADED)
		return 0;
	if (layout->gil_mode == PP_GIL_CURRENT)
		return walk->where->tls[0].address;
	if (layout->gil_mode == PP_GIL_RUNTIME)
		return layout->runtime + walk->where->bias + layout->gil_offset;
	if (layout->interp_gil == PP_NO_OFFSET)
		return 0;
	gil = read_u64(walk->where, state_field(walk, layout->ts_interp) + layout->interp_gil);
	return gil ? gil + layout->gil_holder : 0;
}

bool python_gil_owns(const struct python_where *where, const struct python_frames *frames,
		     uint64_t word)
{
	const struct pp_python *layout = where->layout;
	uint64_t low = frames->gil + GIL_WAIT_LOW, high = frames->gil + GIL_WAIT_HIGH;

	if (!frames->gil)
		return false;
	/* 3.6's words are elsewhere, and 2.7's are unknown: then the range is empty. */
	if (layout->gil_mode == PP_GIL_CURRENT) {
		low = where->bias + layout->gil_wait_low;
		high = low + layout->gil_wait_bytes;
	}
	return word >= low && word < high;
}

/* ---- frames ---- */

static void end_segment(struct walk *walk, uint64_t anchor)
{
	struct python_frames *out = walk->out;

	/* Above the bound the frames are added to the last segment. */
	if (out->segment_count == PP_MAX_SEGMENTS)
		return;
	out->segment[out->segment_count++] =
		(struct pp_segment){.anchor = anchor, .frames = walk->segment_frames};
	walk->segment_frames = 0;
}

/* As area_slot() in bpf/lib/frames.bpf.h: the last quarter is a ring. */
static void push(struct walk *walk, uint64_t code, uint32_t what)
{
	const uint32_t room = PP_MAX_PYTHON_FRAMES, ring = room / PP_ROOT_SHARE, leaf = room - ring;
	struct python_frames *out = walk->out;
	uint32_t at = out->count < room ? out->count : leaf + (out->count - leaf) % ring;

	out->frame[at] =
		(struct pp_frame){.where = code, .what = what, .kind = PP_FRAME_PYTHON_RAW};
	out->count++;
	if (out->stored < room)
		out->stored++;
	walk->segment_frames++;
}

static uint32_t frame_instruction(const struct walk *walk, uint64_t code)
{
	const struct pp_python *layout = walk->layout;
	uint64_t instruction = frame_field(walk, layout->frame_instr), copies;
	uint32_t copy;

	if (layout->flags & PP_PYTHON_LASTI || layout->frame_tlbc_index == PP_NO_OFFSET)
		return (uint32_t)(layout->flags & PP_PYTHON_LASTI ? instruction
								  : instruction - code);
	/* Free-threaded 3.14+: a thread may run its own copy of the bytecode. */
	copy = (uint32_t)frame_field(walk, layout->frame_tlbc_index);
	if (!copy || copy > MAX_TLBC_COPIES)
		return (uint32_t)(instruction - code);
	copies = read_u64(walk->where, code + layout->code_tlbc);
	return (uint32_t)(instruction - read_u64(walk->where, copies + 8 + 8 * (uint64_t)copy) +
			  layout->code_adaptive);
}

static bool is_code(struct walk *walk, uint64_t address)
{
	const struct pp_python *layout = walk->layout;
	uint64_t *checked = &walk->checked_code[address / 16 % CHECKED_CODES], type;

	if (address && *checked == address)
		return true;
	if (page_cache_read(&walk->cache, address + layout->ob_type, &type, sizeof(type)) ||
	    type != layout->code_type + walk->where->bias)
		return false;
	*checked = address;
	return true;
}

/* Returns false when the frame does not point to a code object. */
static bool push_code(struct walk *walk)
{
	/* 3.14+: tags of stack references */
	uint64_t code = frame_field(walk, walk->layout->frame_code) & ~7ULL;

	if (!is_code(walk, code)) {
		walk->out->stop = PP_PY_STOP_BAD_CODE;
		return false;
	}
	push(walk, code, frame_instruction(walk, code));
	return true;
}

/* Ends the activation of walk->cframe. */
static void leave_cframe(struct walk *walk)
{
	uint64_t at = walk->cframe + walk->layout->cframe_previous;

	end_segment(walk, walk->cframe);
	if (page_cache_read(&walk->cache, at, &walk->cframe, sizeof(walk->cframe)))
		walk->cframe = 0;
}

static bool step_frame_object(struct walk *walk)
{
	const struct pp_python *layout = walk->layout;

	if (!push_code(walk))
		return false;
	if (layout->chain == PP_CHAIN_FRAME_CFRAME)
		leave_cframe(walk);
	walk->frame = frame_field(walk, layout->frame_previous);
	return true;
}

static bool step_interpreter_frame(struct walk *walk)
{
	const struct pp_python *layout = walk->layout;
	uint8_t owner = frame_byte(walk, layout->frame_owner);

	if (layout->chain == PP_CHAIN_CFRAME_ENTRY) {
		if (!push_code(walk))
			return false;
		if (frame_byte(walk, layout->frame_is_entry))
			leave_cframe(walk);
	} else if (owner >= layout->shim_owner) {
		/* Other frames owned by C neither run nor have an anchor. */
		if (owner == layout->shim_owner)
			end_segment(walk, walk->frame);
	} else if (!push_code(walk)) {
		return false;
	}
	walk->frame = frame_field(walk, layout->frame_previous);
	return true;
}

static void find_first_frame(struct walk *walk)
{
	const struct pp_python *layout = walk->layout;

	walk->frame = state_field(walk, layout->ts_frame);
	if (layout->chain == PP_CHAIN_FRAME_CFRAME) {
		walk->cframe = state_field(walk, layout->ts_cframe);
	} else if (layout->chain == PP_CHAIN_CFRAME_ENTRY ||
		   layout->chain == PP_CHAIN_CFRAME_SHIM) {
		walk->cframe = walk->frame;
		walk->frame = read_u64(walk->where, walk->cframe + layout->cframe_current);
	}
}

static size_t head_bytes(const struct pp_python *layout)
{
	return layout->chain <= PP_CHAIN_FRAME_CFRAME ? PP_FRAME_READ_BYTES : PYTHON_FRAME_BYTES;
}

static void walk_frames(struct walk *walk)
{
	const bool is_object = walk->layout->chain <= PP_CHAIN_FRAME_CFRAME;
	size_t size = head_bytes(walk->layout);
	struct python_frames *out = walk->out;

	/* Frames that the kernel side has walked count too. */
	for (uint32_t step = out->count; step < PP_MAX_STEPS; step++) {
		if (!walk->frame) {
			out->stop = PP_PY_STOP_ROOT;
			return;
		}
		if (page_cache_read(&walk->cache, walk->frame, walk->head, size)) {
			out->stop = PP_PY_STOP_READ_FAULT;
			return;
		}
		if (!(is_object ? step_frame_object(walk) : step_interpreter_frame(walk)))
			return;
	}
	out->stop = PP_PY_STOP_MAX_STEPS;
}

static void walk_init(struct walk *walk, const struct python_where *where,
		      struct python_frames *out)
{
	walk->where = where;
	walk->layout = where->layout;
	walk->out = out;
	walk->segment_frames = 0;
	memset(walk->checked_code, 0, sizeof(walk->checked_code));
	page_cache_init(&walk->cache, where->pid);
}

void python_frames_read(const struct python_where *where, uint64_t thread_state,
			struct python_frames *ret_frames)
{
	struct walk walk;

	walk_init(&walk, where, ret_frames);
	ret_frames->thread_state = thread_state;
	ret_frames->gil = 0;
	ret_frames->count_flags = 0;
	ret_frames->stored = ret_frames->count = ret_frames->segment_count = 0;
	ret_frames->stop = PP_PY_STOP_NOT_PYTHON;
	if (!walk.layout->chain)
		return;
	ret_frames->stop = PP_PY_STOP_NO_THREAD_STATE;
	if (!thread_state || process_read(where->pid, thread_state, walk.state, sizeof(walk.state)))
		return;
	ret_frames->count_flags = PP_COUNT_PYTHON;
	if (holds_gil(&walk))
		ret_frames->count_flags |= PP_COUNT_GIL_HELD;
	if (collects_garbage(&walk))
		ret_frames->count_flags |= PP_COUNT_GC;
	ret_frames->gil = find_gil(&walk);
	find_first_frame(&walk);
	walk_frames(&walk);
}

/* Watches the words that show whether the frame is in the same call as when its head was read. */
static void watch_call(struct walk *walk, const struct python_resume *from)
{
	const struct pp_python *layout = walk->layout;
	const uint16_t same[] = {layout->frame_code, layout->frame_previous, layout->frame_instr};
	struct page_witness witness[ARRAY_SIZE(same)];

	for (size_t i = 0; i < ARRAY_SIZE(same); i++)
		witness[i] = (struct page_witness){.address = from->frame + same[i],
						   .word = field(from->head, head_bytes(layout),
								 same[i]),
						   .mask = UINT64_MAX};
	/* f_lasti is an int; other fields follow it. */
	if (layout->flags & PP_PYTHON_LASTI)
		witness[2].mask = UINT32_MAX;
	page_cache_watch(&walk->cache, witness, ARRAY_SIZE(witness));
}

int python_frames_resume(const struct python_where *where, const struct python_resume *from,
			 struct python_frames *frames)
{
	struct walk walk;

	if (!where->layout->chain)
		return -ESTALE;
	walk_init(&walk, where, frames);
	watch_call(&walk, from);
	walk.frame = from->frame;
	walk.cframe = from->cframe;
	walk.segment_frames = from->segment_frames;
	walk_frames(&walk);
	return page_cache_holds(&walk.cache) ? 0 : -ESTALE;
}

/* Which thread state a sleeping thread runs in a process with several interpreters: what
 * bpf/lib/walk_python.bpf.h does for a thread that runs, with the same results.  Reads live memory;
 * nothing of it is trusted. */

/* As in bpf/lib/walk_python.bpf.h. */
#define STATES_MAX 256U
#define RUNNING_MAX 8U
#define STACK_SPAN_BYTES (8ULL << 20)

struct search {
	const struct python_where *where;
	const struct python_stack *stack;
	uint64_t found, anchor;	       /* what the stack shows, and where */
	uint64_t mine;		       /* that this thread made, and that runs something */
	uint64_t running[RUNNING_MAX]; /* <= 3.9 */
	uint32_t count;
};

bool python_states_are_several(const struct python_where *where)
{
	const struct pp_python *layout = where->layout;
	uint64_t head[2]; /* struct pyinterpreters: head, main */

	if (!layout->interp_head ||
	    process_read(where->pid, layout->interp_head + where->bias, head, sizeof(head)))
		return false;
	if (layout->runtime)
		return head[0] && head[0] != head[1];
	return head[0] && read_u64(where, head[0]);
}

static bool is_on_stack(const struct python_stack *stack, uint64_t address)
{
	const uint64_t sp = stack->registers[PP_REG_SP];
	uint64_t high = sp + STACK_SPAN_BYTES;

	if (stack->thread_pointer > sp && stack->thread_pointer < high)
		high = stack->thread_pointer;
	return address >= sp && address < high;
}

static void weigh(struct search *search, uint64_t state, const uint8_t *head)
{
	const struct pp_python *layout = search->where->layout;
	const uint64_t thread = field(head, PP_TSTATE_READ_BYTES, layout->ts_thread_id);
	const bool is_mine = thread == search->stack->thread_pointer;
	uint64_t anchor = field(head, PP_TSTATE_READ_BYTES, layout->ts_frame);

	if (!anchor)
		return;
	if (layout->chain == PP_CHAIN_FRAME_OBJECT) {
		if (is_mine)
			search->mine = state;
		if (search->count < RUNNING_MAX)
			search->running[search->count++] = state;
		else if (is_mine)
			search->running[RUNNING_MAX - 1] = state;
		return;
	}
	if (layout->chain == PP_CHAIN_FRAME_CFRAME)
		anchor = field(head, PP_TSTATE_READ_BYTES, layout->ts_cframe);
	if (is_on_stack(search->stack, anchor) && (!search->found || anchor < search->anchor)) {
		search->found = state;
		search->anchor = anchor;
	}
}

static void weigh_all(struct search *search)
{
	const struct python_where *where = search->where;
	const struct pp_python *layout = where->layout;
	uint64_t interp = read_u64(where, layout->interp_head + where->bias), state;
	uint8_t head[PP_TSTATE_READ_BYTES];
	unsigned int steps = 0;

	for (; interp && steps < STATES_MAX; interp = read_u64(where, interp)) {
		state = read_u64(where, interp + layout->interp_threads);
		/* One that was freed meanwhile belongs to nobody. */
		for (; state && steps < STATES_MAX; steps++) {
			if (process_read(where->pid, state, head, sizeof(head)) ||
			    field(head, PP_TSTATE_READ_BYTES, layout->ts_interp) != interp)
				break;
			weigh(search, state, head);
			state = field(head, PP_TSTATE_READ_BYTES, layout->ts_next);
		}
		steps++;
	}
}

static bool is_running(struct search *search, uint64_t word)
{
	for (uint32_t i = 0; i < search->count; i++) {
		if (search->running[i] == word) {
			search->found = word;
			return true;
		}
	}
	return false;
}

/* Whoever has left the GIL and means to take it again holds the state on the stack. */
static void scan(struct search *search)
{
#if defined(__aarch64__)
	static const uint8_t kept[] = {19, 20, 21, 22, 23, 24, 25, 26, 27, 28};
#else
	static const uint8_t kept[] = {3, 6, 12, 13, 14, 15};
#endif
	const struct python_stack *stack = search->stack;

	for (size_t i = 0; i < sizeof(kept); i++)
		if (is_running(search, stack->registers[kept[i]]))
			return;
	for (size_t at = 0; at + sizeof(uint64_t) <= stack->size; at += sizeof(uint64_t))
		if (is_running(search, load_u64(stack->bytes + at)))
			return;
}

static uint64_t guess(const struct search *search)
{
	/* What is current is of the thread that holds the GIL, whoever made it. */
	const struct python_where slot = {.pid = search->where->pid,
					  .layout = search->where->layout,
					  .bias = search->where->bias,
					  .tls = {{0}, search->where->tls[1]}};
	const uint64_t first = python_thread_state_find(&slot, search->stack->thread_pointer);

	if (first && (!search->mine || read_u64(search->where, first + slot.layout->ts_frame)))
		return first;
	return search->mine;
}

uint64_t python_state_on_stack(const struct python_where *where, const struct python_stack *stack)
{
	struct search search = {.where = where, .stack = stack};

	weigh_all(&search);
	if (search.count)
		scan(&search);
	return search.found ? search.found : guess(&search);
}
