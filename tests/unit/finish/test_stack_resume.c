/* SPDX-License-Identifier: BSD-2-Clause */
/* sources: finish/stack_resume.c finish/stack_finish.c */
/* A synthetic stack, and code with given rules: INTERPRETER + i * 16 has rule i.  The activation's
 * frame is [STACK + 0x100, CFA) and contains the stack anchor; its caller is the outermost
 * function. */
#include "finish/stack_resume.h"

#include <cmocka.h>
#include <errno.h>
#include <string.h>

#define STACK 0x7ffc0000ULL
#define SP (STACK + 0x100)
#define MARK (STACK + 0x140)
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
		.rule = {[EVAL] = {.kind = PP_RULE_CFA_SP, .cfa_offset = CFA - SP,
				   .fp_kind = PP_FP_AT_CFA, .fp_offset = -56, .ra_offset = -8},
			 [ROOT] = {.kind = PP_RULE_STOP},
			 [SMALL] = {.kind = PP_RULE_CFA_SP, .cfa_offset = 32,
				    .fp_kind = PP_FP_AT_CFA, .fp_offset = -16, .ra_offset = -8}},
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
	return stack_resume_find(&callbacks, FILE_ID, STACK, MARK, ret_resync);
}

static void stack_resume__frame_is_found_by_the_call_that_it_made(void **state)
{
	struct model model = new_model();
	struct pp_resync found;

	(void)state;
	assert_int_equal(find(&model, &found), 0);
	assert_int_equal(found.cfa_minus_mark, CFA - MARK);
	assert_int_equal(found.fp_offset, -56);
	assert_int_equal(found.agreed, 0);
	assert_int_equal(model.frames, 0);
}

static void stack_resume__state_is_that_of_the_caller(void **state)
{
	struct model model = new_model();
	const struct finish_callbacks callbacks = {
		.context = &model, .find = model_find, .read = model_read, .frame = model_frame};
	struct finish_state at = {.sp = STACK, .is_leaf = true};
	const struct pp_resync resync = {.cfa_minus_mark = CFA - MARK, .fp_offset = -56};

	(void)state;
	assert_int_equal(stack_resume_at(&callbacks, &resync, MARK, &at), 0);
	assert_int_equal(at.pc, IN(ROOT));
	assert_int_equal(at.sp, CFA);
	assert_int_equal(at.fp, 0x1234);
	assert_false(at.is_leaf);
	/* never down */
	assert_int_equal(stack_resume_at(&callbacks, &resync, MARK, &at), -EFAULT);
}

static void stack_resume__frame_with_a_frame_pointer_is_found_by_its_return_address(void **state)
{
	struct model model = new_model();
	struct pp_resync found;

	(void)state;
	model.rule[EVAL] = (struct pp_rule){.kind = PP_RULE_CFA_FP, .cfa_offset = 16,
					    .fp_kind = PP_FP_AT_CFA, .fp_offset = -16,
					    .ra_offset = -8};
	*word_at(&model, MARK + 0x18) = IN(BROKEN); /* a local variable */
	assert_int_equal(find(&model, &found), 0);
	assert_int_equal(found.cfa_minus_mark, CFA - MARK);
	assert_int_equal(found.fp_offset, -16);
}

static void stack_resume__calls_that_lead_nowhere_are_not_taken(void **state)
{
	struct model model = new_model();
	struct pp_resync found;

	(void)state;
	/* Left over: its frame would hold the mark, and has no caller. */
	*word_at(&model, MARK - 8) = IN(SMALL);
	assert_int_equal(find(&model, &found), 0);
	assert_int_equal(found.cfa_minus_mark, CFA - MARK);
	*word_at(&model, CFA - 8) = IN(BROKEN);
	assert_int_equal(find(&model, &found), -ENOENT);
	*word_at(&model, CFA - 8) = IN(ROOT);
	*word_at(&model, SP - 8) = OTHER + 8; /* another file's function of the same rule */
	assert_int_equal(find(&model, &found), -ENOENT);
	model.rule[EVAL].cfa_offset = 0x20; /* ends below the mark */
	*word_at(&model, SP - 8) = IN(EVAL);
	assert_int_equal(find(&model, &found), -ENOENT);
}

/* Every second word is a call whose frame would hold the mark, and leads into a chain without a
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

static void stack_resume__forged_marks_are_refused(void **state)
{
	struct model model = new_model();
	const struct finish_callbacks callbacks = {
		.context = &model, .find = model_find, .read = model_read, .frame = model_frame};
	static const uint64_t mark[] = {0, 8, 2047, MARK + 1, UINT64_MAX, UINT64_MAX - 7, 1ULL << 63};
	struct pp_resync found;

	(void)state;
	for (size_t i = 0; i < sizeof(mark) / sizeof(mark[0]); i++)
		assert_int_equal(stack_resume_find(&callbacks, FILE_ID, STACK, mark[i], &found),
				 -ENOENT);
	assert_int_equal(stack_resume_find(&callbacks, FILE_ID, UINT64_MAX, MARK, &found), -ENOENT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(stack_resume__frame_is_found_by_the_call_that_it_made),
		cmocka_unit_test(stack_resume__state_is_that_of_the_caller),
		cmocka_unit_test(stack_resume__frame_with_a_frame_pointer_is_found_by_its_return_address),
		cmocka_unit_test(stack_resume__calls_that_lead_nowhere_are_not_taken),
		cmocka_unit_test(stack_resume__a_stack_of_calls_costs_a_bounded_search),
		cmocka_unit_test(stack_resume__forged_marks_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
