/* SPDX-License-Identifier: BSD-2-Clause */
/* Which frames an incomplete stack gets, by the decisions of bpf/lib/walk_native.bpf.h. */
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "finish/user_unwind.h"
#include "symbolize/stitch.h"

#define INTERPRETER 7U
#define OTHER 9U

/* A thread with two segments of Python, whose eval functions have their anchors at 0x1100 and
 * 0x2100. */
static const struct pp_segment segments[2] = {{.anchor = 0x1100, .frames = 3},
					      {.anchor = 0x2100, .frames = 2}};
static const struct pp_python python = {.file = INTERPRETER, .chain = PP_CHAIN_SHIM};

struct fixture {
	struct pp_incomplete_record incomplete;
	struct decoded_incomplete decoded;
	struct pp_frame walked[16]; /* Python frames, then native ones */
	struct pp_stack_record *record;
	struct unwind_frames frames;
};

static void begin(struct fixture *f, uint32_t segment_count)
{
	f->incomplete.segment_count = (uint16_t)segment_count;
	f->decoded = (struct decoded_incomplete){.record = &f->incomplete,
						 .python = f->walked,
						 .native = f->walked + f->incomplete.python_stored,
						 .segment = segments};
	f->record = malloc(unwind_frames_record_bytes());
	assert_non_null(f->record);
	memset(f->record, 0xee, unwind_frames_record_bytes());
	unwind_frames_begin(&f->frames, &f->decoded, f->record);
	f->frames.python = &python;
}

static void end(struct fixture *f)
{
	free(f->record);
}

/* The native frame at an index. */
static void expect(const struct fixture *f, uint32_t at, enum pp_frame_kind kind, uint64_t where)
{
	const struct pp_frame *frame = &f->record->frame[f->record->python_stored + at];

	assert_true(at < f->record->native_stored);
	assert_int_equal(frame->kind, kind);
	assert_int_equal(frame->where, where);
	/* The kernel side's bytes: equal stacks have one hash. */
	if (kind == PP_FRAME_SEGMENT || kind == PP_FRAME_GAP)
		assert_int_equal(frame->what, 0);
}

static void unwind_frames__segment_stands_at_the_frame_that_holds_its_anchor(void **state)
{
	struct fixture f = {};

	(void)state;
	begin(&f, 1);
	assert_true(unwind_frames_add(&f.frames, OTHER, 0x10, 0x1000, 0x1080));
	assert_true(unwind_frames_add(&f.frames, INTERPRETER, 0x20, 0x1080, 0x1200));
	assert_true(unwind_frames_add(&f.frames, OTHER, 0x30, 0x1200, 0x1300));
	assert_int_equal(f.record->native_stored, 3);
	expect(&f, 0, PP_FRAME_NATIVE, 0x10);
	expect(&f, 1, PP_FRAME_SEGMENT, 3);
	expect(&f, 2, PP_FRAME_NATIVE, 0x30);
	assert_null(unwind_frames_next_segment(&f.frames));
	end(&f);
}

/* Frames of the interpreter between two activations say nothing; of another file they do. */
static void check_fold(uint32_t file, bool raw, bool is_folded)
{
	struct fixture f = {};

	begin(&f, 2);
	f.frames.raw = raw;
	assert_true(unwind_frames_add(&f.frames, INTERPRETER, 0x20, 0x1080, 0x1200));
	assert_true(unwind_frames_add(&f.frames, file, 0x21, 0x1200, 0x1300));
	assert_true(unwind_frames_add(&f.frames, INTERPRETER, 0x20, 0x2080, 0x2200));
	assert_int_equal(f.record->native_stored, is_folded ? 2 : 3);
	assert_int_equal(f.record->native_count, f.record->native_stored);
	expect(&f, f.record->native_stored - 1U, PP_FRAME_SEGMENT, 2);
	end(&f);
}

static void unwind_frames__interpreters_frames_between_segments_are_folded(void **state)
{
	(void)state;
	check_fold(INTERPRETER, false, true);
	check_fold(INTERPRETER, true, false);
	check_fold(OTHER, false, false);
}

/* The record says that three of its frames may be folded, and holds one. */
static void unwind_frames__frames_that_are_not_in_the_record_are_not_folded(void **state)
{
	struct fixture f = {
		.incomplete = {
			.native_stored = 0, .native_count = 3, .since_segment = 3, .foldable = 1}};

	(void)state;
	begin(&f, 1);
	assert_int_equal(unwind_frames_foldable(&f.frames), 0);
	assert_true(unwind_frames_add(&f.frames, INTERPRETER, 0x20, 0x1080, 0x1200));
	assert_int_equal(f.record->native_stored, 2);
	expect(&f, 1, PP_FRAME_SEGMENT, 3);
	end(&f);
}

static void unwind_frames__one_foreign_frame_between_segments_keeps_all(void **state)
{
	struct fixture f = {};

	(void)state;
	begin(&f, 2);
	assert_true(unwind_frames_add(&f.frames, INTERPRETER, 0x20, 0x1080, 0x1200));
	assert_true(unwind_frames_add(&f.frames, OTHER, 0x21, 0x1200, 0x1300));
	assert_true(unwind_frames_add(&f.frames, INTERPRETER, 0x22, 0x1300, 0x1400));
	assert_true(unwind_frames_add(&f.frames, INTERPRETER, 0x20, 0x2080, 0x2200));
	assert_int_equal(f.record->native_stored, 4);
	end(&f);
}

static void unwind_frames__anchor_that_was_passed_is_placed_before_the_frame(void **state)
{
	struct fixture f = {};

	(void)state;
	begin(&f, 1);
	assert_true(unwind_frames_add(&f.frames, OTHER, 0x30, 0x1200, 0x1300));
	assert_int_equal(f.record->native_stored, 2);
	expect(&f, 0, PP_FRAME_SEGMENT, 3);
	expect(&f, 1, PP_FRAME_NATIVE, 0x30);
	end(&f);
}

/* The interpreter's frames before it belong to the way from another activation. */
static void unwind_frames__anchor_that_was_passed_folds_nothing(void **state)
{
	struct fixture f = {};

	(void)state;
	begin(&f, 2);
	assert_true(unwind_frames_add(&f.frames, INTERPRETER, 0x20, 0x1080, 0x1200));
	assert_true(unwind_frames_add(&f.frames, INTERPRETER, 0x21, 0x1200, 0x1300));
	assert_true(unwind_frames_add(&f.frames, OTHER, 0x30, 0x2200, 0x2300));
	assert_int_equal(f.record->native_stored, 4);
	expect(&f, 1, PP_FRAME_NATIVE, 0x21);
	expect(&f, 2, PP_FRAME_SEGMENT, 2);
	end(&f);
	/* One after the other. */
	begin(&f, 2);
	assert_true(unwind_frames_add(&f.frames, OTHER, 0x30, 0x1200, 0x1300));
	assert_true(unwind_frames_add(&f.frames, OTHER, 0x31, 0x2200, 0x2300));
	assert_int_equal(f.record->native_stored, 4);
	expect(&f, 0, PP_FRAME_SEGMENT, 3);
	expect(&f, 2, PP_FRAME_SEGMENT, 2);
	end(&f);
}

static void unwind_frames_skip__leaves_a_gap_and_the_segment(void **state)
{
	struct fixture f = {};

	(void)state;
	begin(&f, 1);
	assert_true(unwind_frames_skip(&f.frames));
	expect(&f, 0, PP_FRAME_GAP, 0);
	expect(&f, 1, PP_FRAME_SEGMENT, 3);
	assert_false(unwind_frames_skip(&f.frames));
	assert_int_equal(f.record->native_stored, 2);
	end(&f);
	/* Each segment comes once. */
	begin(&f, 2);
	assert_true(unwind_frames_skip(&f.frames));
	assert_true(unwind_frames_skip(&f.frames));
	expect(&f, 3, PP_FRAME_SEGMENT, 2);
	assert_false(unwind_frames_skip(&f.frames));
	end(&f);
}

static void unwind_frames__end_where_the_record_is_full(void **state)
{
	struct fixture f = {};
	uint32_t count = 0;

	(void)state;
	begin(&f, 0);
	while (unwind_frames_add(&f.frames, OTHER, count, 0x1000, 0x1080))
		count++;
	assert_int_equal(count, STITCH_STACK_FRAMES);
	assert_int_equal(f.record->native_stored, STITCH_STACK_FRAMES);
	end(&f);
}

static void unwind_frames_begin__takes_what_was_walked(void **state)
{
	struct fixture f = {.incomplete = {.python_stored = 1,
					   .python_count = 1,
					   .native_stored = 1,
					   .native_count = 1,
					   .since_segment = 1,
					   .foldable = 1},
			    .walked = {{.where = 0x99, .kind = PP_FRAME_PYTHON},
				       {.where = 0x11, .kind = PP_FRAME_NATIVE}}};

	(void)state;
	begin(&f, 1);
	assert_int_equal(f.record->frame[0].where, 0x99);
	assert_int_equal(f.record->frame[1].where, 0x11);
	assert_int_equal(unwind_frames_foldable(&f.frames), 1);
	/* The frame that the kernel side had pushed is folded by the segment that follows. */
	assert_true(unwind_frames_add(&f.frames, INTERPRETER, 0x20, 0x1080, 0x1200));
	assert_int_equal(f.record->native_stored, 1);
	assert_int_equal(f.record->frame[1].kind, PP_FRAME_SEGMENT);
	end(&f);
}

/* A run takes back up to three of the interpreter's frames before it: more of them say
 * something. */
static void unwind_frames__folding_within_bounds(void **state)
{
	(void)state;
	for (uint32_t between = 0; between < 6; between++) {
		struct fixture f = {};
		const uint32_t kept = between > PP_MAX_FOLDED_FRAMES ? between : 0;

		begin(&f, 2);
		assert_true(unwind_frames_add(&f.frames, INTERPRETER, 0x20, 0x1080, 0x1200));
		for (uint32_t i = 0; i < between; i++)
			assert_true(unwind_frames_add(&f.frames, INTERPRETER, 0x21, 0x1200 + i,
						      0x1201 + i));
		assert_int_equal(unwind_frames_foldable(&f.frames), between - kept);
		assert_true(unwind_frames_add(&f.frames, INTERPRETER, 0x20, 0x2080, 0x2200));
		assert_int_equal(f.record->native_stored, 2 + kept);
		assert_int_equal(f.record->native_count, 2 + kept);
		expect(&f, 1 + kept, PP_FRAME_SEGMENT, 2);
		assert_int_equal(unwind_frames_foldable(&f.frames), 0);
		end(&f);
	}
}

/* An anchor belongs to [low, CFA) of a frame. */
static void unwind_frames__anchor_within_the_bounds_of_its_frame(void **state)
{
	static const struct {
		uint64_t low, cfa;
		bool is_here;
	} expected[] = {{0x1100, 0x1101, true}, {0x10ff, 0x1101, true}, {0x1080, 0x1100, false}};

	(void)state;
	for (size_t i = 0; i < sizeof(expected) / sizeof(expected[0]); i++) {
		struct fixture f = {};

		begin(&f, 1);
		assert_true(unwind_frames_add(&f.frames, INTERPRETER, 0x20, expected[i].low,
					      expected[i].cfa));
		assert_int_equal(f.record->native_stored, 1);
		expect(&f, 0, expected[i].is_here ? PP_FRAME_SEGMENT : PP_FRAME_NATIVE,
		       expected[i].is_here ? 3 : 0x20);
		assert_int_equal(!unwind_frames_next_segment(&f.frames), expected[i].is_here);
		end(&f);
	}
}

/* Frames that are reached deeper than an anchor without having held it: the run comes first, with
 * nothing folded, and only when its anchor is known. */
static void unwind_frames__passed_anchor_within_bounds(void **state)
{
	struct fixture f = {};
	struct pp_segment unknown[1] = {{.anchor = 0, .frames = 3}};

	(void)state;
	begin(&f, 1);
	assert_true(unwind_frames_add(&f.frames, INTERPRETER, 0x20, 0x1000, 0x1080));
	assert_true(unwind_frames_add(&f.frames, OTHER, 0x30, 0x1100, 0x1300)); /* holds it */
	assert_int_equal(f.record->native_stored, 2);
	assert_true(unwind_frames_add(&f.frames, OTHER, 0x31, 0x1101, 0x1300));
	assert_int_equal(f.record->native_stored, 4);
	expect(&f, 2, PP_FRAME_SEGMENT, 3);
	expect(&f, 3, PP_FRAME_NATIVE, 0x31);
	assert_null(unwind_frames_next_segment(&f.frames));
	end(&f);

	begin(&f, 1);
	f.frames.segment = unknown;
	assert_true(unwind_frames_add(&f.frames, OTHER, 0x30, 0x1200, 0x1300));
	assert_int_equal(f.record->native_stored, 1);
	assert_non_null(unwind_frames_next_segment(&f.frames));
	end(&f);
}

/* Up to 3.10 each native eval frame is one Python frame, by the function's range. */
static void unwind_frames__eval_ranges_are_half_open(void **state)
{
	static const struct pp_python by_range = {.file = INTERPRETER,
						  .chain = PP_CHAIN_FRAME_OBJECT,
						  .eval_range_count = 2,
						  .eval = {{0x100, 0x110}, {0x200, 0x210}}};
	static const struct {
		uint64_t vaddr;
		uint32_t file;
		bool is_eval;
	} expected[] = {
		{0xff, INTERPRETER, false},  {0x100, INTERPRETER, true}, {0x10f, INTERPRETER, true},
		{0x110, INTERPRETER, false}, {0x200, INTERPRETER, true}, {0x100, OTHER, false},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(expected) / sizeof(expected[0]); i++) {
		struct fixture f = {};

		begin(&f, 0);
		f.frames.python = &by_range;
		assert_true(unwind_frames_add(&f.frames, expected[i].file, expected[i].vaddr,
					      0x1000, 0x1080));
		expect(&f, 0, expected[i].is_eval ? PP_FRAME_SEGMENT : PP_FRAME_NATIVE,
		       expected[i].is_eval ? 1 : expected[i].vaddr);
		end(&f);
	}
	struct pp_python damaged = by_range;
	struct fixture f = {};

	/* What lies behind the last range is none. */
	damaged.eval[2].low = 0x300;
	damaged.eval[2].high = 0x310;
	begin(&f, 0);
	f.frames.python = &damaged;
	assert_true(unwind_frames_add(&f.frames, INTERPRETER, 0x300, 0x1000, 0x1080));
	expect(&f, 0, PP_FRAME_NATIVE, 0x300);
	end(&f);
	/* A count beyond the array's size reads no more than there is. */
	damaged.eval[2].high = 0;
	damaged.eval_range_count = PP_MAX_EVAL_RANGES + 1;
	begin(&f, 0);
	f.frames.python = &damaged;
	assert_true(unwind_frames_add(&f.frames, INTERPRETER, 0x300, 0x1000, 0x1080));
	expect(&f, 0, PP_FRAME_NATIVE, 0x300);
	end(&f);
}

static void unwind_frames__kind_says_whether_there_is_a_file(void **state)
{
	struct fixture f = {};

	(void)state;
	begin(&f, 0);
	assert_true(unwind_frames_add(&f.frames, PP_FILE_ANONYMOUS, 0x10, 0x1000, 0x1080));
	assert_true(unwind_frames_add(&f.frames, OTHER, 0x11, 0x1080, 0x1100));
	expect(&f, 0, PP_FRAME_ANONYMOUS, 0x10);
	expect(&f, 1, PP_FRAME_NATIVE, 0x11);
	assert_int_equal(f.record->frame[1].what, OTHER);
	end(&f);
}

/* Frames of before a gap are not the interpreter's way from one activation to the next. */
static void unwind_frames_skip__folds_nothing(void **state)
{
	struct fixture f = {};

	(void)state;
	begin(&f, 2);
	assert_true(unwind_frames_add(&f.frames, INTERPRETER, 0x20, 0x1080, 0x1200));
	assert_true(unwind_frames_add(&f.frames, INTERPRETER, 0x21, 0x1200, 0x1300));
	assert_true(unwind_frames_skip(&f.frames));
	assert_int_equal(f.record->native_stored, 4);
	expect(&f, 1, PP_FRAME_NATIVE, 0x21);
	expect(&f, 2, PP_FRAME_GAP, 0);
	expect(&f, 3, PP_FRAME_SEGMENT, 2);
	end(&f);
}

/* The kernel side keeps the first frames and, in a ring, the last quarter: they come in order, with
 * a gap that says how many are missing. */
static void expect_unrolled(uint16_t stored, uint32_t walked)
{
	const uint32_t ring = stored / PP_ROOT_SHARE, leaf = stored - ring;
	struct fixture f = {.incomplete = {.python_stored = 1,
					   .native_stored = stored,
					   .native_count = walked}};

	/* Frame n is at n, and those behind the leaf's take turns in the ring. */
	for (uint32_t n = 0; n < walked; n++)
		f.walked[1 + (n < leaf ? n : leaf + (n - leaf) % ring)] =
			(struct pp_frame){.where = 100 + n, .kind = PP_FRAME_NATIVE};
	f.walked[0] = (struct pp_frame){.where = 99, .kind = PP_FRAME_PYTHON};
	begin(&f, 0);
	assert_int_equal(f.record->frame[0].where, 99);
	assert_int_equal(f.record->native_stored, stored + (walked > stored));
	assert_int_equal(f.record->native_count, f.record->native_stored);
	for (uint32_t n = 0; n < leaf; n++)
		expect(&f, n, PP_FRAME_NATIVE, 100 + n);
	if (walked > stored)
		expect(&f, leaf, PP_FRAME_GAP, walked - stored);
	for (uint32_t n = 0; n < ring; n++)
		expect(&f, f.record->native_stored - ring + n, PP_FRAME_NATIVE,
		       100 + walked - ring + n);
	/* Nothing is written behind the last one. */
	assert_int_equal(f.record->frame[1 + f.record->native_stored].kind, 0xeeee);
	end(&f);
}

static void unwind_frames_begin__ring_of_the_last_frames_is_unrolled(void **state)
{
	(void)state;
	for (uint16_t stored = 8; stored < 16; stored++)
		for (uint32_t walked = stored; walked < 2 * stored; walked++)
			expect_unrolled(stored, walked);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(unwind_frames__segment_stands_at_the_frame_that_holds_its_anchor),
		cmocka_unit_test(unwind_frames__interpreters_frames_between_segments_are_folded),
		cmocka_unit_test(unwind_frames__frames_that_are_not_in_the_record_are_not_folded),
		cmocka_unit_test(unwind_frames__one_foreign_frame_between_segments_keeps_all),
		cmocka_unit_test(unwind_frames__anchor_that_was_passed_is_placed_before_the_frame),
		cmocka_unit_test(unwind_frames__anchor_that_was_passed_folds_nothing),
		cmocka_unit_test(unwind_frames_skip__leaves_a_gap_and_the_segment),
		cmocka_unit_test(unwind_frames__end_where_the_record_is_full),
		cmocka_unit_test(unwind_frames_begin__takes_what_was_walked),
		cmocka_unit_test(unwind_frames__folding_within_bounds),
		cmocka_unit_test(unwind_frames__anchor_within_the_bounds_of_its_frame),
		cmocka_unit_test(unwind_frames__passed_anchor_within_bounds),
		cmocka_unit_test(unwind_frames__eval_ranges_are_half_open),
		cmocka_unit_test(unwind_frames__kind_says_whether_there_is_a_file),
		cmocka_unit_test(unwind_frames_skip__folds_nothing),
		cmocka_unit_test(unwind_frames_begin__ring_of_the_last_frames_is_unrolled),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
