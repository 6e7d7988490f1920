/* SPDX-License-Identifier: BSD-2-Clause */
/* sources: finish/miss_frames.c */
/* Which frames an incomplete stack gets, by the decisions of bpf/lib/walk_native.bpf.h. */
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "finish/miss_frames.h"
#include "symbolize/stitch.h"

#define INTERPRETER 7U
#define OTHER 9U

/* A thread with two runs of Python, whose eval functions have their marks at 0x1100 and 0x2100. */
static const struct pp_segment segments[2] = {{.mark = 0x1100, .frames = 3},
					      {.mark = 0x2100, .frames = 2}};
static const struct pp_python python = {.file = INTERPRETER, .chain = PP_CHAIN_SHIM};

struct fixture {
	struct pp_miss_record miss;
	struct decoded_miss decoded;
	struct pp_frame walked[8];
	struct pp_stack_record *record;
	struct miss_frames frames;
};

static void begin(struct fixture *f, uint32_t segment_count)
{
	f->miss.segment_count = (uint16_t)segment_count;
	f->decoded = (struct decoded_miss){.record = &f->miss,
					   .python = f->walked,
					   .native = f->walked,
					   .segment = segments};
	f->record = malloc(miss_frames_record_bytes());
	assert_non_null(f->record);
	miss_frames_begin(&f->frames, &f->decoded, f->record);
	f->frames.python = &python;
}

static void end(struct fixture *f)
{
	free(f->record);
}

static void expect(const struct fixture *f, uint32_t at, enum pp_frame_kind kind, uint64_t where)
{
	assert_true(at < f->record->native_stored);
	assert_int_equal(f->record->frame[at].kind, kind);
	assert_int_equal(f->record->frame[at].where, where);
}

static void miss_frames__run_stands_at_the_frame_that_holds_its_mark(void **state)
{
	struct fixture f = {};

	(void)state;
	begin(&f, 1);
	assert_true(miss_frames_add(&f.frames, OTHER, 0x10, 0x1000, 0x1080));
	assert_true(miss_frames_add(&f.frames, INTERPRETER, 0x20, 0x1080, 0x1200));
	assert_true(miss_frames_add(&f.frames, OTHER, 0x30, 0x1200, 0x1300));
	assert_int_equal(f.record->native_stored, 3);
	expect(&f, 0, PP_FRAME_NATIVE, 0x10);
	expect(&f, 1, PP_FRAME_PYTHON_RUN, 3);
	expect(&f, 2, PP_FRAME_NATIVE, 0x30);
	assert_null(miss_frames_next_run(&f.frames));
	end(&f);
}

/* Frames of the interpreter between two activations say nothing; of another file they do. */
static void check_fold(uint32_t file, bool raw, bool is_folded)
{
	struct fixture f = {};

	begin(&f, 2);
	f.frames.raw = raw;
	assert_true(miss_frames_add(&f.frames, INTERPRETER, 0x20, 0x1080, 0x1200));
	assert_true(miss_frames_add(&f.frames, file, 0x21, 0x1200, 0x1300));
	assert_true(miss_frames_add(&f.frames, INTERPRETER, 0x20, 0x2080, 0x2200));
	assert_int_equal(f.record->native_stored, is_folded ? 2 : 3);
	assert_int_equal(f.record->native_count, f.record->native_stored);
	expect(&f, f.record->native_stored - 1U, PP_FRAME_PYTHON_RUN, 2);
	end(&f);
}

static void miss_frames__interpreters_frames_between_runs_are_folded(void **state)
{
	(void)state;
	check_fold(INTERPRETER, false, true);
	check_fold(INTERPRETER, true, false);
	check_fold(OTHER, false, false);
}

static void miss_frames__one_foreign_frame_between_runs_keeps_all(void **state)
{
	struct fixture f = {};

	(void)state;
	begin(&f, 2);
	assert_true(miss_frames_add(&f.frames, INTERPRETER, 0x20, 0x1080, 0x1200));
	assert_true(miss_frames_add(&f.frames, OTHER, 0x21, 0x1200, 0x1300));
	assert_true(miss_frames_add(&f.frames, INTERPRETER, 0x22, 0x1300, 0x1400));
	assert_true(miss_frames_add(&f.frames, INTERPRETER, 0x20, 0x2080, 0x2200));
	assert_int_equal(f.record->native_stored, 4);
	end(&f);
}

static void miss_frames__mark_that_was_passed_is_placed_before_the_frame(void **state)
{
	struct fixture f = {};

	(void)state;
	begin(&f, 1);
	assert_true(miss_frames_add(&f.frames, OTHER, 0x30, 0x1200, 0x1300));
	assert_int_equal(f.record->native_stored, 2);
	expect(&f, 0, PP_FRAME_PYTHON_RUN, 3);
	expect(&f, 1, PP_FRAME_NATIVE, 0x30);
	end(&f);
}

static void miss_frames_skip__leaves_a_gap_and_the_run(void **state)
{
	struct fixture f = {};

	(void)state;
	begin(&f, 1);
	assert_true(miss_frames_skip(&f.frames));
	expect(&f, 0, PP_FRAME_GAP, 0);
	expect(&f, 1, PP_FRAME_PYTHON_RUN, 3);
	assert_false(miss_frames_skip(&f.frames));
	assert_int_equal(f.record->native_stored, 2);
	end(&f);
}

static void miss_frames__end_where_the_record_is_full(void **state)
{
	struct fixture f = {};
	uint32_t count = 0;

	(void)state;
	begin(&f, 0);
	while (miss_frames_add(&f.frames, OTHER, count, 0x1000, 0x1080))
		count++;
	assert_int_equal(count, STITCH_STACK_FRAMES);
	assert_int_equal(f.record->native_stored, STITCH_STACK_FRAMES);
	end(&f);
}

static void miss_frames_begin__takes_what_was_walked(void **state)
{
	struct fixture f = {.miss = {.python_stored = 1,
				     .python_count = 1,
				     .native_stored = 1,
				     .native_count = 1,
				     .since_run = 1,
				     .foldable = 1},
			    .walked = {{.where = 0x99, .kind = PP_FRAME_PYTHON},
				       {.where = 0x11, .kind = PP_FRAME_NATIVE}}};

	(void)state;
	begin(&f, 1);
	assert_int_equal(f.record->frame[0].where, 0x99);
	assert_int_equal(f.record->frame[1].where, 0x11);
	assert_int_equal(miss_frames_foldable(&f.frames), 1);
	/* The frame that the kernel side had pushed is folded by the run that follows. */
	assert_true(miss_frames_add(&f.frames, INTERPRETER, 0x20, 0x1080, 0x1200));
	assert_int_equal(f.record->native_stored, 1);
	assert_int_equal(f.record->frame[1].kind, PP_FRAME_PYTHON_RUN);
	end(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(miss_frames__run_stands_at_the_frame_that_holds_its_mark),
		cmocka_unit_test(miss_frames__interpreters_frames_between_runs_are_folded),
		cmocka_unit_test(miss_frames__one_foreign_frame_between_runs_keeps_all),
		cmocka_unit_test(miss_frames__mark_that_was_passed_is_placed_before_the_frame),
		cmocka_unit_test(miss_frames_skip__leaves_a_gap_and_the_run),
		cmocka_unit_test(miss_frames__end_where_the_record_is_full),
		cmocka_unit_test(miss_frames_begin__takes_what_was_walked),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
