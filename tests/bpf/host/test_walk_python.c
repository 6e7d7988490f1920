/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* sources: python/python_code.c python/python_text.c python/line_table.c python/python_objects.c base/io.c */
/* bpf/lib/walk_python.bpf.h on synthetic interpreters: the five chains, code objects. */
#include "host.h"
#include "python.h"

#include <sys/mman.h>
#include <unistd.h>

#include "python/python_code.h"

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
		assert_int_equal(host->walk.segment[i].mark, va_arg(args, uint64_t));
		assert_int_equal(host->walk.segment[i].frames, va_arg(args, int));
	}
	va_end(args);
}

/* The code record whose id a stored frame has. */
static const struct pp_code_record *code_of(const struct pp_frame *frame)
{
	for (uint32_t i = 0; i < host->record_count; i++) {
		const struct pp_code_record *record = host->record[i].data;

		if (record->record.type == PP_RECORD_CODE && record->id == frame->where)
			return record;
	}
	fail_msg("no record of this code");
	return NULL;
}

#define assert_python(at, name, instruction)                                                       \
	do {                                                                                       \
		const struct pp_code_record *record_ = code_of(python_frame(at));                  \
                                                                                                   \
		assert_int_equal(python_frame(at)->kind, PP_FRAME_PYTHON);                         \
		assert_int_equal(python_frame(at)->what, instruction);                             \
		assert_int_equal(record_->name_bytes, strlen(name));                               \
		assert_memory_equal(record_->bytes, name, strlen(name));                           \
	} while (0)

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
	/* No marks: the eval function's ranges find the activations. */
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
	host->walk.image.python = 0;
	walk();
	assert_int_equal(host->walk.py_stop, PP_PY_STOP_NOT_PYTHON);
	host->walk.image.python = 1;
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
	/* After the object was described, and three times more. */
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

static void walk_python__more_marks_than_room_are_counted(void **state)
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

static void gil_and_gc__at_the_runtime_of_3_7_to_3_11(void **state)
{
	(void)state;
	python_begin(PP_CHAIN_FRAME_OBJECT, 8);
	host->walk.image.python_bias = HEAP + 0x10000;
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
	host->walk.image.python_bias = HEAP;
	host->python.gc_offset = 0x20000;
	assert_int_equal(flags_now(), 0);
	put_u32(HEAP + 0x20000, 1);
	assert_int_equal(flags_now(), PP_COUNT_GC);
}

/* ---- code objects ---- */

static uint64_t describe(uint64_t code)
{
	host->walk.code_address = code;
	/* As the next walk would: the memo of this one does not answer. */
	host->walk.started_ns++;
	assert_int_equal(walk_code(0), 0);
	return host->walk.code_id;
}

static void code__is_described_once_and_whole(void **state)
{
	const struct pp_code_record *record;
	uint64_t code, id;

	(void)state;
	python_begin(PP_CHAIN_SHIM, 13);
	code = new_code("Job.run", 42);
	id = describe(code);
	assert_int_equal(host->record_count, 1);
	assert_ptr_equal(host->record[0].ring, &stacks);
	record = host->record[0].data;
	assert_int_equal(host->record[0].size, sizeof(*record) + 7 + 11 + 3);
	assert_int_equal(record->record.size, host->record[0].size);
	assert_int_equal(record->id, id);
	assert_int_not_equal(id, 0);
	assert_int_equal(record->address, code);
	assert_int_equal(record->process.tgid, 70);
	assert_int_equal(record->first_line, 42);
	assert_int_equal(record->code_flags, 0x43);
	assert_int_equal(record->python, 1);
	assert_int_equal(record->flags, 0);
	assert_int_equal(record->name_kind, 1);
	assert_int_equal(record->filename_kind, 1);
	assert_int_equal(record->line_table_bytes, 3);
	assert_memory_equal(record->bytes, "Job.run/srv/app.py\x80\x01\x02", 21);
	assert_int_equal(describe(code), id);
	assert_int_equal(host->record_count, 1);
}

static void code__same_content_elsewhere_has_the_same_id(void **state)
{
	uint64_t first, id;

	(void)state;
	python_begin(PP_CHAIN_SHIM, 13);
	first = new_code("Job.run", 42);
	id = describe(first);
	/* The body of another lies in the buffer in between: old bytes must not count. */
	describe(new_code("a_much_longer_name_than_the_first_one", 42));
	assert_int_equal(describe(new_code("Job.run", 42)), id);
	assert_int_equal(host->record_count, 2);
	host->walk.image.code_space = 10;
	assert_int_equal(describe(first), id);
	assert_int_equal(host->record_count, 2);
}

static void code__each_part_of_the_content_changes_the_id(void **state)
{
	uint64_t id, code;

	(void)state;
	python_begin(PP_CHAIN_SHIM, 13);
	id = describe(new_code("Job.run", 42));
	assert_int_not_equal(describe(new_code("Job.ruN", 42)), id);
	assert_int_not_equal(describe(new_code("Job.run", 43)), id);
	code = new_code("Job.run", 42);
	put_word(code + CODE_FILENAME, new_string("/srv/app.pz"));
	assert_int_not_equal(describe(code), id);
	code = new_code("Job.run", 42);
	put_word(code + CODE_LINES, new_line_table("\x80\x01\x03", 3));
	assert_int_not_equal(describe(code), id);
	code = new_code("Job.run", 42);
	put_u32(code + CODE_FLAGS, 0x63);
	assert_int_not_equal(describe(code), id);
	assert_int_equal(host->record_count, 6);
}

static void code__new_one_at_a_known_address_is_described(void **state)
{
	uint64_t code, id;

	(void)state;
	python_begin(PP_CHAIN_SHIM, 13);
	code = new_code("Job.run", 42);
	id = describe(code);
	put_word(code + CODE_NAME, new_string("other"));
	put_word(code + CODE_QUALNAME, new_string("Job.other"));
	assert_int_not_equal(describe(code), id);
	assert_int_equal(host->record_count, 2);
	/* The same function, compiled anew. */
	id = host->walk.code_id;
	put_word(code + CODE_LINES, new_line_table("\x80\x05\x06", 3));
	assert_int_not_equal(describe(code), id);
	assert_int_equal(host->record_count, 3);
}

static void code__long_parts_are_cut_and_marked(void **state)
{
	static char name[PP_MAX_NAME_BYTES + 200], lines[PP_MAX_LINE_TABLE_BYTES + 77];
	const struct pp_code_record *record;
	uint64_t code;

	(void)state;
	python_begin(PP_CHAIN_SHIM, 13);
	memset(name, 'n', sizeof(name) - 1);
	memset(lines, 7, sizeof(lines));
	code = new_code(name, 1);
	put_word(code + CODE_LINES, new_line_table(lines, sizeof(lines)));
	describe(code);
	record = host->record[0].data;
	assert_int_equal(record->flags, PP_CODE_TRUNCATED);
	assert_int_equal(record->name_bytes, PP_MAX_NAME_BYTES);
	assert_int_equal(record->filename_bytes, 11);
	assert_int_equal(record->line_table_bytes, PP_MAX_LINE_TABLE_BYTES);
	/* The agent reads the rest from the live process: soon. */
	assert_int_equal(host->record[0].flags, BPF_RB_FORCE_WAKEUP);
}

static void code__wide_names_tell_their_kind(void **state)
{
	const struct pp_code_record *record;
	uint64_t code, name;

	(void)state;
	python_begin(PP_CHAIN_SHIM, 13);
	code = new_code("-", 1);
	name = heap_take(128);
	put_word(name + STR_LENGTH, 3);
	put_u32(name + STR_STATE, 2 << 2);
	put_bytes(name + STR_COMPACT, "\x31\x04\x32\x04\x33\x04", 6);
	put_word(code + CODE_QUALNAME, name);
	describe(code);
	record = host->record[0].data;
	assert_int_equal(record->name_kind, 2);
	assert_int_equal(record->name_bytes, 6);
	assert_memory_equal(record->bytes, "\x31\x04\x32\x04\x33\x04", 6);
}

static void code__byte_names_of_2_7(void **state)
{
	const struct pp_code_record *record;
	uint64_t code, name;

	(void)state;
	python_begin(PP_CHAIN_FRAME_OBJECT, 7);
	host->python.major = 2;
	host->python.flags = PP_PYTHON_BYTES_NAMES | PP_PYTHON_LASTI;
	host->python.code_qualname = PP_NO_OFFSET;
	code = new_code("-", 1);
	name = heap_take(128);
	put_word(name + STR_LENGTH, 4);
	put_bytes(name + STR_ASCII, "old\xe9", 4);
	put_word(code + CODE_NAME, name);
	describe(code);
	record = host->record[0].data;
	assert_int_equal(record->name_kind, 1);
	assert_memory_equal(record->bytes, "old\xe9", 4);
}

static void code__that_is_not_resident_is_left_to_the_agent(void **state)
{
	uint64_t code, frame;

	(void)state;
	python_begin(PP_CHAIN_SHIM, 13);
	code = new_code("a", 1);
	frame = new_frame(code, 0, 0);
	put_word(state_address + TS_FRAME, frame);
	put_fault(code, 8);
	walk();
	assert_int_equal(host->walk.py_stop, PP_PY_STOP_ROOT);
	assert_frame(python_frame(0), PP_FRAME_PYTHON_RAW, code, CODE_ADAPTIVE + 100);
	assert_int_equal(host->record_count, 0);
}

static void code__whose_name_cannot_be_read_is_counted(void **state)
{
	uint64_t code, frame, name;

	(void)state;
	python_begin(PP_CHAIN_SHIM, 13);
	code = new_code("a", 1);
	name = new_string("gone");
	put_word(code + CODE_QUALNAME, name);
	put_fault(name, 8);
	frame = new_frame(code, 0, 0);
	put_word(state_address + TS_FRAME, frame);
	walk();
	assert_frame(python_frame(0), PP_FRAME_PYTHON_RAW, code, CODE_ADAPTIVE + 100);
	assert_int_equal(host->losses[PP_LOSS_CODE_FAULT], 1);
}

static void code__that_does_not_fit_into_the_ring_is_described_later(void **state)
{
	uint64_t code;

	(void)state;
	python_begin(PP_CHAIN_SHIM, 13);
	code = new_code("a", 1);
	host->ring_is_full = true;
	assert_int_equal(describe(code), 0);
	assert_int_equal(host->losses[PP_LOSS_RING_FULL], 1);
	host->ring_is_full = false;
	assert_int_not_equal(describe(code), 0);
	assert_int_equal(host->record_count, 1);
}

static void code__table_that_is_busy_is_counted(void **state)
{
	uint64_t code, id;

	(void)state;
	python_begin(PP_CHAIN_SHIM, 13);
	code = new_code("a", 1);
	host->codes.refuses = -EBUSY;
	id = describe(code);
	assert_int_not_equal(id, 0);
	assert_int_equal(host->losses[PP_LOSS_CODES_BUSY], 1);
	/* Described again, not sent again. */
	assert_int_equal(describe(code), id);
	assert_int_equal(host->record_count, 1);
}

/* Stacks that the agent finishes hold codes that either side has read. */
static void code__has_the_id_that_the_agent_gives_it(void **state)
{
	OWNED(python_code) struct python_code *code = NULL;
	char name[PP_MAX_NAME_BYTES + 100];
	uint64_t short_code, long_code;
	void *memory;

	(void)state;
	memset(name, 'n', sizeof(name) - 1);
	name[sizeof(name) - 1] = 0;
	python_begin(PP_CHAIN_SHIM, 13);
	short_code = new_code("outer.<locals>.inner", 7);
	long_code = new_code(name, 8);
	put_word(state_address + TS_FRAME, new_frame(short_code, new_frame(long_code, 0, 0), 0));
	walk();
	/* The target's memory is our own, at the same addresses. */
	memory = mmap((void *)HEAP, HEAP_BYTES, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
	assert_ptr_equal(memory, HEAP);
	memcpy(memory, host->region[1].bytes, HEAP_BYTES);
	assert_int_equal(python_code_read(getpid(), &host->python, INTERPRETER, short_code, &code), 0);
	assert_int_equal(host->walk.out.frame[0].where, code->id);
	python_code_free(TAKE(code));
	assert_int_equal(python_code_read(getpid(), &host->python, INTERPRETER, long_code, &code), 0);
	assert_int_equal(host->walk.out.frame[1].where, code->id);
	munmap(memory, HEAP_BYTES);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		host_test(code__has_the_id_that_the_agent_gives_it),
		host_test(chain__frame_objects_of_2_7_to_3_9),
		host_test(chain__frame_objects_with_cframes_of_3_10),
		host_test(chain__entry_frames_of_3_11),
		host_test(chain__shims_of_3_12),
		host_test(chain__shims_of_3_13_and_later_mask_stack_references),
		host_test(chain__frame_owned_by_the_interpreter_is_skipped),
		host_test(chain__own_copy_of_the_bytecode_counts_as_the_main_one),
		host_test(walk_python__no_frames_at_all_is_the_root),
		host_test(walk_python__process_without_interpreter),
		host_test(walk_python__fault_on_a_frame_keeps_those_before),
		host_test(walk_python__frame_at_the_end_of_its_page_is_read),
		host_test(walk_python__what_is_no_code_object_ends_it),
		host_test(walk_python__circle_ends_by_time),
		host_test(walk_python__deep_stack_keeps_leaf_and_root),
		host_test(walk_python__more_marks_than_room_are_counted),
		host_test(gil__each_mode),
		host_test(gil_and_gc__at_the_runtime_of_3_7_to_3_11),
		host_test(gc__of_the_interpreter_and_of_a_global),
		host_test(code__is_described_once_and_whole),
		host_test(code__same_content_elsewhere_has_the_same_id),
		host_test(code__each_part_of_the_content_changes_the_id),
		host_test(code__new_one_at_a_known_address_is_described),
		host_test(code__long_parts_are_cut_and_marked),
		host_test(code__wide_names_tell_their_kind),
		host_test(code__byte_names_of_2_7),
		host_test(code__that_is_not_resident_is_left_to_the_agent),
		host_test(code__whose_name_cannot_be_read_is_counted),
		host_test(code__that_does_not_fit_into_the_ring_is_described_later),
		host_test(code__table_that_is_busy_is_counted),
	};

	return cmocka_run_group_tests_name("bpf/walk_python", tests, NULL, NULL);
}
