/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* bpf/lib/walk_native.bpf.h: segments of Python frames among native ones. */
#include "host.h"

#define SP (STACK + 0x1000) /* of the leaf */
#define EVAL 1U		    /* the interpreter's function that evaluates */
#define EVAL_BYTES 0x100U   /* of its frame */
#define CALL 2U		    /* the interpreter's own call machinery; frames of 16 bytes */

/* A stack under construction: frames are put on from the leaf to the root. */
static uint64_t next_sp;
static uint64_t first_pc;

static void begin(uint8_t chain)
{
	host->walk.context.python = 1;
	host->python.chain = chain;
	*interpreter_rule(EVAL) = rule_sp_fp(EVAL_BYTES);
	*interpreter_rule(CALL) = rule_sp(16);
	for (uint32_t i = 10; i < 20; i++)
		*library_rule(i) = rule_sp(16);
	next_sp = SP;
	first_pc = 0;
}

/* The frame below returns to pc, and one of `bytes` begins. */
static uint64_t add_frame(uint64_t pc, uint64_t bytes)
{
	uint64_t sp = next_sp;

	if (first_pc)
		put_word(sp - 8, pc);
	else
		first_pc = pc;
	next_sp += bytes;
	return sp;
}

static void add_anchor(uint64_t anchor, uint64_t frames)
{
	host->walk.segment[host->walk.segment_count++] =
		(struct pp_segment){.anchor = anchor, .frames = frames};
}

/* An eval activation whose anchor lies 0x20 bytes into its frame, with `frames` Python frames. */
static uint64_t add_eval(uint64_t frames)
{
	uint64_t sp = add_frame(interpreter_pc(EVAL), EVAL_BYTES);

	add_anchor(sp + 0x20, frames);
	return sp;
}
static void add_calls(uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		add_frame(interpreter_pc(CALL), 16);
}
static void add_library(uint32_t function)
{
	add_frame(library_pc(function), 16);
}

/* Ends the stack with the library's function 0, a root, and walks it. */
static void walk(void)
{
	struct pp_walk *w = &host->walk;

	add_frame(library_pc(0), 16);
	w->pc = first_pc;
	w->sp = SP;
	while (!native_step())
		continue;
}

static void merge__segment_replaces_the_frame_that_holds_its_anchor(void **state)
{
	(void)state;
	begin(PP_CHAIN_SHIM);
	add_library(10);
	add_eval(3);
	add_library(11);
	add_eval(2);
	walk();
	assert_int_equal(host->walk.stop, PP_STOP_ROOT);
	assert_int_equal(host->walk.native_count, 5);
	assert_library(0, 10, true);
	assert_segment(1, 3);
	assert_library(2, 11, false);
	assert_segment(3, 2);
	assert_library(4, 0, false);
	assert_int_equal(host->walk.segment_next, 2);
}

static void merge__anchor_at_the_ends_of_a_frame(void **state)
{
	uint64_t sp;

	(void)state;
	begin(PP_CHAIN_SHIM);
	add_library(10);
	sp = add_frame(interpreter_pc(EVAL), EVAL_BYTES);
	add_anchor(sp, 1); /* the lowest byte belongs to it */
	sp = add_frame(interpreter_pc(EVAL), EVAL_BYTES);
	add_anchor(sp + EVAL_BYTES, 2); /* the CFA does not */
	walk();
	assert_int_equal(host->walk.native_count, 4);
	assert_segment(1, 1);
	assert_interpreter(2, EVAL);
	/* The root has no end that is known: the anchor stays for the agent. */
	assert_library(3, 0, false);
	assert_int_equal(host->walk.segment_next, 1);
}

static void merge__anchor_in_another_files_frame_is_not_its_activation(void **state)
{
	uint64_t sp;

	(void)state;
	begin(PP_CHAIN_SHIM);
	sp = add_frame(library_pc(10), 16);
	add_anchor(sp + 8, 4);
	add_library(11);
	walk();
	/* Passed: put before the next frame. */
	assert_int_equal(host->walk.native_count, 4);
	assert_library(0, 10, true);
	assert_segment(1, 4);
	assert_library(2, 11, false);
}

/* ---- folding ---- */

static void fold__few_own_frames_between_two_segments_are_dropped(void **state)
{
	(void)state;
	begin(PP_CHAIN_SHIM);
	add_library(10);
	add_eval(1);
	add_calls(PP_MAX_FOLDED_FRAMES);
	add_eval(2);
	walk();
	assert_int_equal(host->walk.native_count, 4);
	assert_int_equal(host->walk.native_stored, 4);
	assert_library(0, 10, true);
	assert_segment(1, 1);
	assert_segment(2, 2);
	assert_library(3, 0, false);
}

static void fold__more_own_frames_stay(void **state)
{
	(void)state;
	begin(PP_CHAIN_SHIM);
	add_eval(1);
	add_calls(PP_MAX_FOLDED_FRAMES + 1);
	add_eval(2);
	walk();
	assert_int_equal(host->walk.native_count, 2 + PP_MAX_FOLDED_FRAMES + 1 + 1);
	assert_segment(0, 1);
	assert_interpreter(1, CALL);
	assert_segment(1 + PP_MAX_FOLDED_FRAMES + 1, 2);
}

static void fold__one_foreign_frame_keeps_all(void **state)
{
	(void)state;
	begin(PP_CHAIN_SHIM);
	add_eval(1);
	add_calls(1);
	add_library(10);
	add_eval(2);
	walk();
	assert_int_equal(host->walk.native_count, 5);
	assert_segment(0, 1);
	assert_interpreter(1, CALL);
	assert_library(2, 10, false);
	assert_segment(3, 2);
}

static void fold__leaf_frames_before_the_first_segment_stay(void **state)
{
	(void)state;
	begin(PP_CHAIN_SHIM);
	add_calls(2);
	add_eval(1);
	walk();
	assert_int_equal(host->walk.native_count, 4);
	assert_interpreter(1, CALL);
	assert_segment(2, 1);
}

static void fold__raw_keeps_call_frames_and_eval_frames(void **state)
{
	(void)state;
	begin(PP_CHAIN_SHIM);
	host->walk.context.flags = PP_CONTEXT_NO_FOLD;
	add_library(10);
	add_eval(1);
	add_calls(1);
	add_eval(2);
	walk();
	assert_int_equal(host->walk.native_count, 7);
	assert_frame(native_frame(1), PP_FRAME_EVAL, EVAL * FUNCTION_BYTES + 0xf, INTERPRETER_FILE);
	assert_segment(2, 1);
	assert_interpreter(3, CALL);
	assert_int_equal(native_frame(4)->kind, PP_FRAME_EVAL);
	assert_segment(5, 2);
}

/* ---- 2.7 to 3.9 ---- */

static void eval_ranges__each_activation_is_a_segment_of_one(void **state)
{
	(void)state;
	begin(PP_CHAIN_FRAME_OBJECT);
	host->python.eval_range_count = 2;
	host->python.eval[0] = (struct pp_eval_range){0x9000, 0x9100};
	host->python.eval[1] = (struct pp_eval_range){EVAL * FUNCTION_BYTES,
						      EVAL * FUNCTION_BYTES + FUNCTION_BYTES};
	add_library(10);
	add_frame(interpreter_pc(EVAL), EVAL_BYTES);
	add_calls(2);
	add_frame(interpreter_pc(EVAL), EVAL_BYTES);
	add_frame(interpreter_pc(3), 16);
	*interpreter_rule(3) = rule_sp(16);
	walk();
	assert_int_equal(host->walk.native_count, 5);
	assert_segment(1, 1);
	assert_segment(2, 1);
	assert_interpreter(3, 3);
}

static void eval_ranges__other_files_at_the_same_address_are_not_meant(void **state)
{
	(void)state;
	begin(PP_CHAIN_FRAME_OBJECT);
	host->python.eval_range_count = 1;
	host->python.eval[0] = (struct pp_eval_range){10 * FUNCTION_BYTES, 11 * FUNCTION_BYTES};
	add_library(10);
	walk();
	assert_int_equal(host->walk.native_count, 2);
	assert_library(0, 10, true);
}

/* ---- resync ---- */

static void resync__is_learnt_after_three_equal_observations(void **state)
{
	(void)state;
	begin(PP_CHAIN_SHIM);
	add_eval(1);
	add_eval(1);
	walk();
	assert_int_equal(host->resync.agreed, 2);
	assert_int_equal(host->resync.cfa_minus_anchor, EVAL_BYTES - 0x20);
	assert_int_equal(host->resync.fp_offset, -16);
	host_teardown(NULL);
	host_setup(NULL);
	begin(PP_CHAIN_SHIM);
	for (uint32_t i = 0; i < 5; i++)
		add_eval(1);
	walk();
	assert_int_equal(host->resync.agreed, 5);
	host_teardown(NULL);
	host_setup(NULL);
	begin(PP_CHAIN_SHIM);
	for (uint32_t i = 0; i < 2 * PP_RESYNC_SURE; i++)
		add_eval(1);
	walk();
	assert_int_equal(host->resync.agreed, PP_RESYNC_SURE);
}

/* Learnt from a walk that had gone astray, or right for a part of the function alone. */
static void resync__a_wrong_distance_is_unlearned(void **state)
{
	(void)state;
	begin(PP_CHAIN_SHIM);
	host->resync = (struct pp_resync){
		.cfa_minus_anchor = 0x1230, .fp_offset = -16, .agreed = PP_RESYNC_SURE};
	/* One that does not agree changes nothing yet. */
	add_eval(1);
	walk();
	assert_int_equal(host->resync.cfa_minus_anchor, 0x1230);
	assert_int_equal(host->resync.agreed, PP_RESYNC_SURE - 1);
	host_teardown(NULL);
	host_setup(NULL);
	begin(PP_CHAIN_SHIM);
	host->resync = (struct pp_resync){
		.cfa_minus_anchor = 0x1230, .fp_offset = -16, .agreed = PP_RESYNC_SURE};
	for (uint32_t i = 0; i < PP_RESYNC_SURE + 2; i++)
		add_eval(1);
	walk();
	assert_int_equal(host->resync.cfa_minus_anchor, EVAL_BYTES - 0x20);
	assert_true(host->resync.agreed >= PP_RESYNC_AGREED);
}

static void resync__another_distance_begins_anew(void **state)
{
	uint64_t sp;

	(void)state;
	begin(PP_CHAIN_SHIM);
	add_eval(1);
	add_eval(1);
	sp = add_frame(interpreter_pc(EVAL), EVAL_BYTES);
	add_anchor(sp + 0x28, 1);
	walk();
	assert_int_equal(host->resync.agreed, 1);
	assert_int_equal(host->resync.cfa_minus_anchor, EVAL_BYTES - 0x28);
}

static void resync__frame_pointer_steps_teach_nothing(void **state)
{
	uint64_t sp;

	(void)state;
	begin(PP_CHAIN_SHIM);
	*interpreter_rule(EVAL) = (struct pp_rule){.kind = PP_RULE_NO_INFO};
	sp = add_eval(1);
	host->walk.fp = sp + EVAL_BYTES - 16;
	walk();
	assert_int_equal(host->walk.native_count, 2);
	assert_segment(0, 1);
	assert_int_equal(host->resync.agreed, 0);
}

static void resync__a_stuck_walk_not_taught_is_for_the_agent_until_64_were_sent(void **state)
{
	uint64_t sp;

	(void)state;
	for (uint32_t asked = 63; asked < 65; asked++) {
		host_teardown(NULL);
		host_setup(NULL);
		begin(PP_CHAIN_SHIM);
		host->resync.asked = asked;
		*library_rule(10) = (struct pp_rule){.kind = PP_RULE_NO_INFO};
		sp = add_frame(library_pc(10), 0x300);
		add_anchor(sp + 0x400, 1);
		walk();
		assert_int_equal(host->walk.stop, PP_STOP_NO_INFO);
		assert_int_equal(host->walk.is_resumable, asked < 64);
		assert_int_equal(host->resync.asked, asked); /* nothing was sent yet */
	}
}

/* A leaf without unwind information, 0x300 bytes of unknown stack, then an activation. */
static void stuck_below_an_activation(uint32_t agreed)
{
	uint64_t sp;

	begin(PP_CHAIN_SHIM);
	host->resync = (struct pp_resync){
		.cfa_minus_anchor = EVAL_BYTES - 0x20, .fp_offset = -16, .agreed = agreed};
	*library_rule(10) = (struct pp_rule){.kind = PP_RULE_NO_INFO};
	add_frame(library_pc(10), 0x300);
	sp = add_eval(3);
	put_word(sp + EVAL_BYTES - 16, 0xbeef);
	add_library(11);
	walk();
}

static void resync__goes_on_at_the_next_activation_and_marks_the_gap(void **state)
{
	(void)state;
	stuck_below_an_activation(PP_RESYNC_AGREED);
	assert_int_equal(host->walk.stop, PP_STOP_ROOT);
	assert_int_equal(host->walk.native_count, 5);
	assert_library(0, 10, true);
	assert_frame(native_frame(1), PP_FRAME_GAP, 0, 0);
	assert_segment(2, 3);
	assert_library(3, 11, false);
	assert_library(4, 0, false);
	assert_int_equal(host->walk.fp, 0xbeef);
}

static void resync__waits_for_the_third_agreement(void **state)
{
	(void)state;
	stuck_below_an_activation(PP_RESYNC_AGREED - 1);
	assert_int_equal(host->walk.stop, PP_STOP_NO_INFO);
	assert_int_equal(host->walk.native_count, 1);
	assert_int_equal(host->walk.segment_next, 0);
}

static void resync__fault_at_the_activation_ends_the_walk(void **state)
{
	(void)state;
	put_fault(SP + 0x300 + EVAL_BYTES - 8, 8);
	stuck_below_an_activation(PP_RESYNC_AGREED);
	assert_int_equal(host->walk.stop, PP_STOP_NO_INFO);
	assert_int_equal(host->walk.native_count, 1);
}

static void resync__never_goes_back(void **state)
{
	(void)state;
	begin(PP_CHAIN_SHIM);
	host->resync = (struct pp_resync){
		.cfa_minus_anchor = -0x20, .fp_offset = -16, .agreed = PP_RESYNC_AGREED};
	*library_rule(10) = (struct pp_rule){.kind = PP_RULE_NO_INFO};
	add_frame(library_pc(10), 0x300);
	add_anchor(SP + 0x20, 1);
	walk();
	assert_int_equal(host->walk.stop, PP_STOP_NO_INFO);
	assert_int_equal(host->walk.native_count, 1);
	assert_int_equal(host->walk.segment_next, 0);
}

/* A return address that leads nowhere: what was taken for a frame was none. */
static void resync__garbage_return_address_of_a_caller(void **state)
{
	uint64_t sp;

	(void)state;
	begin(PP_CHAIN_SHIM);
	host->resync = (struct pp_resync){.cfa_minus_anchor = EVAL_BYTES - 0x20,
					  .fp_offset = -16,
					  .agreed = PP_RESYNC_AGREED};
	add_library(10);
	add_frame(0x1111, 0x300);
	sp = add_eval(2);
	(void)sp;
	walk();
	assert_int_equal(host->walk.stop, PP_STOP_ROOT);
	assert_int_equal(host->walk.native_count, 4);
	assert_frame(native_frame(1), PP_FRAME_GAP, 0, 0);
	assert_segment(2, 2);
}

/* ---- anonymous memory ---- */

static void trampoline__is_left_without_a_frame(void **state)
{
	(void)state;
	begin(PP_CHAIN_SHIM);
	put_bytes(ANONYMOUS + 0x40, "\x48\x83\xc4\x08\xc3", 5); /* add $8,%rsp; ret */
	add_eval(1);
	add_frame(ANONYMOUS + 0x40, 16);
	put_fault(add_eval(2), 1); /* behind the return address nothing is read */
	walk();
	assert_int_equal(host->walk.stop, PP_STOP_ROOT);
	assert_int_equal(host->walk.native_count, 3);
	assert_segment(0, 1);
	assert_segment(1, 2);
	assert_library(2, 0, false);
}

static void anonymous__frame_has_its_address_and_follows_the_frame_pointer(void **state)
{
	(void)state;
	begin(PP_CHAIN_SHIM);
	put_bytes(ANONYMOUS + 0x40, "\x48\x83\xc4\x18\xc3", 5); /* another frame size */
	add_library(10);
	add_frame(ANONYMOUS + 0x40, 0x40);
	add_library(11);
	host->walk.fp = SP + 16 + 0x30;
	walk();
	assert_int_equal(host->walk.stop, PP_STOP_ROOT);
	assert_int_equal(host->walk.native_count, 4);
	assert_frame(native_frame(1), PP_FRAME_ANONYMOUS, ANONYMOUS + 0x3f, PP_FILE_ANONYMOUS);
	assert_library(2, 11, false);
}

static void anonymous__without_a_frame_pointer_resyncs(void **state)
{
	(void)state;
	begin(PP_CHAIN_SHIM);
	host->resync = (struct pp_resync){.cfa_minus_anchor = EVAL_BYTES - 0x20,
					  .fp_offset = -16,
					  .agreed = PP_RESYNC_AGREED};
	add_frame(ANONYMOUS + 0x40, 0x80);
	add_eval(1);
	walk();
	assert_int_equal(host->walk.stop, PP_STOP_ROOT);
	assert_int_equal(host->walk.native_count, 4);
	assert_frame(native_frame(0), PP_FRAME_ANONYMOUS, ANONYMOUS + 0x40, PP_FILE_ANONYMOUS);
	assert_frame(native_frame(1), PP_FRAME_GAP, 0, 0);
	assert_segment(2, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		host_test(merge__segment_replaces_the_frame_that_holds_its_anchor),
		host_test(merge__anchor_at_the_ends_of_a_frame),
		host_test(merge__anchor_in_another_files_frame_is_not_its_activation),
		host_test(fold__few_own_frames_between_two_segments_are_dropped),
		host_test(fold__more_own_frames_stay),
		host_test(fold__one_foreign_frame_keeps_all),
		host_test(fold__leaf_frames_before_the_first_segment_stay),
		host_test(fold__raw_keeps_call_frames_and_eval_frames),
		host_test(eval_ranges__each_activation_is_a_segment_of_one),
		host_test(eval_ranges__other_files_at_the_same_address_are_not_meant),
		host_test(resync__is_learnt_after_three_equal_observations),
		host_test(resync__a_stuck_walk_not_taught_is_for_the_agent_until_64_were_sent),
		host_test(resync__another_distance_begins_anew),
		host_test(resync__a_wrong_distance_is_unlearned),
		host_test(resync__frame_pointer_steps_teach_nothing),
		host_test(resync__goes_on_at_the_next_activation_and_marks_the_gap),
		host_test(resync__waits_for_the_third_agreement),
		host_test(resync__fault_at_the_activation_ends_the_walk),
		host_test(resync__never_goes_back),
		host_test(resync__garbage_return_address_of_a_caller),
		host_test(trampoline__is_left_without_a_frame),
		host_test(anonymous__frame_has_its_address_and_follows_the_frame_pointer),
		host_test(anonymous__without_a_frame_pointer_resyncs),
	};

	return cmocka_run_group_tests_name("bpf/merge", tests, NULL, NULL);
}
