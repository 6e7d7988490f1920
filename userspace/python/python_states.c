/* SPDX-License-Identifier: BSD-2-Clause */
#include "python/python_states.h"

#include <string.h>

#include "base/io.h"

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

static uint64_t read_u64(const struct python_where *where, uint64_t address)
{
	uint64_t value = 0;

	return process_read(where->pid, address, &value, sizeof(value)) ? 0 : value;
}

static uint64_t field(const uint8_t head[PP_TSTATE_READ_BYTES], uint16_t offset)
{
	uint64_t value;

	if (offset > PP_TSTATE_READ_BYTES - sizeof(value))
		return 0;
	memcpy(&value, head + offset, sizeof(value));
	return value;
}

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
	const bool is_mine = field(head, layout->ts_thread_id) == search->stack->thread_pointer;
	uint64_t anchor = field(head, layout->ts_frame);

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
		anchor = field(head, layout->ts_cframe);
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
			    field(head, layout->ts_interp) != interp)
				break;
			weigh(search, state, head);
			state = field(head, layout->ts_next);
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
	uint64_t word;

	for (size_t i = 0; i < sizeof(kept); i++)
		if (is_running(search, stack->registers[kept[i]]))
			return;
	for (size_t at = 0; at + sizeof(word) <= stack->size; at += sizeof(word)) {
		memcpy(&word, stack->bytes + at, sizeof(word));
		if (is_running(search, word))
			return;
	}
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
