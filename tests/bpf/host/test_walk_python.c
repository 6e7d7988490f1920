/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* bpf/lib/walk_python.bpf.h on synthetic interpreters: the five chains; lib/thread_state.bpf.h: the
 * GIL and garbage collection. */
#include "host.h"
#include "python.h"

static void walk(void)
{
	if (walk_python_begin(0))
		return;
	while (!python_step())
		continue;
}

static void assert_segments(uint32_t count, ...)
{
	va_list args;

	assert_int_equal(host->walk.segment_count, count);
	va_start(args, count);
	for (uint32_t i = 0; i < count; i++) {
		assert_int_equal(host->walk.segment[i].anchor, va_arg(args, uint64_t));
		assert_int_equal(host->walk.segment[i].frames, va_arg(args, int));
	}
	va_end(args);
}

/* ---- the five chains ---- */

static void chain__frame_objects_of_2_7_to_3_9(void **state)
{
	uint64_t outer, inner;

	(void)state;
	python_begin(PP_CHAIN_FRAME_OBJECT, 9);
	host->python.flags = PP_PYTHON_LASTI;
	host->python.code_qualname = PP_NO_OFFSET;
	outer = new_frame(new_code("-", 1), 0, 0);
	put_u32(outer + FRAME_INSTR, 12);
	inner = new_frame(new_code("-", 10), outer, 0);
	put_u32(inner + FRAME_INSTR, (uint32_t)-1); /* not started */
	put_word(state_address + TS_FRAME, inner);
	walk();
	assert_int_equal(host->walk.py_stop, PP_PY_STOP_ROOT);
	assert_int_equal(host->walk.python_count, 2);
	assert_python(0, "short", UINT32_MAX);
	assert_python(1, "short", 12);
	assert_int_equal(code_of(python_frame(0))->first_line, 10);
	/* No anchors: the eval function's ranges find the activations. */
	assert_int_equal(host->walk.segment_count, 0);
}

static void chain__frame_objects_with_cframes_of_3_10(void **state)
{
	uint64_t outer, inner, cframe = STACK + 0x900, outer_cframe = STACK + 0xa00;

	(void)state;
	python_begin(PP_CHAIN_FRAME_CFRAME, 10);
	host->python.flags = PP_PYTHON_LASTI;
	outer = new_frame(new_code("outer", 1), 0, 0);
	inner = new_frame(new_code("inner", 1), outer, 0);
	put_word(state_address + TS_FRAME, inner);
	put_word(state_address + TS_CFRAME, cframe);
	put_word(cframe + CFRAME_PREVIOUS, outer_cframe);
	walk();
	assert_int_equal(host->walk.py_stop, PP_PY_STOP_ROOT);
	assert_python(0, "inner", (uint32_t)(python_frame(0)->what));
	assert_segments(2, cframe, 1, outer_cframe, 1);
}

/* Of a PyFrameObject 128 bytes are read: f_lasti lies at 96 in 3.10. */
static void chain__frame_object_has_its_instruction_far_behind(void **state)
{
	static const uint8_t chains[] = {PP_CHAIN_FRAME_OBJECT, PP_CHAIN_FRAME_CFRAME};

	(void)state;
	for (size_t i = 0; i < sizeof(chains); i++)
		for (uint16_t offset = 96; offset <= 120; offset += 8) {
			uint64_t frame;

			host_teardown(NULL);
			host_setup(NULL);
			python_begin(chains[i], 10);
			host->python.flags = PP_PYTHON_LASTI;
			host->python.frame_instr = offset;
			frame = new_frame(new_code("a", 1), 0, 0);
			put_u32(frame + offset, 24);
			put_word(state_address + TS_FRAME, frame);
			put_word(state_address + TS_CFRAME, STACK + 0x900);
			walk();
			assert_int_equal(host->walk.py_stop, PP_PY_STOP_ROOT);
			assert_python(0, "a", 24);
		}
}

static void chain__entry_frames_of_3_11(void **state)
{
	uint64_t a, b, c, cframe = STACK + 0x900, outer_cframe = STACK + 0xa00;

	(void)state;
	python_begin(PP_CHAIN_CFRAME_ENTRY, 11);
	a = new_frame(new_code("a", 1), 0, 0);
	put_bytes(a + FRAME_IS_ENTRY, "\1", 1);
	b = new_frame(new_code("b", 1), a, 0);
	put_bytes(b + FRAME_IS_ENTRY, "\1", 1);
	c = new_frame(new_code("c", 1), b, 0);
	put_word(state_address + TS_FRAME, cframe);
	put_word(cframe + CFRAME_CURRENT, c);
	put_word(cframe + CFRAME_PREVIOUS, outer_cframe);
	walk();
	assert_int_equal(host->walk.py_stop, PP_PY_STOP_ROOT);
	assert_int_equal(host->walk.python_count, 3);
	assert_python(0, "c", CODE_ADAPTIVE + 100);
	assert_python(1, "b", CODE_ADAPTIVE + 100);
	assert_python(2, "a", CODE_ADAPTIVE + 100);
	assert_segments(2, cframe, 2, outer_cframe, 1);
}

/* 3.12: the shim frame is what lies on the C stack. */
static void chain__shims_of_3_12(void **state)
{
	uint64_t shim, a, outer_shim, cframe = heap_take(64);

	(void)state;
	python_begin(PP_CHAIN_CFRAME_SHIM, 12);
	outer_shim = new_frame(0, 0, 3);
	a = new_frame(new_code("a", 1), outer_shim, 0);
	shim = new_frame(0, a, 3);
	a = new_frame(new_code("b", 1), shim, 1);
	a = new_frame(new_code("c", 1), a, 0);
	put_word(state_address + TS_FRAME, cframe);
	put_word(cframe + CFRAME_CURRENT, a);
	walk();
	assert_int_equal(host->walk.py_stop, PP_PY_STOP_ROOT);
	assert_int_equal(host->walk.python_count, 3);
	assert_python(0, "c", CODE_ADAPTIVE + 100);
	assert_python(1, "b", CODE_ADAPTIVE + 100);
	assert_python(2, "a", CODE_ADAPTIVE + 100);
	assert_segments(2, shim, 2, outer_shim, 1);
}

static void chain__shims_of_3_13_and_later_mask_stack_references(void **state)
{
	uint64_t shim, a;

	(void)state;
	python_begin(PP_CHAIN_SHIM, 14);
	shim = new_frame(0, 0, 3);
	a = new_frame(new_code("a", 1) | 1, shim, 0);
	put_word(state_address + TS_FRAME, a);
	walk();
	assert_int_equal(host->walk.py_stop, PP_PY_STOP_ROOT);
	assert_python(0, "a", CODE_ADAPTIVE + 100);
	assert_segments(1, shim, 1);
}

/* 3.15: what lies on the C stack, owner 4, is no Python frame either. */
static void chain__frame_owned_by_the_interpreter_is_skipped(void **state)
{
	uint64_t shim, a;

	(void)state;
	python_begin(PP_CHAIN_SHIM, 15);
	shim = new_frame(0, 0, 3);
	a = new_frame(new_code("a", 1), shim, 0);
	put_word(state_address + TS_FRAME, new_frame(0, a, 4));
	walk();
	assert_int_equal(host->walk.py_stop, PP_PY_STOP_ROOT);
	assert_int_equal(host->walk.python_count, 1);
	assert_segments(1, shim, 1);
}

/* Free-threaded 3.14+: the thread runs copy 2 of the bytecode. */
static void chain__own_copy_of_the_bytecode_counts_as_the_main_one(void **state)
{
	uint64_t shim, frame, code, copies, copy;

	(void)state;
	python_begin(PP_CHAIN_SHIM, 14);
	host->python.frame_tlbc_index = FRAME_TLBC;
	code = new_code("a", 1);
	copies = heap_take(64);
	copy = heap_take(512);
	put_word(code + CODE_TLBC, copies);
	put_word(copies, 3); /* size */
	put_word(copies + 8 + 8 * 2, copy);
	shim = new_frame(0, 0, 3);
	frame = new_frame(code, shim, 0);
	put_u32(frame + FRAME_TLBC, 2);
	put_word(frame + FRAME_INSTR, copy + 36);
	put_word(state_address + TS_FRAME, frame);
	walk();
	assert_python(0, "a", CODE_ADAPTIVE + 36);
}

/* No thread of a sane process has more copies than that: the frame is read as one of the first. */
static void walk_python__bytecode_copies_are_bounded(void **state)
{
	static const struct {
		uint32_t copy;
		bool is_used;
	} cases[] = {{0, false}, {1, true}, {4096, true}, {4097, false}};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		uint64_t code, frame, copies, copy;

		host_teardown(NULL);
		host_setup(NULL);
		python_begin(PP_CHAIN_SHIM, 14);
		host->python.frame_tlbc_index = FRAME_TLBC;
		code = new_code("a", 1);
		copies = heap_take(8 + 8 * 4098);
		copy = heap_take(512);
		put_word(code + CODE_TLBC, copies);
		for (uint32_t entry = 0; entry < 4098; entry++)
			put_word(copies + 8 + 8 * entry, copy);
		frame = new_frame(code, 0, 0);
		put_u32(frame + FRAME_TLBC, cases[i].copy);
		put_word(frame + FRAME_INSTR, (cases[i].is_used ? copy : code) + 36);
		put_word(state_address + TS_FRAME, frame);
		walk();
		assert_python(0, "a", (cases[i].is_used ? CODE_ADAPTIVE : 0) + 36);
	}
}

/* ---- what ends the walk ---- */

static void walk_python__no_frames_at_all_is_the_root(void **state)
{
	(void)state;
	python_begin(PP_CHAIN_SHIM, 13);
	walk();
	assert_int_equal(host->walk.py_stop, PP_PY_STOP_ROOT);
	assert_int_equal(host->walk.python_count, 0);
	assert_true(host->walk.count_flags & PP_COUNT_PYTHON);
}

static void walk_python__process_without_interpreter(void **state)
{
	(void)state;
	python_begin(PP_CHAIN_SHIM, 13);
	host->walk.context.python = 0;
	walk();
	assert_int_equal(host->walk.py_stop, PP_PY_STOP_NOT_PYTHON);
	host->walk.context.python = 1;
	host->python.chain = PP_CHAIN_NONE; /* its self-test failed */
	walk();
	assert_int_equal(host->walk.py_stop, PP_PY_STOP_NOT_PYTHON);
	assert_false(host->walk.count_flags & PP_COUNT_PYTHON);
}

static void walk_python__fault_on_a_frame_keeps_those_before(void **state)
{
	uint64_t outer, inner;

	(void)state;
	python_begin(PP_CHAIN_SHIM, 13);
	outer = new_frame(new_code("outer", 1), 0, 0);
	inner = new_frame(new_code("inner", 1), outer, 0);
	put_word(state_address + TS_FRAME, inner);
	put_fault(outer, 8);
	walk();
	assert_int_equal(host->walk.py_stop, PP_PY_STOP_READ_FAULT);
	assert_int_equal(host->walk.python_count, 1);
	assert_python(0, "inner", CODE_ADAPTIVE + 100);
}

static void walk_python__frame_at_the_end_of_its_page_is_read(void **state)
{
	uint64_t frame = HEAP + HEAP_BYTES - INTERPRETER_FRAME_BYTES, code;

	(void)state;
	python_begin(PP_CHAIN_SHIM, 13);
	code = new_code("a", 1);
	put_word(frame + FRAME_CODE, code);
	put_word(frame + FRAME_INSTR, code + 200);
	put_word(state_address + TS_FRAME, frame);
	walk();
	assert_int_equal(host->walk.py_stop, PP_PY_STOP_ROOT);
	assert_python(0, "a", 200);
}

static void walk_python__what_is_no_code_object_ends_it(void **state)
{
	uint64_t code, frame;

	(void)state;
	python_begin(PP_CHAIN_SHIM, 13);
	code = new_code("a", 1);
	put_word(code + OB_TYPE, CODE_TYPE + 8);
	frame = new_frame(code, new_frame(new_code("b", 1), 0, 0), 0);
	put_word(state_address + TS_FRAME, frame);
	walk();
	assert_int_equal(host->walk.py_stop, PP_PY_STOP_BAD_CODE);
	assert_int_equal(host->walk.python_count, 0);
	assert_int_equal(host->record_count, 0);
}

static void walk_python__circle_ends_by_time(void **state)
{
	uint64_t frame;

	(void)state;
	python_begin(PP_CHAIN_SHIM, 13);
	frame = new_frame(new_code("a", 1), 0, 0);
	put_word(frame + FRAME_PREVIOUS, frame);
	put_word(state_address + TS_FRAME, frame);
	host->ns_a_reading = 50000;
	walk_clock_start(&host->walk, bpf_ktime_get_ns(), 200000);
	walk();
	assert_int_equal(host->walk.py_stop, PP_PY_STOP_MAX_TIME);
	/* After the object was sent, and three times more. */
	assert_int_equal(host->walk.python_count, 1 + 3 * PP_CLOCK_STEPS);
	assert_int_equal(host->record_count, 1);
}

static void walk_python__deep_stack_keeps_leaf_and_root(void **state)
{
	const uint32_t depth = 2000, ring = PP_MAX_PYTHON_FRAMES / PP_ROOT_SHARE;
	const uint32_t leaf = PP_MAX_PYTHON_FRAMES - ring;
	uint64_t code, frame = 0;

	(void)state;
	python_begin(PP_CHAIN_SHIM, 13);
	code = new_code("a", 1);
	for (uint32_t i = depth; i-- > 0;) {
		frame = new_frame(code, frame, 0);
		put_word(frame + FRAME_INSTR, code + i);
		if (host->heap_used > HEAP_BYTES - 4096)
			break;
	}
	/* What the heap has no room for: the rest of the chain repeats its first frame. */
	put_word(state_address + TS_FRAME, frame);
	for (uint32_t i = 0; i < depth; i++) {
		put_word(frame + FRAME_INSTR, code + i);
		put_word(frame + FRAME_PREVIOUS, i + 1 < depth ? frame : 0);
		host->walk.python_frame = frame;
		host->walk.frames_bytes = 0; /* it was changed since it was read */
		if (!i)
			assert_int_equal(walk_python_begin(0), 0);
		assert_int_equal(python_step(), 0);
	}
	assert_int_equal(python_step(), 1);
	assert_int_equal(host->walk.python_count, depth);
	assert_int_equal(host->walk.python_stored, PP_MAX_PYTHON_FRAMES);
	for (uint32_t i = 0; i < depth; i++)
		if (i < leaf || i >= depth - ring)
			assert_int_equal(
				python_frame(i < leaf ? i : leaf + (i - leaf) % ring)->what, i);
}

static void walk_python__more_anchors_than_room_are_counted(void **state)
{
	uint64_t frame;

	(void)state;
	python_begin(PP_CHAIN_SHIM, 13);
	frame = new_frame(0, 0, 3);
	put_word(frame + FRAME_PREVIOUS, frame);
	put_word(state_address + TS_FRAME, frame);
	assert_int_equal(walk_python_begin(0), 0);
	for (uint32_t i = 0; i < PP_MAX_SEGMENTS + 3; i++)
		assert_int_equal(python_step(), 0);
	assert_int_equal(host->walk.segment_count, PP_MAX_SEGMENTS);
	assert_int_equal(host->losses[PP_LOSS_SEGMENTS_FULL], 3);
}

/* ---- of another thread ---- */

static void walk_python_other__begins_at_the_state_that_it_is_given(void **state)
{
	uint64_t other = heap_take(256), a;

	(void)state;
	python_begin(PP_CHAIN_SHIM, 13);
	put_word(state_address + TS_FRAME, new_frame(new_code("own", 1), 0, 0));
	a = new_frame(new_code("other", 1), 0, 0);
	put_word(other + TS_FRAME, a);
	host->walk.thread_state = other;
	assert_int_equal(walk_python_other(0), 0);
	assert_true(host->walk.count_flags & PP_COUNT_PYTHON);
	assert_int_equal(host->walk.python_frame, a);
	while (!python_step())
		continue;
	assert_int_equal(host->walk.py_stop, PP_PY_STOP_ROOT);
	assert_int_equal(host->walk.python_count, 1);
	assert_python(0, "other", CODE_ADAPTIVE + 100);
}

static void walk_python_other__needs_an_interpreter_and_the_state(void **state)
{
	(void)state;
	python_begin(PP_CHAIN_SHIM, 13);
	host->walk.thread_state = state_address;
	host->walk.context.python = 0;
	assert_int_not_equal(walk_python_other(0), 0);
	host->walk.context.python = 1;
	host->python.chain = PP_CHAIN_NONE;
	assert_int_not_equal(walk_python_other(0), 0);
	assert_int_equal(host->walk.py_stop, PP_PY_STOP_NONE);
	host->python.chain = PP_CHAIN_SHIM;
	host->walk.thread_state = 0x1000; /* ended meanwhile */
	assert_int_not_equal(walk_python_other(0), 0);
	assert_int_equal(host->walk.py_stop, PP_PY_STOP_READ_FAULT);
	assert_false(host->walk.count_flags & PP_COUNT_PYTHON);
	host->walk.thread_state = state_address;
	assert_int_equal(walk_python_other(0), 0);
	assert_true(host->walk.count_flags & PP_COUNT_PYTHON);
}

/* ---- GIL and garbage collection ---- */

static uint32_t flags_now(void)
{
	host->walk.count_flags = 0;
	assert_int_equal(walk_python_begin(0), 0);
	return host->walk.count_flags & (PP_COUNT_GIL_HELD | PP_COUNT_GC);
}

static void gil__each_mode(void **state)
{
	uint64_t interp, gil;

	(void)state;
	python_begin(PP_CHAIN_SHIM, 13);
	interp = heap_take(256);
	gil = heap_take(64);
	put_word(state_address + TS_INTERP, interp);
	host->python.gil_mode = PP_GIL_NONE;
	assert_int_equal(flags_now(), 0);

	host->python.gil_mode = PP_GIL_INTERPRETER;
	host->python.gil_offset = 0x40;
	host->python.gil_holder = 8;
	host->python.gil_locked = 16;
	put_word(interp + 0x40, gil);
	put_word(gil + 8, state_address);
	put_u32(gil + 16, 1);
	put_u32(gil + 20, 0xffff); /* not of the int */
	assert_int_equal(flags_now(), PP_COUNT_GIL_HELD);
	put_u32(gil + 16, 0);
	assert_int_equal(flags_now(), 0);
	put_u32(gil + 16, 1);
	put_word(gil + 8, state_address + 8);
	assert_int_equal(flags_now(), 0);

	host->python.gil_mode = PP_GIL_TSTATE_BIT;
	host->python.gil_offset = TS_GIL;
	put_word(state_address + TS_GIL, 0x3b);
	assert_int_equal(flags_now(), PP_COUNT_GIL_HELD);
	put_word(state_address + TS_GIL, 0x0b);
	assert_int_equal(flags_now(), 0);

	host->python.gil_mode = PP_GIL_TSTATE_INT;
	put_word(state_address + TS_GIL, 0x100000001ULL);
	assert_int_equal(flags_now(), PP_COUNT_GIL_HELD);
	put_word(state_address + TS_GIL, 0x100000000ULL);
	assert_int_equal(flags_now(), 0);

	host->python.gil_mode = PP_GIL_CURRENT;
	assert_int_equal(flags_now(), PP_COUNT_GIL_HELD);
}

/* Its last two words, behind which no memory is. */
static void gil__may_end_where_memory_does(void **state)
{
	const uint64_t gil = HEAP + HEAP_BYTES - 16;
	uint64_t interp;

	(void)state;
	python_begin(PP_CHAIN_SHIM, 13);
	interp = heap_take(256);
	put_word(state_address + TS_INTERP, interp);
	put_word(interp + 0x40, gil);
	put_word(gil, state_address);
	put_word(gil + 8, 1);
	host->python.gil_mode = PP_GIL_INTERPRETER;
	host->python.gil_offset = 0x40;
	assert_int_equal(flags_now(), PP_COUNT_GIL_HELD);
	put_word(interp + 0x40, 0);
	assert_int_equal(flags_now(), 0);
	host->walk.context.python_bias = gil;
	host->python.runtime = host->python.gil_offset = 0;
	host->python.gil_mode = PP_GIL_RUNTIME;
	assert_int_equal(flags_now(), PP_COUNT_GIL_HELD);
	put_word(gil + 8, 2);
	assert_int_equal(flags_now(), 0);
	put_word(gil + 8, 1);
	put_word(gil, state_address + 8);
	assert_int_equal(flags_now(), 0);
}

static void gil_and_gc__at_the_runtime_of_3_7_to_3_11(void **state)
{
	(void)state;
	python_begin(PP_CHAIN_FRAME_OBJECT, 8);
	host->walk.context.python_bias = HEAP + 0x10000;
	host->python.runtime = 0x800;
	host->python.gil_mode = PP_GIL_RUNTIME;
	host->python.gil_offset = 0x20;
	host->python.gc_mode = PP_GC_RUNTIME;
	host->python.gc_offset = 0x40;
	put_word(HEAP + 0x10820, state_address);
	put_u32(HEAP + 0x10828, 1);
	assert_int_equal(flags_now(), PP_COUNT_GIL_HELD);
	put_u32(HEAP + 0x10840, 1);
	assert_int_equal(flags_now(), PP_COUNT_GIL_HELD | PP_COUNT_GC);
	put_u32(HEAP + 0x10828, (uint32_t)-1); /* not created */
	assert_int_equal(flags_now(), PP_COUNT_GC);
}

static void gc__of_the_interpreter_and_of_a_global(void **state)
{
	uint64_t interp;

	(void)state;
	python_begin(PP_CHAIN_SHIM, 13);
	interp = heap_take(64);
	put_word(state_address + TS_INTERP, interp);
	host->python.gc_mode = PP_GC_INTERPRETER;
	host->python.gc_offset = 0x10;
	assert_int_equal(flags_now(), 0);
	put_u32(interp + 0x10, 1);
	assert_int_equal(flags_now(), PP_COUNT_GC);
	host->python.gc_mode = PP_GC_GLOBAL;
	host->walk.context.python_bias = HEAP;
	host->python.gc_offset = 0x20000;
	assert_int_equal(flags_now(), 0);
	put_u32(HEAP + 0x20000, 1);
	assert_int_equal(flags_now(), PP_COUNT_GC);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		host_test(chain__frame_objects_of_2_7_to_3_9),
		host_test(chain__frame_objects_with_cframes_of_3_10),
		host_test(chain__frame_object_has_its_instruction_far_behind),
		host_test(chain__entry_frames_of_3_11),
		host_test(chain__shims_of_3_12),
		host_test(chain__shims_of_3_13_and_later_mask_stack_references),
		host_test(chain__frame_owned_by_the_interpreter_is_skipped),
		host_test(chain__own_copy_of_the_bytecode_counts_as_the_main_one),
		host_test(walk_python__bytecode_copies_are_bounded),
		host_test(walk_python__no_frames_at_all_is_the_root),
		host_test(walk_python__process_without_interpreter),
		host_test(walk_python__fault_on_a_frame_keeps_those_before),
		host_test(walk_python__frame_at_the_end_of_its_page_is_read),
		host_test(walk_python__what_is_no_code_object_ends_it),
		host_test(walk_python__circle_ends_by_time),
		host_test(walk_python__deep_stack_keeps_leaf_and_root),
		host_test(walk_python__more_anchors_than_room_are_counted),
		host_test(walk_python_other__begins_at_the_state_that_it_is_given),
		host_test(walk_python_other__needs_an_interpreter_and_the_state),
		host_test(gil__each_mode),
		host_test(gil__may_end_where_memory_does),
		host_test(gil_and_gc__at_the_runtime_of_3_7_to_3_11),
		host_test(gc__of_the_interpreter_and_of_a_global),
	};

	return cmocka_run_group_tests_name("bpf/walk_python", tests, NULL, NULL);
}
