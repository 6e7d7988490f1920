/* SPDX-License-Identifier: BSD-2-Clause */
/* Where a thread's state is found, what it says, and the bounds of a walk: on memory of our own,
 * with what lies next to each bound on both sides. */
#include <cmocka.h>
#include <errno.h>
#include <sys/mman.h>

#include "base/cleanup.h"
#include "fake_frames.h"

#define UNREADABLE 0x100ULL
#define WORDS 512U

/* What the thread pointer points into. */
static struct thread {
	uint64_t before[WORDS], at[WORDS];
	uint64_t block[2 * 32 + 2]; /* of pthread keys, or a TLS block */
	uint32_t tss[2];	    /* Py_tss_t: is_initialized, key */
	uint64_t other_state[PP_TSTATE_READ_BYTES / 8];
} thread;

static uint64_t find(struct pp_tls first, struct pp_tls second)
{
	fake.where.tls[0] = first;
	fake.where.tls[1] = second;
	return python_thread_state_find(&fake.where, at(thread.at));
}

static uint64_t find_by(uint32_t mode, int32_t offset, const void *address)
{
	const struct pp_tls tls = {.mode = mode, .offset = offset, .address = at(address)};

	return find(tls, (struct pp_tls){0});
}

static void find_begin(void)
{
	fake_begin(PP_CHAIN_SHIM);
	memset(&thread, 0, sizeof(thread));
	thread.tss[0] = 1;
}

/* At an address that an offset or a small number leads to. */
#define LOW_PAGE 0x10000ULL

static uint64_t *map_low_page(void)
{
	uint64_t *page = mmap((void *)LOW_PAGE, 4096, PROT_READ | PROT_WRITE,
			      MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);

	if (page == MAP_FAILED) {
		print_message("skipped: no low page\n");
		skip();
	}
	return page;
}

/* ---- the thread state ---- */

static void python_thread_state_find__thread_offset_counts_from_the_thread_pointer(void **state)
{
	(void)state;
	find_begin();
	thread.at[3] = at(fake.state);
	assert_int_equal(find_by(PP_TLS_THREAD_OFFSET, 24, NULL), at(fake.state));
	thread.before[WORDS - 2] = at(thread.other_state);
	assert_int_equal(find_by(PP_TLS_THREAD_OFFSET, -16, NULL), at(thread.other_state));
	assert_int_equal(find_by(PP_TLS_THREAD_OFFSET, 32, NULL), 0);
	thread.at[3] = UNREADABLE;
	assert_int_equal(find_by(PP_TLS_THREAD_OFFSET, 24, NULL), 0);
}

static void python_thread_state_find__first_source_comes_first(void **state)
{
	const struct pp_tls first = {.mode = PP_TLS_THREAD_OFFSET, .offset = 8},
			    second = {.mode = PP_TLS_THREAD_OFFSET, .offset = 16},
			    none = {.mode = PP_TLS_NONE};

	(void)state;
	find_begin();
	thread.at[1] = at(fake.state);
	thread.at[2] = at(thread.other_state);
	assert_int_equal(find(first, second), at(fake.state));
	assert_int_equal(find(none, second), at(thread.other_state));
	assert_int_equal(find(none, none), 0);
}

/* Keys below 32 lie in struct pthread at 0x310, {sequence, value} each; others in blocks of 32,
 * whose addresses begin at 0x510 (glibc's nptl/descr.h). */
static void python_thread_state_find__glibc_keys_lie_in_blocks_of_32(void **state)
{
	static const struct {
		uint32_t key;
		size_t block; /* index; 0: in struct pthread itself */
		size_t slot;
	} cases[] = {{0, 0, 0}, {5, 0, 5}, {31, 0, 31}, {32, 1, 0}, {70, 2, 6}, {1024, 32, 0}};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		uint64_t *blocks;

		find_begin();
		blocks = thread.at + 0x510 / 8;
		thread.tss[1] = cases[i].key;
		if (cases[i].block)
			blocks[cases[i].block] = at(thread.block);
		(cases[i].block ? thread.block : thread.at + 0x310 / 8)[2 * cases[i].slot + 1] =
			at(fake.state);
		assert_int_equal(find_by(PP_TLS_PTHREAD_KEY, 0, &thread.tss[1]), at(fake.state));
	}
}

static void python_thread_state_find__keys_above_1024_are_none(void **state)
{
	(void)state;
	find_begin();
	thread.tss[1] = 1025;
	thread.at[0x510 / 8 + 32] = at(thread.block);
	thread.block[3] = at(fake.state);
	assert_int_equal(find_by(PP_TLS_PTHREAD_KEY, 0, &thread.tss[1]), 0);
	assert_int_equal(find_by(PP_TLS_PTHREAD_KEY, 0, (void *)UNREADABLE), 0);
}

static void python_thread_state_find__musl_s_keys_are_an_array_of_pointers(void **state)
{
	(void)state;
	find_begin();
	thread.tss[1] = 9;
	thread.at[0x80 / 8] = at(thread.block);
	thread.block[9] = at(fake.state);
	assert_int_equal(find_by(PP_TLS_PTHREAD_KEY_MUSL, 0, &thread.tss[1]), at(fake.state));
}

/* glibc's DTV has {block, to free} an entry, musl's a block. */
static void python_thread_state_find__dtv_s_entry_is_the_module_s_block(void **state)
{
	static uint64_t dtv[2 * 4098];
	static const uint32_t modes[] = {PP_TLS_DTV, PP_TLS_DTV_MUSL};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(modes); i++) {
		const uint64_t words = modes[i] == PP_TLS_DTV ? 2 : 1;
		uint64_t module;

		find_begin();
		memset(dtv, 0, sizeof(dtv));
		thread.at[1] = at(dtv);
		thread.block[3] = at(fake.state);
		for (module = 1; module <= 4096; module = module < 3 ? module + 2 : module + 4093) {
			dtv[words * module] = at(thread.block);
			assert_int_equal(find_by(modes[i], 24, &module), at(fake.state));
			dtv[words * module] = 0;
		}
		module = 4097;
		dtv[words * module] = at(thread.block);
		assert_int_equal(find_by(modes[i], 24, &module), 0);
		module = 0;
		dtv[0] = at(thread.block);
		assert_int_equal(find_by(modes[i], 24, &module), 0);
	}
}

/* A process has two sources at most: what lies behind them in memory is none. */
static void python_thread_state_find__looks_at_two_sources(void **state)
{
	struct python_where *where = malloc(sizeof(*where));

	(void)state;
	assert_non_null(where);
	find_begin();
	*where = fake.where;
	assert_int_equal(python_thread_state_find(where, at(thread.at)), 0);
	free(where);
}

/* Wherever an offset may lead from there. */
static void python_thread_state_find__block_that_is_not_allocated_is_none(void **state)
{
	uint64_t dtv[4] = {0}, module = 1, *low;

	(void)state;
	find_begin();
	low = map_low_page();
	low[0] = at(fake.state);
	thread.at[1] = at(dtv);
	assert_int_equal(find_by(PP_TLS_DTV, LOW_PAGE, &module), 0);
	dtv[2] = ~0ULL;
	assert_int_equal(find_by(PP_TLS_DTV, LOW_PAGE + 1, &module), 0);
	munmap(low, 4096);
}

/* An address of 1 would be readable with this offset. */
static void python_thread_state_find__what_is_not_there_is_0(void **state)
{
	uint64_t dtv[4] = {0}, module = 0, *low;

	(void)state;
	find_begin();
	fake.layout.ts_thread_id = LOW_PAGE - 1;
	low = map_low_page();
	thread.at[1] = at(dtv);
	assert_int_equal(find_by(PP_TLS_NONE, 0, NULL), 0);
	assert_int_equal(find_by(PP_TLS_GLOBAL + 1, 0, NULL), 0);
	assert_int_equal(find_by(PP_TLS_DTV, 0, &module), 0);
	module = 1;
	assert_int_equal(find_by(PP_TLS_DTV, 0, &module), 0);
	thread.tss[1] = 1025;
	assert_int_equal(find_by(PP_TLS_PTHREAD_KEY, 0, &thread.tss[1]), 0);
	thread.tss[1] = 40; /* its block is not allocated */
	assert_int_equal(find_by(PP_TLS_PTHREAD_KEY, 0, &thread.tss[1]), 0);
	munmap(low, 4096);
}

/* ---- who holds the GIL ---- */

static struct {
	uint64_t before[2], holder;
	uint32_t locked, more;
	uint64_t after[2];
} gil;
static uint64_t interpreter[32];

/* The GIL at `locked` with `holder`; interpreter[4] points to it, last_holder is 16 bytes in. */
static uint32_t flags_with_gil(uint8_t mode, uint64_t holder, uint32_t locked)
{
	gil.holder = holder;
	gil.locked = locked;
	fake.layout.gil_mode = mode;
	fake.layout.runtime = at(&gil.holder) - BIAS - 0x40;
	fake.layout.gil_offset = mode == PP_GIL_RUNTIME ? 0x40 : 32;
	fake.layout.gil_holder = 16;
	fake.layout.gil_locked = 24;
	put(fake.state, TS_INTERP, at(interpreter));
	return fake_read()->count_flags;
}

static void python_frames_read__locked_gil_is_its_last_holder_s(void **state)
{
	static const uint8_t modes[] = {PP_GIL_RUNTIME, PP_GIL_INTERPRETER};
	const uint32_t held = PP_COUNT_PYTHON | PP_COUNT_GIL_HELD;

	(void)state;
	fake_begin(PP_CHAIN_SHIM);
	interpreter[4] = at(&gil);
	for (size_t i = 0; i < ARRAY_SIZE(modes); i++) {
		assert_int_equal(flags_with_gil(modes[i], at(fake.state), 1), held);
		assert_int_equal(flags_with_gil(modes[i], at(fake.state), 0), PP_COUNT_PYTHON);
		assert_int_equal(flags_with_gil(modes[i], at(fake.state), 2), PP_COUNT_PYTHON);
		assert_int_equal(flags_with_gil(modes[i], at(&gil), 1), PP_COUNT_PYTHON);
	}
	interpreter[4] = 0;
	assert_int_equal(flags_with_gil(PP_GIL_INTERPRETER, at(fake.state), 1), PP_COUNT_PYTHON);
}

static void python_frames_read__holder_s_own_word_says_it(void **state)
{
	static const struct {
		uint8_t mode;
		uint64_t word;
		bool is_held;
	} cases[] = {
		{PP_GIL_TSTATE_BIT, 1 << 5, true},  {PP_GIL_TSTATE_BIT, 0x7f, true},
		{PP_GIL_TSTATE_BIT, 1 << 4, false}, {PP_GIL_TSTATE_BIT, 1 << 6, false},
		{PP_GIL_TSTATE_BIT, 1, false},	    {PP_GIL_TSTATE_INT, 1, true},
		{PP_GIL_TSTATE_INT, 2, true},	    {PP_GIL_TSTATE_INT, 1ULL << 32, false},
		{PP_GIL_NONE, ~0ULL, false},	    {PP_GIL_CURRENT + 1, ~0ULL, false},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		fake_begin(PP_CHAIN_SHIM);
		fake.layout.gil_mode = cases[i].mode;
		fake.layout.gil_offset = 104;
		put(fake.state, 104, cases[i].word);
		assert_int_equal(fake_read()->count_flags & PP_COUNT_GIL_HELD,
				 cases[i].is_held ? PP_COUNT_GIL_HELD : 0);
	}
}

/* 2.7 and 3.6 */
static void python_frames_read__current_state_holds_the_gil(void **state)
{
	uint64_t current = at(fake.state);
	const struct python_frames *frames;

	(void)state;
	fake_begin(PP_CHAIN_FRAME_OBJECT);
	fake.layout.gil_mode = PP_GIL_CURRENT;
	fake.where.tls[0] = (struct pp_tls){.mode = PP_TLS_GLOBAL, .address = at(&current)};
	frames = fake_read();
	assert_int_equal(frames->count_flags, PP_COUNT_PYTHON | PP_COUNT_GIL_HELD);
	assert_int_equal(frames->gil, at(&current));
	current++;
	assert_int_equal(fake_read()->count_flags, PP_COUNT_PYTHON);
}

static void python_frames_read__gil_is_the_interpreter_s(void **state)
{
	(void)state;
	fake_begin(PP_CHAIN_SHIM);
	put(fake.state, TS_INTERP, at(interpreter));
	fake.layout.gil_holder = 16;
	interpreter[5] = 0x5000;
	assert_int_equal(fake_read()->gil, 0); /* the version has none */
	fake.layout.interp_gil = 40;
	assert_int_equal(fake_read()->gil, 0x5010);
	interpreter[5] = 0;
	assert_int_equal(fake_read()->gil, 0);
	put(fake.state, TS_INTERP, UNREADABLE);
	assert_int_equal(fake_read()->gil, 0);
}

static void python_frames_read__collecting_is_said_by_the_mode_s_word(void **state)
{
	static const uint8_t modes[] = {PP_GC_RUNTIME, PP_GC_INTERPRETER, PP_GC_GLOBAL};
	static uint32_t collecting[3];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(modes); i++) {
		fake_begin(PP_CHAIN_SHIM);
		fake.layout.gc_mode = modes[i];
		fake.layout.gc_offset = 0x30;
		fake.layout.runtime = at(&collecting[1]) - BIAS - 0x30;
		put(fake.state, TS_INTERP, at(&collecting[1]) - 0x30);
		if (modes[i] == PP_GC_GLOBAL)
			fake.where.bias = at(&collecting[1]) - 0x30;
		for (uint32_t value = 0; value < 3; value++) {
			collecting[1] = value;
			assert_int_equal(fake_read()->count_flags,
					 PP_COUNT_PYTHON | (value ? PP_COUNT_GC : 0));
		}
	}
	fake_begin(PP_CHAIN_SHIM);
	fake.layout.gc_mode = PP_GC_INTERPRETER;
	put(fake.state, TS_INTERP, UNREADABLE);
	assert_int_equal(fake_read()->count_flags, PP_COUNT_PYTHON);
}

/* ---- frames ---- */

static void python_frames_read__nothing_is_left_of_what_was_there(void **state)
{
	static struct python_frames frames;

	(void)state;
	for (int is_python = 0; is_python < 2; is_python++) {
		fake_begin(is_python ? PP_CHAIN_SHIM : PP_CHAIN_NONE);
		memset(&frames, 0xee, sizeof(frames));
		python_frames_read(&fake.where, is_python ? UNREADABLE : at(fake.state), &frames);
		assert_int_equal(frames.stop,
				 is_python ? PP_PY_STOP_NO_THREAD_STATE : PP_PY_STOP_NOT_PYTHON);
		assert_int_equal(frames.thread_state, is_python ? UNREADABLE : at(fake.state));
		assert_int_equal(frames.gil, 0);
		assert_int_equal(frames.count_flags, 0);
		assert_int_equal(frames.stored, 0);
		assert_int_equal(frames.count, 0);
		assert_int_equal(frames.segment_count, 0);
	}
}

static void python_frames_read__fields_behind_the_head_are_0(void **state)
{
	(void)state;
	fake_begin(PP_CHAIN_SHIM);
	fake.layout.ts_frame = PP_TSTATE_READ_BYTES - 8;
	put(fake.state, fake.layout.ts_frame, at(fake.frame[5]));
	assert_int_equal(fake_read()->count, 3);
	memset(fake.state + PP_TSTATE_READ_BYTES - 7, 0xff, 7);
	fake.layout.ts_frame++;
	assert_int_equal(fake_read()->count, 0);
	assert_int_equal(fake_read()->stop, PP_PY_STOP_ROOT);
}

static void python_frames_read__bytes_behind_the_head_are_0(void **state)
{
	(void)state;
	fake_begin(PP_CHAIN_SHIM);
	fake.layout.shim_owner = 1;
	fake.layout.frame_owner = PP_FRAME_READ_BYTES;
	assert_int_equal(fake_read()->count, FRAMES);
	fake_begin(PP_CHAIN_CFRAME_ENTRY);
	fake.layout.frame_is_entry = PP_FRAME_READ_BYTES;
	assert_int_equal(fake_read()->segment_count, 0);
}

/* Frame objects are read to 128 bytes, interpreter frames to the 88 that they have. */
static void python_frames_read__whole_frame_is_read_and_no_more(void **state)
{
	uint8_t *page = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
			     0),
		*frame = page + 4096 - 88;
	const struct python_frames *frames;

	(void)state;
	assert_true(page != MAP_FAILED);
	munmap(page + 4096, 4096);
	fake_begin(PP_CHAIN_SHIM);
	memcpy(frame, fake.frame[7], 88);
	put(fake.frame[0], FRAME_PREVIOUS, at(frame));
	frames = fake_read();
	assert_int_equal(frames->stop, PP_PY_STOP_ROOT);
	assert_int_equal(frames->count, 2);
	munmap(page, 4096);
	for (uint8_t chain = PP_CHAIN_FRAME_OBJECT; chain <= PP_CHAIN_FRAME_CFRAME; chain++) {
		fake_begin(chain);
		fake.layout.frame_instr = 120;
		for (size_t i = 0; i < FRAMES; i++)
			put(fake.frame[i], 120, 10 * i);
		frames = fake_read();
		for (size_t i = 0; i < FRAMES; i++)
			assert_frame(frames, i, i);
	}
}

static void python_frames_read__tags_of_stack_references_are_removed(void **state)
{
	(void)state;
	fake_begin(PP_CHAIN_SHIM);
	put(fake.frame[0], FRAME_CODE, at(fake.code[0]) | 1);
	put(fake.frame[1], FRAME_CODE, at(fake.code[1]) | 7);
	assert_frame(fake_read(), 0, 0);
	assert_frame(fake_read(), 1, 1);
	assert_int_equal(fake_read()->count, FRAMES);
}

static void python_frames_read__code_objects_of_an_earlier_walk_are_checked_again(void **state)
{
	(void)state;
	fake_begin(PP_CHAIN_SHIM);
	assert_int_equal(fake_read()->count, FRAMES);
	put(fake.code[3], OB_TYPE, CODE_TYPE);
	assert_int_equal(fake_read()->count, 3);
	assert_int_equal(fake_read()->stop, PP_PY_STOP_BAD_CODE);
	put(fake.code[3], OB_TYPE, CODE_TYPE + BIAS);
	put(fake.frame[2], FRAME_CODE, 0);
	assert_int_equal(fake_read()->stop, PP_PY_STOP_BAD_CODE);
	assert_int_equal(fake_read()->count, 2);
}

static void python_frames_read__cframe_that_cannot_be_read_is_the_last(void **state)
{
	const struct python_frames *frames;

	(void)state;
	fake_begin(PP_CHAIN_FRAME_CFRAME);
	put(fake.cframe[1], CFRAME_PREVIOUS, UNREADABLE);
	frames = fake_read();
	assert_int_equal(frames->segment_count, FRAMES);
	assert_int_equal(frames->segment[1].anchor, at(fake.cframe[1]));
	assert_int_equal(frames->segment[2].anchor, UNREADABLE);
	assert_int_equal(frames->segment[3].anchor, 0);
	assert_int_equal(frames->segment[4].anchor, 0);
}

/* ---- instructions ---- */

#define TLBC_INDEX 60U /* behind it: other fields */
#define CODE_TLBC 24U
#define CODE_ADAPTIVE 208U

/* _PyCodeArray: its size, then a pointer for each copy of the bytecode. */
static uint64_t copies[1 + 4098];

static uint32_t instruction_of_copy(uint32_t copy)
{
	fake_begin(PP_CHAIN_SHIM);
	fake.layout.frame_tlbc_index = TLBC_INDEX;
	fake.layout.code_tlbc = CODE_TLBC;
	fake.layout.code_adaptive = CODE_ADAPTIVE;
	fake.layout.frame_owner = 80;
	put(fake.frame[0], TLBC_INDEX, copy | 0xabcdULL << 32);
	put(fake.code[0], CODE_TLBC, at(copies));
	put(fake.frame[0], FRAME_INSTR, at(fake.code[0]) + 0x4000);
	return fake_read()->frame[0].what;
}

/* 3.14t and later.  The instruction counts from the code object, as in its own bytecode. */
static void python_frames_read__instruction_in_a_thread_s_copy_counts_in_the_code(void **state)
{
	(void)state;
	fake_begin(PP_CHAIN_SHIM);
	for (size_t i = 0; i < ARRAY_SIZE(copies); i++)
		copies[i] = at(fake.code[0]) + i; /* copy n has entry n + 1 */
	assert_int_equal(instruction_of_copy(0), 0x4000);
	assert_int_equal(instruction_of_copy(1), 0x4000 - 2 + CODE_ADAPTIVE);
	assert_int_equal(instruction_of_copy(5), 0x4000 - 6 + CODE_ADAPTIVE);
	assert_int_equal(instruction_of_copy(4096), 0x4000 - 4097 + CODE_ADAPTIVE);
	assert_int_equal(instruction_of_copy(4097), 0x4000);
}

/* f_lasti is a number, whatever else the frame has. */
static void python_frames_read__lasti_is_as_it_is(void **state)
{
	(void)state;
	fake_begin(PP_CHAIN_FRAME_OBJECT);
	fake.layout.frame_tlbc_index = TLBC_INDEX;
	put(fake.frame[0], TLBC_INDEX, 1);
	put(fake.frame[0], FRAME_INSTR, 38);
	assert_int_equal(fake_read()->frame[0].what, 38);
}

/* ---- going on ---- */

static int resume(const uint8_t *head)
{
	const struct python_resume from = {.frame = at(fake.frame[0]), .head = head};
	static struct python_frames frames;

	frames.count = frames.stored = frames.segment_count = 0;
	return python_frames_resume(&fake.where, &from, &frames);
}

static void python_frames_resume__all_of_a_pointer_is_compared(void **state)
{
	uint8_t head[PP_FRAME_READ_BYTES];

	(void)state;
	fake_begin(PP_CHAIN_SHIM);
	memcpy(head, fake.frame[0], sizeof(head));
	assert_int_equal(resume(head), 0);
	head[FRAME_INSTR + 5] ^= 1;
	assert_int_equal(resume(head), -ESTALE);
	fake_begin(PP_CHAIN_NONE);
	assert_int_equal(resume(head), -ESTALE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			python_thread_state_find__thread_offset_counts_from_the_thread_pointer),
		cmocka_unit_test(python_thread_state_find__first_source_comes_first),
		cmocka_unit_test(python_thread_state_find__glibc_keys_lie_in_blocks_of_32),
		cmocka_unit_test(python_thread_state_find__keys_above_1024_are_none),
		cmocka_unit_test(python_thread_state_find__musl_s_keys_are_an_array_of_pointers),
		cmocka_unit_test(python_thread_state_find__dtv_s_entry_is_the_module_s_block),
		cmocka_unit_test(python_thread_state_find__block_that_is_not_allocated_is_none),
		cmocka_unit_test(python_thread_state_find__looks_at_two_sources),
		cmocka_unit_test(python_thread_state_find__what_is_not_there_is_0),
		cmocka_unit_test(python_frames_read__locked_gil_is_its_last_holder_s),
		cmocka_unit_test(python_frames_read__holder_s_own_word_says_it),
		cmocka_unit_test(python_frames_read__current_state_holds_the_gil),
		cmocka_unit_test(python_frames_read__gil_is_the_interpreter_s),
		cmocka_unit_test(python_frames_read__collecting_is_said_by_the_mode_s_word),
		cmocka_unit_test(python_frames_read__nothing_is_left_of_what_was_there),
		cmocka_unit_test(python_frames_read__fields_behind_the_head_are_0),
		cmocka_unit_test(python_frames_read__bytes_behind_the_head_are_0),
		cmocka_unit_test(python_frames_read__whole_frame_is_read_and_no_more),
		cmocka_unit_test(python_frames_read__tags_of_stack_references_are_removed),
		cmocka_unit_test(
			python_frames_read__code_objects_of_an_earlier_walk_are_checked_again),
		cmocka_unit_test(python_frames_read__cframe_that_cannot_be_read_is_the_last),
		cmocka_unit_test(
			python_frames_read__instruction_in_a_thread_s_copy_counts_in_the_code),
		cmocka_unit_test(python_frames_read__lasti_is_as_it_is),
		cmocka_unit_test(python_frames_resume__all_of_a_pointer_is_compared),
	};

	return cmocka_run_group_tests_name("python/python_frames_bounds", tests, NULL, NULL);
}
