/* SPDX-License-Identifier: BSD-2-Clause */
/* A synthetic stack, and code with given rules: INTERPRETER + i * 16 has rule i.  The activation's
 * frame is [STACK + 0x100, CFA) and contains the stack anchor; its caller is the outermost
 * function. */
#include "finish/stack_finish.h"

#include <cmocka.h>
#include <errno.h>
#include <string.h>

#define STACK 0x7ffc0000ULL
#define SP (STACK + 0x100)
#define ANCHOR (STACK + 0x140)
#define CFA (STACK + 0x1a0)
#define INTERPRETER 0x10000ULL
#define OTHER 0x20000ULL
#define FILE_ID 20U
#define OTHER_ID 21U
#define FUNCTIONS 8U

enum { EVAL, ROOT, BROKEN, SMALL };
#define IN(function) (INTERPRETER + (function) * 16 + 8)

struct model {
	uint64_t word[1024];
	struct pp_rule rule[FUNCTIONS];
	unsigned int frames, finds;
};

static int model_find(void *context, uint64_t pc, uint32_t *ret_file, uint64_t *ret_vaddr,
		      struct pp_rule *ret_rule)
{
	struct model *model = context;
	const uint64_t base = pc & ~0xffffULL, at = (pc & 0xffff) / 16;

	model->finds++;
	if ((base != INTERPRETER && base != OTHER) || at >= FUNCTIONS)
		return -ENOENT;
	*ret_file = base == INTERPRETER ? FILE_ID : OTHER_ID;
	*ret_vaddr = pc;
	*ret_rule = model->rule[at];
	return 0;
}

static int model_read(void *context, uint64_t address, void *buffer, size_t size)
{
	const struct model *model = context;

	if (address < STACK || address + size > STACK + sizeof(model->word))
		return -EFAULT;
	memcpy(buffer, (const uint8_t *)model->word + (address - STACK), size);
	return 0;
}

static bool model_frame(void *context, uint32_t file, uint64_t vaddr, uint64_t low, uint64_t cfa)
{
	(void)file;
	(void)vaddr;
	(void)low;
	(void)cfa;
	((struct model *)context)->frames++;
	return true;
}

static uint64_t *word_at(struct model *model, uint64_t address)
{
	return &model->word[(address - STACK) / 8];
}

static struct model new_model(void)
{
	struct model model = {
		.rule = {[EVAL] = {.kind = PP_RULE_CFA_SP,
				   .cfa_offset = CFA - SP,
				   .fp_kind = PP_FP_AT_CFA,
				   .fp_offset = -56,
				   .ra_offset = -8},
			 [ROOT] = {.kind = PP_RULE_STOP},
			 [SMALL] = {.kind = PP_RULE_CFA_SP,
				    .cfa_offset = 32,
				    .fp_kind = PP_FP_AT_CFA,
				    .fp_offset = -16,
				    .ra_offset = -8}},
	};

	*word_at(&model, SP - 8) = IN(EVAL);
	*word_at(&model, CFA - 8) = IN(ROOT);
	*word_at(&model, CFA - 56) = 0x1234;
	return model;
}

static int find(struct model *model, struct pp_resync *ret_resync)
{
	const struct finish_callbacks callbacks = {
		.context = model, .find = model_find, .read = model_read, .frame = model_frame};

	memset(ret_resync, 0xaa, sizeof(*ret_resync));
	return stack_resume_find(&callbacks, FILE_ID, STACK, ANCHOR, ret_resync);
}

static void stack_resume__frame_is_found_by_the_call_that_it_made(void **state)
{
	struct model model = new_model();
	struct pp_resync found;

	(void)state;
	assert_int_equal(find(&model, &found), 0);
	assert_int_equal(found.cfa_minus_anchor, CFA - ANCHOR);
	assert_int_equal(found.fp_offset, -56);
	assert_int_equal(found.agreed, 0);
	assert_int_equal(model.frames, 0);
}

static void stack_resume__anchor_is_any_word(void **state)
{
	struct model model = new_model();
	const struct finish_callbacks callbacks = {
		.context = &model, .find = model_find, .read = model_read, .frame = model_frame};
	struct pp_resync found;

	(void)state;
	assert_int_equal(stack_resume_find(&callbacks, FILE_ID, STACK, ANCHOR + 8, &found), 0);
	assert_int_equal(found.cfa_minus_anchor, CFA - ANCHOR - 8);
}

static void stack_resume__state_is_that_of_the_caller(void **state)
{
	struct model model = new_model();
	const struct finish_callbacks callbacks = {
		.context = &model, .find = model_find, .read = model_read, .frame = model_frame};
	struct finish_state at = {.sp = STACK, .is_leaf = true};
	const struct pp_resync resync = {.cfa_minus_anchor = CFA - ANCHOR, .fp_offset = -56};

	(void)state;
	assert_int_equal(stack_resume_at(&callbacks, &resync, ANCHOR, &at), 0);
	assert_int_equal(at.pc, IN(ROOT));
	assert_int_equal(at.sp, CFA);
	assert_int_equal(at.fp, 0x1234);
	assert_false(at.is_leaf);
	/* never down */
	assert_int_equal(stack_resume_at(&callbacks, &resync, ANCHOR, &at), -EFAULT);
}

static void stack_resume__frame_with_a_frame_pointer_is_found_by_its_return_address(void **state)
{
	struct model model = new_model();
	struct pp_resync found;

	(void)state;
	model.rule[EVAL] = (struct pp_rule){.kind = PP_RULE_CFA_FP,
					    .cfa_offset = 16,
					    .fp_kind = PP_FP_AT_CFA,
					    .fp_offset = -16,
					    .ra_offset = -8};
	*word_at(&model, ANCHOR + 0x18) = IN(BROKEN); /* a local variable */
	assert_int_equal(find(&model, &found), 0);
	assert_int_equal(found.cfa_minus_anchor, CFA - ANCHOR);
	assert_int_equal(found.fp_offset, -16);
}

static void stack_resume__calls_that_lead_nowhere_are_not_taken(void **state)
{
	struct model model = new_model();
	struct pp_resync found;

	(void)state;
	/* Left over: its frame would hold the anchor, and has no caller. */
	*word_at(&model, ANCHOR - 8) = IN(SMALL);
	assert_int_equal(find(&model, &found), 0);
	assert_int_equal(found.cfa_minus_anchor, CFA - ANCHOR);
	*word_at(&model, CFA - 8) = IN(BROKEN);
	assert_int_equal(find(&model, &found), -ENOENT);
	*word_at(&model, CFA - 8) = IN(ROOT);
	*word_at(&model, SP - 8) = OTHER + 8; /* another file's function of the same rule */
	assert_int_equal(find(&model, &found), -ENOENT);
	model.rule[EVAL].cfa_offset = 0x20; /* ends below the anchor */
	*word_at(&model, SP - 8) = IN(EVAL);
	assert_int_equal(find(&model, &found), -ENOENT);
}

/* Every second word is a call whose frame would hold the anchor, and leads into a chain without a
 * root. */
static void stack_resume__a_stack_of_calls_costs_a_bounded_search(void **state)
{
	struct model model = new_model();
	struct pp_resync found;

	(void)state;
	model.rule[EVAL].cfa_offset = 0x608;
	model.rule[SMALL].cfa_offset = 16;
	for (size_t i = 0; i < sizeof(model.word) / sizeof(model.word[0]); i++)
		model.word[i] = i % 2 ? IN(EVAL) : IN(SMALL);
	assert_int_equal(find(&model, &found), -ENOENT);
	assert_in_range(model.finds, 4000, 5000);
}

#if !defined(__aarch64__)
#define TRAMPOLINE 0x7ffd0000ULL

static unsigned int trampolines_found;

static int trampoline_find(void *context, uint64_t pc, uint32_t *ret_file, uint64_t *ret_vaddr,
			   struct pp_rule *ret_rule)
{
	if (pc + 1 != TRAMPOLINE)
		return model_find(context, pc, ret_file, ret_vaddr, ret_rule);
	trampolines_found++;
	*ret_file = PP_FILE_ANONYMOUS;
	*ret_vaddr = pc;
	return 0;
}

/* Every address is mapped, and a return address into the trampoline, but for the calls. */
static int trampoline_read(void *context, uint64_t address, void *buffer, size_t size)
{
	static const uint8_t tail[] = {0x48, 0x83, 0xc4, 0x08, 0xc3};
	const uint64_t word = address < ANCHOR && address % 16 == 8 ? IN(EVAL) : TRAMPOLINE;

	(void)context;
	if (address == TRAMPOLINE && size == sizeof(tail))
		memcpy(buffer, tail, size);
	else if (size == sizeof(word))
		memcpy(buffer, &word, sizeof(word));
	else
		return -EFAULT;
	return 0;
}

/* Trampolines of CPython's perf support are passed without a frame: they count, too. */
static void stack_resume__a_stack_of_trampolines_costs_a_bounded_search(void **state)
{
	struct model model = new_model();
	const struct finish_callbacks callbacks = {.context = &model,
						   .find = trampoline_find,
						   .read = trampoline_read,
						   .frame = model_frame};
	struct pp_resync found;

	(void)state;
	model.rule[EVAL].cfa_offset = 0x408;
	trampolines_found = 0;
	assert_int_equal(stack_resume_find(&callbacks, FILE_ID, ANCHOR - 4096, ANCHOR, &found),
			 -ENOENT);
	assert_in_range(trampolines_found, 4000, 5000);
}
#endif

static void stack_resume__forged_anchors_are_refused(void **state)
{
	struct model model = new_model();
	const struct finish_callbacks callbacks = {
		.context = &model, .find = model_find, .read = model_read, .frame = model_frame};
	static const uint64_t anchor[] = {
		0, 8, 2047, ANCHOR + 1, UINT64_MAX, UINT64_MAX - 7, 1ULL << 63};
	struct pp_resync found;

	(void)state;
	for (size_t i = 0; i < sizeof(anchor) / sizeof(anchor[0]); i++)
		assert_int_equal(stack_resume_find(&callbacks, FILE_ID, STACK, anchor[i], &found),
				 -ENOENT);
	/* the search never leaves the address space */
	for (uint64_t low = 8; low <= 4096; low += 8)
		assert_int_equal(stack_resume_find(&callbacks, FILE_ID, 0, low, &found), -ENOENT);
	assert_int_equal(stack_resume_find(&callbacks, FILE_ID, UINT64_MAX, ANCHOR, &found),
			 -ENOENT);
}

/* psABI: what a frame holds lies below its CFA, and an eval function's frame is at most 2,048
 * bytes. */
static void stack_resume__frame_of_the_call_within_bounds(void **state)
{
	static const struct {
		int32_t cfa_offset; /* from the call's sp, 0x40 below the anchor */
		int result;
	} expected[] = {
		{0x40, -ENOENT}, {0x48, 0}, {0x840, 0}, {0x848, -ENOENT}, {-0x1000, -ENOENT},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(expected) / sizeof(expected[0]); i++) {
		struct model model = new_model();
		const uint64_t cfa = SP + (uint64_t)(int64_t)expected[i].cfa_offset;
		struct pp_resync found;

		model.rule[EVAL].cfa_offset = expected[i].cfa_offset;
		model.rule[EVAL].fp_offset = -8;
		for (size_t w = 0; w < sizeof(model.word) / sizeof(model.word[0]); w++)
			model.word[w] = 0;
		*word_at(&model, SP - 8) = IN(EVAL);
		if (cfa > STACK)
			*word_at(&model, cfa - 8) = IN(ROOT);
		assert_int_equal(find(&model, &found), expected[i].result);
		if (!expected[i].result)
			assert_int_equal(found.cfa_minus_anchor, cfa - ANCHOR);
	}
}

/* The stack begins 2,064 bytes below the anchor, as far as the search may go and more. */
static void stack_resume__call_is_looked_for_within_bounds(void **state)
{
	enum { FAR_MARK = 2064 };
	static const struct {
		uint64_t below; /* the call's return address, below the anchor */
		uint64_t sp;	/* where the stack ends, below the anchor */
		int result;
	} expected[] = {
		{8, FAR_MARK, 0},  {2048, FAR_MARK, 0}, {2056, FAR_MARK, -ENOENT},
		{64, 64, 0},	   {72, 64, -ENOENT},	{64, 71, 0},
		{64, 63, -ENOENT}, {8, 8, 0},		{0, 8, -ENOENT},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(expected) / sizeof(expected[0]); i++) {
		const uint64_t anchor = STACK + FAR_MARK, cfa = anchor + 64;
		struct model model = new_model();
		const struct finish_callbacks callbacks = {.context = &model,
							   .find = model_find,
							   .read = model_read,
							   .frame = model_frame};
		struct pp_resync found;

		memset(model.word, 0, sizeof(model.word));
		*word_at(&model, anchor - expected[i].below) = IN(EVAL);
		*word_at(&model, cfa - 8) = IN(ROOT);
		model.rule[EVAL].cfa_offset = (int32_t)(64 + expected[i].below - 8);
		if (stack_resume_find(&callbacks, FILE_ID, anchor - expected[i].sp, anchor,
				      &found) != expected[i].result)
			fail_msg("call %lu below the anchor, sp %lu below", expected[i].below,
				 expected[i].sp);
	}
}

/* Without the call's frame pointer: each CFA that psABI allows above the anchor, up to 2,048
 * bytes. */
static void stack_resume__frame_by_return_address_within_bounds(void **state)
{
	static const struct {
		uint64_t cfa;
		int result;
	} expected[] = {
		{ANCHOR, -ENOENT},	  {ANCHOR + 8, -ENOENT}, {ANCHOR + 16, 0},
		{ANCHOR + 24, -ENOENT},	  {ANCHOR + 32, 0},	 {ANCHOR + 2048, 0},
		{ANCHOR + 2064, -ENOENT},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(expected) / sizeof(expected[0]); i++) {
		struct model model = new_model();
		struct pp_resync found;

		memset(model.word, 0, sizeof(model.word));
		model.rule[EVAL] = (struct pp_rule){.kind = PP_RULE_CFA_FP,
						    .cfa_offset = 16,
						    .fp_kind = PP_FP_AT_CFA,
						    .fp_offset = -16,
						    .ra_offset = -8};
		*word_at(&model, SP - 8) = IN(EVAL);
		*word_at(&model, expected[i].cfa - 8) = IN(ROOT);
		if (find(&model, &found) != expected[i].result)
			fail_msg("CFA %lu above the anchor", expected[i].cfa - ANCHOR);
		if (!expected[i].result)
			assert_int_equal(found.cfa_minus_anchor, expected[i].cfa - ANCHOR);
	}
}

/* A call whose registers lie elsewhere says nothing of the frame. */
static void stack_resume__only_rules_that_find_the_frame_are_followed(void **state)
{
	static const struct {
		uint8_t kind, ra_kind, fp_kind;
		int result;
	} expected[] = {
		{PP_RULE_CFA_SP, PP_RA_AT_CFA, PP_FP_AT_CFA, 0},
		{PP_RULE_CFA_FP, PP_RA_AT_CFA, PP_FP_AT_CFA, 0},
		{PP_RULE_CFA_SP, PP_RA_REGISTER, PP_FP_AT_CFA, -ENOENT},
		{PP_RULE_CFA_SP, PP_RA_AT_CFA, PP_FP_SAME, -ENOENT},
		{PP_RULE_CFA_FP, PP_RA_AT_CFA, PP_FP_AT_FP, -ENOENT},
		{PP_RULE_CFA_REGISTER, PP_RA_AT_CFA, PP_FP_AT_CFA, -ENOENT},
		{PP_RULE_STOP, PP_RA_AT_CFA, PP_FP_AT_CFA, -ENOENT},
		{PP_RULE_NO_INFO, PP_RA_AT_CFA, PP_FP_AT_CFA, -ENOENT},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(expected) / sizeof(expected[0]); i++) {
		struct model model = new_model();
		struct pp_resync found;

		model.rule[EVAL].kind = expected[i].kind;
		model.rule[EVAL].ra_kind = expected[i].ra_kind;
		model.rule[EVAL].fp_kind = expected[i].fp_kind;
		if (find(&model, &found) != expected[i].result)
			fail_msg("rule %zu", i);
	}
}

/* The call's return address points behind it: a call that is a function's last instruction belongs
 * to the function before. */
static void stack_resume__call_is_looked_up_one_byte_before(void **state)
{
	struct model model = new_model();
	struct pp_resync found;

	(void)state;
	*word_at(&model, SP - 8) = INTERPRETER + 16; /* the first byte of ROOT */
	assert_int_equal(find(&model, &found), 0);
	*word_at(&model, SP - 8) = INTERPRETER; /* the first byte of EVAL */
	assert_int_equal(find(&model, &found), -ENOENT);
	model.rule[EVAL].kind = PP_RULE_CFA_FP;
	*word_at(&model, SP - 8) = IN(EVAL);
	*word_at(&model, CFA - 8) = INTERPRETER + 32; /* behind ROOT's last byte */
	assert_int_equal(find(&model, &found), 0);
	assert_int_equal(found.cfa_minus_anchor, CFA - ANCHOR);
	/* behind the very first byte of the file's code */
	model.rule[ROOT] = model.rule[EVAL];
	model.rule[EVAL] = (struct pp_rule){.kind = PP_RULE_STOP};
	*word_at(&model, SP - 8) = IN(ROOT);
	*word_at(&model, CFA - 8) = INTERPRETER + 1;
	assert_int_equal(find(&model, &found), 0);
	/* behind the very last one */
	model.rule[FUNCTIONS - 1] = model.rule[EVAL];
	*word_at(&model, CFA - 8) = INTERPRETER + FUNCTIONS * 16;
	assert_int_equal(find(&model, &found), 0);
	model = new_model();
	*word_at(&model, SP - 8) = INTERPRETER + 1;
	assert_int_equal(find(&model, &found), 0);
}

/* By their return addresses frames are looked for once: other calls would find the same. */
static void stack_resume__two_calls_without_a_frame_find_nothing_twice(void **state)
{
	struct model model = new_model();
	struct pp_resync found;

	(void)state;
	model.rule[EVAL].kind = PP_RULE_CFA_FP;
	*word_at(&model, SP) = IN(EVAL);
	*word_at(&model, CFA - 8) = IN(BROKEN);
	assert_int_equal(find(&model, &found), -ENOENT);
}

static void stack_resume__state_is_kept_where_the_frame_cannot_be_read(void **state)
{
	const uint64_t end = STACK + sizeof(((struct model *)0)->word);
	static const struct {
		int64_t cfa, fp_offset; /* from the stack's end */
		int result;
	} expected[] = {
		{0, -8, 0}, {0, 0, -EFAULT}, {8, -16, -EFAULT}, {-8, 0, 0}, {-8, 1, -EFAULT},
	};
	struct model model = new_model();
	const struct finish_callbacks callbacks = {
		.context = &model, .find = model_find, .read = model_read, .frame = model_frame};

	(void)state;
	for (size_t i = 0; i < sizeof(expected) / sizeof(expected[0]); i++) {
		struct finish_state at = {
			.pc = 1, .sp = STACK, .fp = 2, .is_leaf = true, .by_frame_pointer = true};
		const struct pp_resync resync = {.cfa_minus_anchor =
							 (int64_t)(end - ANCHOR) + expected[i].cfa,
						 .fp_offset = (int32_t)expected[i].fp_offset};

		assert_int_equal(stack_resume_at(&callbacks, &resync, ANCHOR, &at),
				 expected[i].result);
		assert_int_equal(at.by_frame_pointer, !!expected[i].result);
		assert_int_equal(at.is_leaf, !!expected[i].result);
		if (expected[i].result) {
			assert_int_equal(at.pc, 1);
			assert_int_equal(at.sp, STACK);
			assert_int_equal(at.fp, 2);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(stack_resume__frame_is_found_by_the_call_that_it_made),
		cmocka_unit_test(stack_resume__anchor_is_any_word),
		cmocka_unit_test(stack_resume__state_is_that_of_the_caller),
		cmocka_unit_test(
			stack_resume__frame_with_a_frame_pointer_is_found_by_its_return_address),
		cmocka_unit_test(stack_resume__calls_that_lead_nowhere_are_not_taken),
		cmocka_unit_test(stack_resume__a_stack_of_calls_costs_a_bounded_search),
#if !defined(__aarch64__)
		cmocka_unit_test(stack_resume__a_stack_of_trampolines_costs_a_bounded_search),
#endif
		cmocka_unit_test(stack_resume__forged_anchors_are_refused),
		cmocka_unit_test(stack_resume__frame_of_the_call_within_bounds),
		cmocka_unit_test(stack_resume__call_is_looked_for_within_bounds),
		cmocka_unit_test(stack_resume__frame_by_return_address_within_bounds),
		cmocka_unit_test(stack_resume__only_rules_that_find_the_frame_are_followed),
		cmocka_unit_test(stack_resume__call_is_looked_up_one_byte_before),
		cmocka_unit_test(stack_resume__two_calls_without_a_frame_find_nothing_twice),
		cmocka_unit_test(stack_resume__state_is_kept_where_the_frame_cannot_be_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
