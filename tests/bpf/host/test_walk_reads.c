/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* How often a walk reads the program's memory: each read costs as much as a whole step without
 * one. */
#include "host.h"
#include "python.h"

#define SP (STACK + 0x1000) /* of the leaf */
#define PAGE_BYTES 4096U

static uint64_t code;

static void begin(void)
{
	python_init(PP_CHAIN_SHIM, 13);
	host->walk.context.python = 1;
	host->walk.context.python_bias = INTERPRETER;
	code = new_code("a", 1);
	/* Described once: the steps of the test have it in the memo. */
	host->walk.code_address = code;
	assert_int_equal(walk_code(0), 0);
}

/* Python frames from `frame` on; returns the reads that they took. */
static uint64_t walk_python(uint64_t frame)
{
	uint64_t before = host->user_reads;

	host->walk.python_frame = frame;
	while (!python_step())
		continue;
	return host->user_reads - before;
}

static void put_frame(uint64_t at, uint64_t previous, uint8_t owner)
{
	put_word(at + FRAME_CODE, code);
	put_word(at + FRAME_PREVIOUS, previous);
	put_word(at + FRAME_INSTR, code + CODE_ADAPTIVE + (at & 0xfff));
	put_bytes(at + FRAME_OWNER, &owner, 1);
}

/* `count` frames of 100 bytes, the leaf highest; returns the leaf. */
static uint64_t put_frames(uint64_t lowest, uint32_t count, uint64_t previous)
{
	for (uint32_t i = 0; i < count; i++) {
		put_frame(lowest + i * 100, previous, 0);
		previous = lowest + i * 100;
	}
	return previous;
}

static void assert_frames(uint32_t from, uint64_t leaf, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		assert_frame(python_frame(from + i), PP_FRAME_PYTHON, host->walk.code_id,
			     CODE_ADAPTIVE + ((leaf - i * 100) & 0xfff));
}

static void python_frames__that_lie_together_are_read_together(void **state)
{
	uint64_t leaf;

	(void)state;
	begin();
	leaf = put_frames(HEAP + 5 * PAGE_BYTES + 100, 20, 0);
	assert_in_range(walk_python(leaf), 2, 3);
	assert_int_equal(host->walk.py_stop, PP_PY_STOP_ROOT);
	assert_int_equal(host->walk.python_count, 20);
	assert_frames(0, leaf, 20);
}

/* A shim lies on the C stack, a generator's frame in the heap: the walk comes back from there. */
static void python_frames__elsewhere_do_not_end_what_is_read(void **state)
{
	const uint64_t root = HEAP + 5 * PAGE_BYTES + 100, generator = HEAP + 9 * PAGE_BYTES;
	uint64_t leaf;

	(void)state;
	begin();
	put_frames(root, 1, 0);
	put_frame(SP, root, 3);
	put_frames(root + 100, 1, SP);
	put_frame(generator, root + 100, 1);
	leaf = put_frames(root + 200, 2, generator);
	assert_int_equal(walk_python(leaf), 3);
	assert_int_equal(host->walk.py_stop, PP_PY_STOP_ROOT);
	assert_int_equal(host->walk.python_count, 5);
	assert_frames(0, leaf, 2);
	assert_frames(2, generator, 1);
	assert_frames(3, root + 100, 2);
	assert_int_equal(host->walk.segment_count, 1);
	assert_int_equal(host->walk.segment[0].anchor, SP);
	assert_int_equal(host->walk.segment[0].frames, 4);
}

static void python_frames__of_a_chunk_far_below_are_read_together(void **state)
{
	uint64_t leaf;

	(void)state;
	begin();
	leaf = put_frames(HEAP + 4 * PAGE_BYTES, 8, 0);
	leaf = put_frames(HEAP + 16 * PAGE_BYTES, 4, leaf);
	assert_in_range(walk_python(leaf), 2, 5);
	assert_int_equal(host->walk.python_count, 12);
	assert_frames(4, HEAP + 4 * PAGE_BYTES + 700, 8);
}

static void python_frames__page_below_is_not_touched(void **state)
{
	const uint64_t page = HEAP + 5 * PAGE_BYTES;

	(void)state;
	begin();
	put_frame(page + 40, 0, 0);
	put_fault(page - PAGE_BYTES, PAGE_BYTES);
	assert_int_equal(walk_python(page + 40), 1);
	assert_int_equal(host->walk.python_count, 1);
	assert_frames(0, page + 40, 1);
}

static void python_frames__that_are_not_there_end_the_walk(void **state)
{
	const uint64_t page = HEAP + 5 * PAGE_BYTES;
	uint64_t leaf;

	(void)state;
	begin();
	leaf = put_frames(page + 100, 2, page - 200);
	put_fault(page - PAGE_BYTES, PAGE_BYTES);
	walk_python(leaf);
	assert_int_equal(host->walk.py_stop, PP_PY_STOP_READ_FAULT);
	assert_int_equal(host->walk.python_count, 2);
}

/* The frames below cannot be read at once: what was read before is gone then, and read again. */
static void python_frames__failed_read_forgets_what_was_read(void **state)
{
	const uint64_t page = HEAP + 5 * PAGE_BYTES;

	(void)state;
	begin();
	put_frame(page, 0, 0);
	put_frame(page - 200, page, 0);
	put_frame(page + 100, page - 200, 0);
	put_fault(page - PAGE_BYTES, PAGE_BYTES - 300);
	walk_python(page + 100);
	assert_int_equal(host->walk.py_stop, PP_PY_STOP_ROOT);
	assert_int_equal(host->walk.python_count, 3);
	assert_frame(python_frame(2), PP_FRAME_PYTHON, host->walk.code_id, CODE_ADAPTIVE);
}

static void native_frames__of_one_window_take_one_read(void **state)
{
	/* Compiled without frame pointers: rbp is one of the registers saved. */
	const struct pp_rule rule = {.kind = PP_RULE_CFA_SP,
				     .cfa_offset = 48,
				     .ra_offset = -8,
				     .fp_kind = PP_FP_AT_CFA,
				     .fp_offset = -40};
	uint64_t before;

	(void)state;
	for (uint32_t i = 1; i <= 4; i++) {
		*library_rule(i) = rule;
		put_word(SP + i * 48 - 40, 0x1000 + i);
		put_word(SP + i * 48 - 8, library_pc(i < 4 ? i + 1 : 0));
	}
	host->walk.pc = library_pc(1);
	host->walk.sp = SP;
	before = host->user_reads;
	while (!native_step())
		continue;
	assert_int_equal(host->walk.stop, PP_STOP_ROOT);
	assert_int_equal(host->walk.native_count, 5);
	assert_int_equal(host->walk.fp, 0x1004);
	assert_int_equal(host->user_reads - before, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		host_test(python_frames__that_lie_together_are_read_together),
		host_test(python_frames__elsewhere_do_not_end_what_is_read),
		host_test(python_frames__of_a_chunk_far_below_are_read_together),
		host_test(python_frames__page_below_is_not_touched),
		host_test(python_frames__that_are_not_there_end_the_walk),
		host_test(python_frames__failed_read_forgets_what_was_read),
		host_test(native_frames__of_one_window_take_one_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
