/* SPDX-License-Identifier: BSD-2-Clause */
/* Thread states of several interpreters in memory of our own, which plays the profiled process. */
#include "fake_frames.h"

#include "base/cleanup.h"

#define UNREADABLE 0x100ULL
#define NEXT_INTERPRETER 0
#define INTERPRETER_THREADS 16
#define TS_NEXT 0
#define STATES 300U
#define MOST_STATES 256U
#define MOST_RUNNING 8U
#if defined(__aarch64__)
#define FIRST_KEPT 19
#define LAST_KEPT 28
#else
#define FIRST_KEPT 3
#define LAST_KEPT 15
#endif

/* The thread's stack goes from SP on to its struct pthread at THREAD. */
#define SP 8U
#define THREAD 100U
#define TAKEN_BYTES (40 * sizeof(uint64_t))

static struct {
	uint64_t runtime[2]; /* struct pyinterpreters: head, main */
	uint64_t interpreter[2][4];
	uint8_t state[STATES][PP_TSTATE_READ_BYTES];
	uint64_t stack[128];
	__u64 registers[PP_REG_COUNT];
} process;
static struct python_stack taken;

/* One interpreter without threads. */
static void begin(uint8_t chain)
{
	fake_begin(chain);
	memset(&process, 0, sizeof(process));
	fake.layout.interp_head = at(process.runtime) - BIAS;
	fake.layout.interp_threads = INTERPRETER_THREADS;
	fake.layout.ts_next = TS_NEXT;
	fake.layout.ts_thread_id = TS_THREAD_ID;
	fake.layout.runtime = 1;
	fake.where.bias = BIAS;
	process.runtime[0] = process.runtime[1] = at(process.interpreter[0]);
	process.registers[PP_REG_SP] = at(&process.stack[SP]);
	taken = (struct python_stack){.thread_pointer = at(&process.stack[THREAD]),
				      .registers = process.registers,
				      .bytes = (const uint8_t *)&process.stack[SP],
				      .size = TAKEN_BYTES};
}

/* Puts a state in front of the list of an interpreter. */
static void add_state(size_t interpreter, size_t state, uint64_t frame, uint64_t thread)
{
	uint64_t *list = &process.interpreter[interpreter][INTERPRETER_THREADS / 8];

	put(process.state[state], TS_NEXT, *list);
	put(process.state[state], TS_INTERP, at(process.interpreter[interpreter]));
	put(process.state[state], TS_FRAME, frame);
	put(process.state[state], TS_THREAD_ID, thread);
	*list = at(process.state[state]);
}

/* Returns the index of the state that is found; -1: none. */
static int found(void)
{
	const uint64_t state = python_state_on_stack(&fake.where, &taken);

	for (size_t i = 0; state && i < STATES; i++)
		if (state == at(process.state[i]))
			return (int)i;
	assert_int_equal(state, 0);
	return -1;
}

static uint64_t on_stack(size_t word)
{
	return at(&process.stack[SP + word]);
}

/* ---- whether there are several ---- */

static void states_are_several__where_the_first_interpreter_is_not_the_main_one(void **state)
{
	(void)state;
	begin(PP_CHAIN_SHIM);
	assert_false(python_states_are_several(&fake.where));
	process.runtime[0] = at(process.interpreter[1]);
	assert_true(python_states_are_several(&fake.where));
	process.runtime[0] = 0; /* it begins, or ends */
	assert_false(python_states_are_several(&fake.where));
	process.runtime[0] = at(process.interpreter[1]);
	fake.layout.interp_head = UNREADABLE - BIAS;
	assert_false(python_states_are_several(&fake.where));
	fake.layout.interp_head = 0;
	assert_false(python_states_are_several(&fake.where));
}

/* Up to 3.6 nothing says which one is the main one. */
static void states_are_several__where_one_follows_the_first(void **state)
{
	(void)state;
	begin(PP_CHAIN_FRAME_OBJECT);
	fake.layout.runtime = 0;
	process.runtime[1] = 0;
	assert_false(python_states_are_several(&fake.where));
	process.interpreter[0][NEXT_INTERPRETER] = at(process.interpreter[1]);
	assert_true(python_states_are_several(&fake.where));
	process.runtime[0] = 0;
	assert_false(python_states_are_several(&fake.where));
}

/* ---- which one ---- */

static void state_on_stack__innermost_activation_tells(void **state)
{
	(void)state;
	begin(PP_CHAIN_SHIM);
	process.interpreter[0][NEXT_INTERPRETER] = at(process.interpreter[1]);
	assert_int_equal(found(), -1);
	add_state(0, 0, on_stack(60), 0);
	assert_int_equal(found(), 0);
	add_state(1, 1, on_stack(50), 0);
	assert_int_equal(found(), 1);
	add_state(0, 2, on_stack(40), 0);
	assert_int_equal(found(), 2);
	add_state(0, 3, 0, 0); /* runs nothing */
	assert_int_equal(found(), 2);
}

static void state_on_stack__stack_ends_at_the_thread_s_own_memory(void **state)
{
	static const struct {
		int64_t word;
		bool is_on;
	} cases[] = {{-1, false}, {0, true}, {THREAD - SP - 1, true}, {THREAD - SP, false}};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		begin(PP_CHAIN_SHIM);
		add_state(0, 0, on_stack((size_t)cases[i].word), 0);
		assert_int_equal(found(), cases[i].is_on ? 0 : -1);
	}
	/* A stack that somebody else made: 8 MiB. */
	begin(PP_CHAIN_SHIM);
	taken.thread_pointer = at(process.stack);
	add_state(0, 0, on_stack(0) + (8 << 20) - 1, 0);
	assert_int_equal(found(), 0);
	begin(PP_CHAIN_SHIM);
	taken.thread_pointer = at(process.stack);
	add_state(0, 0, on_stack(0) + (8 << 20), 0);
	assert_int_equal(found(), -1);
}

static void state_on_stack__activation_of_3_10_is_a_cframe(void **state)
{
	(void)state;
	begin(PP_CHAIN_FRAME_CFRAME);
	add_state(0, 0, on_stack(10), 0);
	add_state(0, 1, on_stack(30), 0);
	put(process.state[0], TS_CFRAME, on_stack(20));
	put(process.state[1], TS_CFRAME, on_stack(5));
	assert_int_equal(found(), 1);
}

/* A state that was freed belongs to no interpreter: what it points to is nothing, either. */
static void state_on_stack__freed_state_ends_its_list(void **state)
{
	(void)state;
	begin(PP_CHAIN_SHIM);
	process.interpreter[0][NEXT_INTERPRETER] = at(process.interpreter[1]);
	add_state(1, 2, on_stack(60), 0);
	add_state(0, 1, on_stack(40), 0);
	add_state(0, 0, on_stack(50), 0);
	put(process.state[0], TS_INTERP, at(process.interpreter[1]));
	assert_int_equal(found(), 2);
	put(process.state[0], TS_INTERP, at(process.interpreter[0]));
	assert_int_equal(found(), 1);
	process.interpreter[0][INTERPRETER_THREADS / 8] = UNREADABLE;
	assert_int_equal(found(), 2);
}

static void state_on_stack__looks_at_256_states(void **state)
{
	(void)state;
	for (size_t count = MOST_STATES; count <= MOST_STATES + 1; count++) {
		begin(PP_CHAIN_SHIM);
		for (size_t i = 0; i < count; i++)
			add_state(0, i, i ? 0 : on_stack(10), 0);
		assert_int_equal(found(), count == MOST_STATES ? 0 : -1);
	}
	/* Interpreters count, too: a ring of them has an end. */
	begin(PP_CHAIN_SHIM);
	process.interpreter[0][NEXT_INTERPRETER] = at(process.interpreter[0]);
	assert_int_equal(found(), -1);
}

/* ---- up to 3.9, where frames lie elsewhere ---- */

#define A_FRAME 0x1000

static void state_on_stack__who_waits_for_the_gil_holds_its_state(void **state)
{
	static const int kept[] = {FIRST_KEPT, LAST_KEPT};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(kept); i++) {
		begin(PP_CHAIN_FRAME_OBJECT);
		add_state(0, 0, A_FRAME, 0);
		add_state(0, 1, A_FRAME, 0);
		assert_int_equal(found(), -1);
		process.registers[kept[i]] = at(process.state[1]);
		assert_int_equal(found(), 1);
	}
	begin(PP_CHAIN_FRAME_OBJECT);
	add_state(0, 0, A_FRAME, 0);
	add_state(0, 1, A_FRAME, 0);
	add_state(0, 2, 0, 0);
	process.stack[SP] = at(process.state[2]); /* runs nothing */
	process.stack[SP + 40] = at(process.state[0]);
	assert_int_equal(found(), -1); /* beyond what was taken */
	process.stack[SP + 39] = at(process.state[0]);
	assert_int_equal(found(), 0);
	process.stack[SP + 38] = at(process.state[1]);
	assert_int_equal(found(), 1);
	process.stack[SP] = at(process.state[0]);
	assert_int_equal(found(), 0);
}

/* Eight that run are known; the thread's own is one of them, wherever it stands. */
static void state_on_stack__thread_s_own_state_is_among_those_that_run(void **state)
{
	(void)state;
	begin(PP_CHAIN_FRAME_OBJECT);
	for (size_t i = 0; i < MOST_RUNNING + 2; i++)
		add_state(0, i, A_FRAME, 0);
	/* The last ones stand first in the list. */
	process.stack[SP] = at(process.state[1]);
	assert_int_equal(found(), -1);
	process.stack[SP] = at(process.state[2]);
	assert_int_equal(found(), 2);
	put(process.state[0], TS_THREAD_ID, taken.thread_pointer);
	process.stack[SP] = at(process.state[0]);
	assert_int_equal(found(), 0);
	process.stack[SP] = 0;
	assert_int_equal(found(), 0); /* nothing shows one: its own */
	process.stack[SP] = at(process.state[3]);
	assert_int_equal(found(), 3);
}

/* The slot tells the state that the thread was bound to first, unless that runs nothing while
 * another one of the thread does. */
static void state_on_stack__without_a_sign_it_is_the_first_or_its_own(void **state)
{
	(void)state;
	begin(PP_CHAIN_FRAME_OBJECT);
	fake.where.tls[0] = (struct pp_tls){.mode = PP_TLS_THREAD_OFFSET, .offset = 16};
	fake.where.tls[1] = (struct pp_tls){.mode = PP_TLS_THREAD_OFFSET, .offset = 8};
	process.stack[THREAD + 2] = at(process.state[7]); /* of whoever holds the GIL */
	add_state(0, 0, 0, 0);
	process.stack[THREAD + 1] = at(process.state[0]);
	assert_int_equal(found(), 0);
	add_state(0, 1, A_FRAME, taken.thread_pointer);
	assert_int_equal(found(), 1);
	put(process.state[0], TS_FRAME, A_FRAME);
	assert_int_equal(found(), 0);
	process.stack[THREAD + 1] = 0;
	assert_int_equal(found(), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			states_are_several__where_the_first_interpreter_is_not_the_main_one),
		cmocka_unit_test(states_are_several__where_one_follows_the_first),
		cmocka_unit_test(state_on_stack__innermost_activation_tells),
		cmocka_unit_test(state_on_stack__stack_ends_at_the_thread_s_own_memory),
		cmocka_unit_test(state_on_stack__activation_of_3_10_is_a_cframe),
		cmocka_unit_test(state_on_stack__freed_state_ends_its_list),
		cmocka_unit_test(state_on_stack__looks_at_256_states),
		cmocka_unit_test(state_on_stack__who_waits_for_the_gil_holds_its_state),
		cmocka_unit_test(state_on_stack__thread_s_own_state_is_among_those_that_run),
		cmocka_unit_test(state_on_stack__without_a_sign_it_is_the_first_or_its_own),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
