/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* bpf/lib/walk_python.bpf.h and thread_state.bpf.h: from a thread to its PyThreadState. */
#include "host.h"
#include "python.h"

static bool finds_state(void)
{
	host->walk.py_stop = 0;
	host->walk.thread_state = 0;
	return !walk_python_begin(0) && host->walk.thread_state == state_address;
}

static void thread_state__by_thread_offset(void **state)
{
	(void)state;
	python_begin(PP_CHAIN_SHIM, 13);
	host->walk.thread_pointer = HEAP + 0x8000;
	put_word(state_address + TS_THREAD_ID, HEAP + 0x8000);
	put_word(HEAP + 0x8000 - 0x40, state_address);
	host->walk.context.tls[0] = (struct pp_tls){.mode = PP_TLS_THREAD_OFFSET, .offset = -0x40};
	assert_true(finds_state());
}

static void thread_state__by_glibc_key_in_both_places(void **state)
{
	uint64_t key = HEAP + 0x9004, block = HEAP + 0xa000;

	(void)state;
	python_begin(PP_CHAIN_SHIM, 13);
	host->walk.thread_pointer = HEAP + 0x8000;
	put_word(state_address + TS_THREAD_ID, HEAP + 0x8000);
	host->walk.context.tls[0] = (struct pp_tls){.mode = PP_TLS_PTHREAD_KEY, .address = key};
	put_u32(key - 4, 1);
	put_u32(key, 3);
	put_word(HEAP + 0x8000 + 0x310 + 16 * 3 + 8, state_address);
	assert_true(finds_state());
	put_u32(key, 32 + 5);
	assert_false(finds_state()); /* no second block yet */
	put_word(HEAP + 0x8000 + 0x510 + 8, block);
	put_word(block + 16 * 5 + 8, state_address);
	assert_true(finds_state());
	put_u32(key, 4000); /* more than glibc has */
	assert_false(finds_state());
}

/* The first key beyond the 32 in the thread itself; keys up to 1024 are taken. */
static void thread_state__by_the_outermost_keys(void **state)
{
	static const struct {
		uint32_t key;
		bool is_found;
	} cases[] = {{0, true}, {31, true}, {32, true}, {1023, true}, {1024, true}, {1025, false}};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const uint64_t key = HEAP + 0x9004, block = HEAP + 0xa000, tp = HEAP + 0x8000;
		const uint32_t number = cases[i].key;

		host_teardown(NULL);
		host_setup(NULL);
		python_begin(PP_CHAIN_SHIM, 13);
		host->walk.thread_pointer = tp;
		host->walk.context.tls[0] =
			(struct pp_tls){.mode = PP_TLS_PTHREAD_KEY, .address = key};
		put_u32(key, number);
		if (number < 32) {
			put_word(tp + 0x310 + 16 * number + 8, state_address);
		} else {
			put_word(tp + 0x510 + 8 * (number / 32), block);
			put_word(block + 16 * (number % 32) + 8, state_address);
		}
		if (finds_state() != cases[i].is_found)
			fail_msg("key %u", number);
	}
}

/* Py_tss_t is the last that the interpreter's memory has. */
static void thread_state__key_may_end_where_memory_does(void **state)
{
	const uint64_t key = HEAP + HEAP_BYTES - 4, tp = HEAP + 0x8000;

	(void)state;
	python_begin(PP_CHAIN_SHIM, 13);
	host->walk.thread_pointer = tp;
	host->walk.context.tls[0] = (struct pp_tls){.mode = PP_TLS_PTHREAD_KEY, .address = key};
	put_u32(key, 5);
	put_word(tp + 0x310 + 16 * 5 + 8, state_address);
	assert_true(finds_state());
}

/* Modules have numbers from 1 on; no program has more than 4096. */
static void thread_state__by_dtv_of_the_outermost_modules(void **state)
{
	static const struct {
		uint32_t module;
		bool is_found;
	} cases[] = {{0, false}, {1, true}, {4096, true}, {4097, false}};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const uint64_t module = HEAP + 0x9000, dtv = HEAP + 0x10000, block = HEAP + 0xb000;

		host_teardown(NULL);
		host_setup(NULL);
		python_begin(PP_CHAIN_SHIM, 13);
		host->walk.thread_pointer = HEAP + 0x8000;
		put_word(module, cases[i].module);
		put_word(HEAP + 0x8000 + 8, dtv);
		put_word(block + 0x28, state_address);
		put_word(dtv + 16ULL * cases[i].module, block);
		host->walk.context.tls[0] =
			(struct pp_tls){.mode = PP_TLS_DTV, .offset = 0x28, .address = module};
		if (finds_state() != cases[i].is_found)
			fail_msg("module %u", cases[i].module);
	}
}

static void thread_state__by_musl_key(void **state)
{
	uint64_t key = HEAP + 0x9004, values = HEAP + 0xa000;

	(void)state;
	python_begin(PP_CHAIN_SHIM, 13);
	host->walk.thread_pointer = HEAP + 0x8000;
	put_word(state_address + TS_THREAD_ID, HEAP + 0x8000);
	host->walk.context.tls[0] =
		(struct pp_tls){.mode = PP_TLS_PTHREAD_KEY_MUSL, .address = key};
	put_u32(key, 6);
	put_word(HEAP + 0x8000 + 0x80, values);
	put_word(values + 8 * 6, state_address);
	assert_true(finds_state());
}

static void thread_state__by_dtv_of_both_libcs(void **state)
{
	uint64_t module = HEAP + 0x9000, dtv = HEAP + 0xa000, block = HEAP + 0xb000;

	(void)state;
	python_begin(PP_CHAIN_SHIM, 13);
	host->walk.thread_pointer = HEAP + 0x8000;
	put_word(state_address + TS_THREAD_ID, HEAP + 0x8000);
	put_word(module, 5);
	put_word(HEAP + 0x8000 + 8, dtv);
	put_word(block + 0x28, state_address);
	put_word(dtv + 16 * 5, block);
	host->walk.context.tls[0] =
		(struct pp_tls){.mode = PP_TLS_DTV, .offset = 0x28, .address = module};
	assert_true(finds_state());
	put_word(dtv + 16 * 5, ~0ULL); /* not allocated yet */
	assert_false(finds_state());
	put_word(dtv + 8 * 5, block);
	host->walk.context.tls[0].mode = PP_TLS_DTV_MUSL;
	assert_true(finds_state());
}

static void thread_state__second_slot_serves_a_detached_thread(void **state)
{
	(void)state;
	python_begin(PP_CHAIN_SHIM, 13);
	put_word(host->walk.context.tls[0].address, 0);
	host->walk.context.tls[1] =
		(struct pp_tls){.mode = PP_TLS_GLOBAL, .address = heap_take(16)};
	put_word(host->walk.context.tls[1].address, state_address);
	assert_true(finds_state());
}

static void thread_state__global_one_of_another_thread_is_refused(void **state)
{
	(void)state;
	python_begin(PP_CHAIN_FRAME_OBJECT, 6);
	put_word(state_address + TS_THREAD_ID, THREAD_POINTER + 0x1000);
	assert_false(finds_state());
	assert_int_equal(host->walk.py_stop, PP_PY_STOP_NO_THREAD_STATE);
}

static void thread_state__is_asked_for_once_and_used_when_answered(void **state)
{
	const struct pp_thread_key key = {.id = {.tgid = 70, .generation = 3}, .tid = 71};
	const struct pp_event *event;

	(void)state;
	python_begin(PP_CHAIN_FRAME_OBJECT, 6);
	put_word(host->walk.context.tls[0].address, 0);
	assert_false(finds_state());
	assert_int_equal(host->record_count, 1);
	event = host->record[0].data;
	assert_ptr_equal(host->record[0].ring, &events);
	assert_int_equal(event->type, PP_EVENT_THREAD_STATE);
	assert_int_equal(host->losses[PP_LOSS_EVENTS_FULL], 0);
	assert_int_equal(event->tid, 71);
	assert_int_equal(event->id.tgid, 70);
	assert_false(finds_state());
	assert_int_equal(host->record_count, 1);
	bpf_map_update_elem(&thread_states, &key, &state_address, BPF_EXIST);
	assert_true(finds_state());
	/* The agent's answer is checked like any other. */
	put_word(state_address + TS_THREAD_ID, 0x1234);
	assert_false(finds_state());
}

/* In an NMI that may have hit an update of the map. */
static void thread_state__is_looked_up_and_no_more_where_a_lock_may_be_held(void **state)
{
	const struct pp_thread_key key = {.id = {.tgid = 70, .generation = 3}, .tid = 71};

	(void)state;
	python_begin(PP_CHAIN_FRAME_OBJECT, 6);
	put_word(host->walk.context.tls[0].address, 0);
	host->walk.may_hold_lock = 1;
	assert_false(finds_state());
	assert_int_equal(host->record_count, 0);
	assert_null(bpf_map_lookup_elem(&thread_states, &key));
	bpf_map_update_elem(&thread_states, &key, &state_address, BPF_ANY);
	assert_true(finds_state());
	put_word(state_address + TS_THREAD_ID, 0x1234);
	assert_false(finds_state());
	assert_non_null(bpf_map_lookup_elem(&thread_states, &key));
	host->walk.may_hold_lock = 0;
	assert_false(finds_state());
	assert_null(bpf_map_lookup_elem(&thread_states, &key));
}

/* ---- several interpreters ---- */

enum {
	INTERP_THREADS = 8,
	TS_NEXT = 0,
};

static uint64_t main_interpreter, other_interpreter, other_state;

static uint64_t new_interpreter(uint64_t next, uint64_t state)
{
	uint64_t at = heap_take(64);

	put_word(at, next);
	put_word(at + INTERP_THREADS, state);
	put_word(state + TS_INTERP, at);
	return at;
}

/* The thread was bound to state_address, of the main interpreter, first; other_state is of another
 * one, and was made by another thread. */
static void several_begin(uint8_t chain, uint8_t minor)
{
	uint64_t list = heap_take(32), key = HEAP + 0x9004;

	python_begin(chain, minor);
	host->python.runtime = 0x8000;
	host->python.interp_head = list - INTERPRETER;
	host->python.interp_threads = INTERP_THREADS;
	host->python.ts_next = TS_NEXT;
	other_state = heap_take(256);
	put_word(other_state + TS_THREAD_ID, THREAD_POINTER + 0x1000);
	main_interpreter = new_interpreter(0, state_address);
	other_interpreter = new_interpreter(main_interpreter, other_state);
	put_word(list, other_interpreter);
	put_word(list + 8, main_interpreter);
	/* It has left the GIL. */
	put_word(host->walk.context.tls[0].address, 0);
	host->walk.thread_pointer = STACK + STACK_BYTES - 0x1000;
	put_word(state_address + TS_THREAD_ID, host->walk.thread_pointer);
	host->walk.context.tls[1] = (struct pp_tls){.mode = PP_TLS_PTHREAD_KEY, .address = key};
	put_u32(key - 4, 1);
	put_u32(key, 3);
	put_word(host->walk.thread_pointer + 0x310 + 16 * 3 + 8, state_address);
	host->walk.sp = STACK + 0x1000;
}

static bool finds(uint64_t wanted)
{
	host->walk.py_stop = 0;
	host->walk.thread_state = 0;
	return !walk_python_begin(0) && host->walk.thread_state == wanted;
}

/* 3.10, 3.11: by where on the C stack the activation is. */
static void several__innermost_activation_wins(void **state)
{
	(void)state;
	several_begin(PP_CHAIN_FRAME_CFRAME, 10);
	put_word(state_address + TS_FRAME, heap_take(128));
	put_word(other_state + TS_FRAME, heap_take(128));
	put_word(state_address + TS_CFRAME, STACK + 0x3000);
	put_word(other_state + TS_CFRAME, STACK + 0x2000);
	assert_true(finds(other_state));
	put_word(other_state + TS_CFRAME, STACK + 0x4000);
	assert_true(finds(state_address));
	/* Below the stack pointer, and above the thread pointer: other threads' stacks. */
	put_word(other_state + TS_CFRAME, STACK + 0x800);
	assert_true(finds(state_address));
	put_word(state_address + TS_CFRAME, STACK + 0x800);
	put_word(other_state + TS_CFRAME, STACK + STACK_BYTES - 0x800);
	assert_true(finds(state_address)); /* its first one: nothing of it runs here */
	assert_int_equal(host->losses[PP_LOSS_STATES_GUESSED], 0);
}

static void several__state_in_registers_or_on_the_stack(void **state)
{
	(void)state;
	several_begin(PP_CHAIN_FRAME_OBJECT, 9);
	put_word(state_address + TS_FRAME, heap_take(128));
	put_word(other_state + TS_FRAME, heap_take(128));
	put_word(STACK + 0x1000 + 0x2000, state_address);
	assert_true(finds(state_address));
	put_word(STACK + 0x1000 + 0x1ff8, other_state);
	assert_true(finds(other_state));
	put_word(other_state + TS_FRAME, 0); /* it runs nothing */
	assert_true(finds(state_address));
	put_word(other_state + TS_FRAME, heap_take(128));
	host->walk.registers[12] = state_address;
	assert_true(finds(state_address));
	host->walk.registers[12] = 0;
	/* One that was freed: its memory says something else. */
	put_word(other_state + TS_INTERP, 0x1234);
	assert_true(finds(state_address));
	assert_int_equal(host->losses[PP_LOSS_STATES_GUESSED], 0);
}

/* The words of a stack are aligned, even where its pointer is not. */
static void several__stack_begins_at_the_word_of_its_pointer(void **state)
{
	(void)state;
	several_begin(PP_CHAIN_FRAME_OBJECT, 9);
	put_word(state_address + TS_FRAME, heap_take(128));
	put_word(other_state + TS_FRAME, heap_take(128));
	put_word(STACK + 0x1000, other_state); /* below it */
	host->walk.sp = STACK + 0x100c;
	put_word(STACK + 0x1100, state_address);
	assert_true(finds(state_address));
	put_word(STACK + 0x1008, other_state);
	assert_true(finds(other_state));
}

static void several__a_guess_is_counted(void **state)
{
	(void)state;
	several_begin(PP_CHAIN_FRAME_OBJECT, 9);
	assert_true(finds(state_address)); /* neither runs: nothing to guess */
	assert_int_equal(host->losses[PP_LOSS_STATES_GUESSED], 0);
	put_word(other_state + TS_FRAME, heap_take(128));
	put_word(other_state + TS_THREAD_ID, host->walk.thread_pointer);
	assert_true(finds(other_state)); /* the thread made it, and it runs */
	assert_int_equal(host->losses[PP_LOSS_STATES_GUESSED], 1);
	put_word(state_address + TS_FRAME, heap_take(128));
	assert_true(finds(state_address));
	assert_int_equal(host->losses[PP_LOSS_STATES_GUESSED], 2);
}

static void several__lists_without_an_end_are_bounded(void **state)
{
	uint64_t next;

	(void)state;
	several_begin(PP_CHAIN_FRAME_OBJECT, 9);
	put_word(other_state + TS_NEXT, other_state);
	put_word(other_state + TS_FRAME, heap_take(128));
	assert_true(finds(state_address));
	assert_true(host->user_reads < 1000);
	/* More running states than are remembered: the thread's own is. */
	put_word(other_state + TS_NEXT, 0);
	for (int i = 0; i < 12; i++) {
		next = heap_take(256);
		put_word(next + TS_INTERP, other_interpreter);
		put_word(next + TS_FRAME, heap_take(128));
		put_word(next + TS_NEXT, read_u64(other_interpreter + INTERP_THREADS));
		put_word(other_interpreter + INTERP_THREADS, next);
	}
	put_word(other_state + TS_THREAD_ID, host->walk.thread_pointer);
	put_word(STACK + 0x1100, other_state);
	assert_true(finds(other_state));
}

static void several__one_interpreter_costs_one_read(void **state)
{
	uint64_t reads;

	(void)state;
	several_begin(PP_CHAIN_FRAME_CFRAME, 10);
	put_word(host->python.interp_head + INTERPRETER, main_interpreter);
	host->user_reads = 0;
	assert_true(finds(state_address));
	reads = host->user_reads;
	host->python.interp_head = 0;
	host->user_reads = 0;
	assert_true(finds(state_address));
	assert_int_equal(reads, host->user_reads + 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		host_test(thread_state__by_thread_offset),
		host_test(thread_state__by_glibc_key_in_both_places),
		host_test(thread_state__by_the_outermost_keys),
		host_test(thread_state__key_may_end_where_memory_does),
		host_test(thread_state__by_dtv_of_the_outermost_modules),
		host_test(thread_state__by_musl_key),
		host_test(thread_state__by_dtv_of_both_libcs),
		host_test(thread_state__second_slot_serves_a_detached_thread),
		host_test(thread_state__global_one_of_another_thread_is_refused),
		host_test(thread_state__is_asked_for_once_and_used_when_answered),
		host_test(thread_state__is_looked_up_and_no_more_where_a_lock_may_be_held),
		host_test(several__innermost_activation_wins),
		host_test(several__state_in_registers_or_on_the_stack),
		host_test(several__stack_begins_at_the_word_of_its_pointer),
		host_test(several__a_guess_is_counted),
		host_test(several__lists_without_an_end_are_bounded),
		host_test(several__one_interpreter_costs_one_read),
	};

	return cmocka_run_group_tests_name("bpf/thread_state", tests, NULL, NULL);
}
