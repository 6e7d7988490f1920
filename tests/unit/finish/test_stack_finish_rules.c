/* SPDX-License-Identifier: BSD-2-Clause */
/* Made-up stacks: each rule, each reason to stop and each limit. test_stack_finish.c has real
 * stacks. */
#include "finish/stack_finish.h"

#include <cmocka.h>
#include <errno.h>
#include <string.h>
#include <ucontext.h>

#include "base/cleanup.h"

/* Code: 0x1000…0x10ff are 16 functions of 16 bytes, rule[] says which rule each has; 0x2000… is
 * anonymous, and its first bytes are code[].  Stack: word[i] lies at STACK + 8 * i; far[i] lies 4
 * MiB deeper. */
#define STACK 0x7000ULL
#define FAR (STACK + (4U << 20))
struct model {
	struct pp_rule rule[16];
	uint8_t code[16];
	bool is_code_low; /* and 8 bytes in front of it are there */
	uint64_t word[64], far[4];
	/* the frames */
	uint64_t seen[64], low[64], cfa[64];
	uint32_t file[64];
	size_t count, max;
	/* what the kernel has replaced */
	struct pp_return returns[2];
	size_t return_count;
};

static int model_find(void *context, uint64_t pc, uint32_t *ret_file, uint64_t *ret_vaddr,
		      struct pp_rule *ret_rule)
{
	struct model *model = context;

	if (pc < 0x1000 || pc >= 0x3000 || (pc >= 0x1100 && pc < 0x2000))
		return -ENOENT;
	*ret_vaddr = pc;
	*ret_file = PP_FILE_FIRST;
	if (pc >= 0x2000)
		*ret_file = PP_FILE_ANONYMOUS;
	else
		*ret_rule = model->rule[(pc - 0x1000) / 16];
	return 0;
}

static bool copy_from(const void *memory, size_t memory_size, uint64_t at, void *buffer,
		      size_t size)
{
	if (at > memory_size || size > memory_size - at)
		return false;
	memcpy(buffer, (const uint8_t *)memory + at, size);
	return true;
}

static int model_read(void *context, uint64_t address, void *buffer, size_t size)
{
	struct model *model = context;
	uint8_t low[24] = {0};

	memcpy(low + 8, model->code, sizeof(model->code));
	if (model->is_code_low && copy_from(low, sizeof(low), address - 0x1ff8, buffer, size))
		return 0;
	return copy_from(model->word, sizeof(model->word), address - STACK, buffer, size) ||
			       copy_from(model->far, sizeof(model->far), address - FAR, buffer,
					 size) ||
			       copy_from(model->code, sizeof(model->code), address - 0x2000, buffer,
					 size)
		       ? 0
		       : -EFAULT;
}

static bool model_frame(void *context, uint32_t file, uint64_t vaddr, uint64_t low, uint64_t cfa)
{
	struct model *model = context;

	if (model->count == model->max)
		return false;
	if (model->count < ARRAY_SIZE(model->seen)) {
		model->seen[model->count] = vaddr;
		model->low[model->count] = low;
		model->cfa[model->count] = cfa;
		model->file[model->count] = file;
	}
	model->count++;
	return true;
}

static enum pp_stop finish_model(struct model *model, struct finish_state *state)
{
	const struct finish_callbacks callbacks = {.context = model,
						   .find = model_find,
						   .read = model_read,
						   .frame = model_frame,
						   .returns = model->returns,
						   .return_count = model->return_count};

	model->count = 0;
	if (!model->max)
		model->max = SIZE_MAX;
	return stack_finish(state, &callbacks);
}

static const struct pp_rule sp_8 = {.kind = PP_RULE_CFA_SP, .cfa_offset = 8, .ra_offset = -8};

static void stack_finish__caller_is_looked_up_one_byte_before(void **state)
{
	struct model model = {.rule = {sp_8, sp_8}, .word = {0x1020, 0}};
	struct finish_state at = {.pc = 0x1000, .sp = STACK, .is_leaf = true};

	(void)state;
	/* 0x1020 is the first byte of a function without information; the call is in the one
	 * before */
	assert_int_equal(finish_model(&model, &at), PP_STOP_ROOT);
	assert_int_equal(model.count, 2);
	assert_int_equal(model.seen[0], 0x1000);
	assert_int_equal(model.seen[1], 0x101f);
}

#if !defined(__aarch64__)
/* A return probe: the kernel's trampoline lies in a page without a file, whose mapping may be known
 * (0x2000) or not (0x9000). */
static void stack_finish__replaced_return_addresses_are_followed(void **state)
{
	static const uint64_t trampoline[] = {0x2000, 0x9000};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(trampoline); i++) {
		struct model model = {.rule = {sp_8, sp_8, sp_8},
				      .word = {trampoline[i], trampoline[i], 0},
				      .returns = {{STACK, 0x1015}, {STACK + 8, 0x1025}},
				      .return_count = 2};
		struct finish_state at = {.pc = 0x1000, .sp = STACK, .is_leaf = true};

		assert_int_equal(finish_model(&model, &at), PP_STOP_ROOT);
		assert_int_equal(model.count, 3);
		assert_int_equal(model.seen[1], 0x1014);
		assert_int_equal(model.seen[2], 0x1024);
		/* A record of a call that is over says nothing of the word there. */
		model.word[0] = 0x1035;
		model.rule[3] = (struct pp_rule){.kind = PP_RULE_STOP};
		at = (struct finish_state){.pc = 0x1000, .sp = STACK, .is_leaf = true};
		assert_int_equal(finish_model(&model, &at), PP_STOP_ROOT);
		assert_int_equal(model.seen[1], 0x1034);
		/* Nor do records of other places. */
		model.word[0] = trampoline[i];
		model.returns[0].stack += 16;
		at = (struct finish_state){.pc = 0x1000, .sp = STACK, .is_leaf = true};
		assert_int_not_equal(finish_model(&model, &at), PP_STOP_ROOT);
	}
}

static void stack_finish__replaced_return_address_above_a_frame_pointer_is_followed(void **state)
{
	struct model model = {.rule = {{.kind = PP_RULE_NO_INFO}, {.kind = PP_RULE_STOP}},
			      .word = {0, 0, 0, 0x9000},
			      .returns = {{STACK + 24, 0x1015}},
			      .return_count = 1};
	struct finish_state at = {.pc = 0x1000, .sp = STACK, .fp = STACK + 16, .is_leaf = true};

	(void)state;
	assert_int_equal(finish_model(&model, &at), PP_STOP_ROOT);
	assert_int_equal(model.count, 2);
	assert_int_equal(model.seen[1], 0x1014);
	model.return_count = 0;
	at = (struct finish_state){.pc = 0x1000, .sp = STACK, .fp = STACK + 16, .is_leaf = true};
	assert_int_equal(finish_model(&model, &at), PP_STOP_NO_INFO);
}
#endif

static void stack_finish__stops_say_why(void **state)
{
	const struct pp_rule r10 = {
		.kind = PP_RULE_CFA_REGISTER, .cfa_register = 10, .ra_offset = -8};
	const struct pp_rule zero = {.kind = PP_RULE_CFA_SP, .ra_offset = -8};
	struct model model = {.rule = {sp_8, {.kind = PP_RULE_STOP}, r10, zero}};
	static const struct {
		uint64_t return_address;
		enum pp_stop stop;
		size_t frames;
	} expected[] = {
		{0, PP_STOP_ROOT, 1},
		{0x1011, PP_STOP_ROOT, 2},
		{0x1021, PP_STOP_BAD_RULE, 2},
		{0x1031, PP_STOP_NOT_MOVING, 2},
		{0x9000, PP_STOP_NO_MAPPING, 1},
		{0x1041, PP_STOP_NO_INFO, 2},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(expected); i++) {
		struct finish_state at = {.pc = 0x1000, .sp = STACK, .is_leaf = true};

		model.word[0] = expected[i].return_address;
		assert_int_equal(finish_model(&model, &at), expected[i].stop);
		assert_int_equal(model.count, expected[i].frames);
	}
}

static void stack_finish__unreadable_stack_is_a_fault_and_keeps_the_state(void **state)
{
	struct model model = {.rule = {sp_8}};
	struct finish_state at = {.pc = 0x1005, .sp = 0x100, .fp = 7, .is_leaf = true};

	(void)state;
	assert_int_equal(finish_model(&model, &at), PP_STOP_READ_FAULT);
	assert_int_equal(model.count, 1);
	assert_int_equal(at.pc, 0x1005);
	assert_int_equal(at.sp, 0x100);
	assert_int_equal(at.fp, 7);
	assert_true(at.is_leaf);
}

static void stack_finish__leaf_may_use_any_register(void **state)
{
	const struct pp_rule r10 = {.kind = PP_RULE_CFA_REGISTER,
				    .cfa_register = 10,
				    .cfa_offset = 16,
				    .ra_offset = -8};
	const struct pp_rule deref = {.kind = PP_RULE_CFA_DEREF,
				      .cfa_register = PP_REG_FP,
				      .cfa_offset = -8,
				      .cfa_add = 8,
				      .fp_kind = PP_FP_AT_FP,
				      .ra_offset = -8};
	struct model model = {.rule = {r10, deref, sp_8}};
	struct finish_state at = {.pc = 0x1000, .sp = STACK, .fp = STACK + 40, .is_leaf = true};

	(void)state;
	at.registers[10] = STACK + 8;
	model.word[2] = 0x1011;	    /* CFA = r10 + 16 = STACK + 24 */
	model.word[4] = STACK + 56; /* CFA = *(fp - 8) + 8 = STACK + 64 */
	model.word[5] = 0xabcd;	    /* *(fp) */
	model.word[7] = 0x1021;
	model.word[8] = 0;
	assert_int_equal(finish_model(&model, &at), PP_STOP_ROOT);
	assert_int_equal(model.count, 3);
	assert_int_equal(at.fp, 0xabcd);
}

/* vfork pops its return address into rdi. */
static void stack_finish__return_address_may_be_in_a_register_at_the_leaf(void **state)
{
	const struct pp_rule rdi = {
		.kind = PP_RULE_CFA_SP, .ra_kind = PP_RA_REGISTER, .ra_offset = 5};
	struct model model = {.rule = {rdi, {.kind = PP_RULE_STOP}, sp_8}};
	struct finish_state at = {.pc = 0x1000, .sp = STACK, .is_leaf = true};

	(void)state;
	at.registers[5] = 0x1011;
	assert_int_equal(finish_model(&model, &at), PP_STOP_ROOT);
	assert_int_equal(model.count, 2);
	assert_int_equal(at.sp, STACK);
	model.word[0] = 0x1001;
	at = (struct finish_state){.pc = 0x1020, .sp = STACK, .is_leaf = true};
	assert_int_equal(finish_model(&model, &at), PP_STOP_BAD_RULE);
	model.rule[0].ra_offset = 16;
	at = (struct finish_state){.pc = 0x1000, .sp = STACK, .is_leaf = true};
	assert_int_equal(finish_model(&model, &at), PP_STOP_BAD_RULE);
}

static void stack_finish__plt_entry_counts_its_push(void **state)
{
	const struct pp_rule plt = {.kind = PP_RULE_PLT, .cfa_offset = 11, .ra_offset = -8};
	struct model model = {.rule = {plt, {.kind = PP_RULE_STOP}}, .word = {0x1011, 0x1015}};

	(void)state;
	for (uint64_t offset = 0; offset < 16; offset++) {
		struct finish_state at = {.pc = 0x1000 + offset, .sp = STACK, .is_leaf = true};

		assert_int_equal(finish_model(&model, &at), PP_STOP_ROOT);
		assert_int_equal(model.seen[1], offset >= 11 ? 0x1014 : 0x1010);
	}
}

static void stack_finish__frame_pointer_is_followed_where_it_is_plausible(void **state)
{
	struct model model = {.rule = {[2] = {.kind = PP_RULE_STOP}}};
	static const struct {
		uint64_t fp;
		uint64_t return_address;
		enum pp_stop stop;
	} expected[] = {
		{STACK + 16, 0x1021, PP_STOP_ROOT},
		{STACK + 16, 0x9000, PP_STOP_NO_INFO}, /* no code there */
		{STACK + 12, 0x1021, PP_STOP_NO_INFO},
		{STACK - 8, 0x1021, PP_STOP_NO_INFO},
		{STACK + (5 << 20), 0x1021, PP_STOP_NO_INFO},
		{STACK + 4096, 0x1021, PP_STOP_NO_INFO}, /* not readable */
	};

	(void)state;
	for (int anonymous = 0; anonymous < 2; anonymous++) {
		for (size_t i = 0; i < ARRAY_SIZE(expected); i++) {
			struct finish_state at = {.pc = anonymous ? 0x2000 : 0x1000,
						  .sp = STACK,
						  .fp = expected[i].fp,
						  .is_leaf = true};

			model.word[2] = STACK + 64;
			model.word[3] = expected[i].return_address;
			assert_int_equal(finish_model(&model, &at), expected[i].stop);
			assert_int_equal(model.count, 1 + (expected[i].stop == PP_STOP_ROOT));
			if (expected[i].stop == PP_STOP_ROOT) {
				assert_int_equal(at.fp, STACK + 64);
				assert_int_equal(at.sp, STACK + 32);
			}
		}
	}
}

static void stack_finish__code_without_information_at_the_stacks_end_is_the_root(void **state)
{
	struct model model = {.rule = {sp_8}, .word = {0x1041}};
	static const struct {
		uint64_t first_word, thread_pointer; /* the caller's sp is STACK + 8 */
		enum pp_stop stop;
	} expected[] = {
		{STACK + 8, 0, PP_STOP_ROOT},	       {STACK + 8 + 256, 0, PP_STOP_ROOT},
		{STACK + 8 + 257, 0, PP_STOP_NO_INFO}, {STACK + 7, 0, PP_STOP_NO_INFO},
		{0, STACK + 8 + 1024, PP_STOP_ROOT},   {0, STACK + 8 + 1025, PP_STOP_NO_INFO},
		{0, STACK, PP_STOP_NO_INFO},	       {0, 0, PP_STOP_NO_INFO},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(expected); i++) {
		struct finish_state at = {.pc = 0x1000,
					  .sp = STACK,
					  .is_leaf = true,
					  .first_word = expected[i].first_word,
					  .thread_pointer = expected[i].thread_pointer};

		assert_int_equal(finish_model(&model, &at), expected[i].stop);
		assert_int_equal(model.count, 2);
	}
}

/* A leaf has not called anybody: it is the entry point itself, or anything. */
static void stack_finish__leaf_is_the_root_only_beside_the_first_word(void **state)
{
	struct model model = {.count = 0};
	struct finish_state at = {.pc = 0x1041, .sp = STACK, .is_leaf = true};

	(void)state;
	at.first_word = STACK + 32;
	assert_int_equal(finish_model(&model, &at), PP_STOP_ROOT);
	at.first_word = STACK + 40;
	at.thread_pointer = STACK + 40;
	assert_int_equal(finish_model(&model, &at), PP_STOP_NO_INFO);
}

static void stack_finish__frame_pointer_of_0_ends_a_chain_of_them(void **state)
{
	struct model model = {.rule = {[2] = {.kind = PP_RULE_NO_INFO}}};
	struct finish_state at = {.pc = 0x1000, .sp = STACK, .fp = STACK + 16, .is_leaf = true};

	(void)state;
	model.word[3] = 0x1021;
	assert_int_equal(finish_model(&model, &at), PP_STOP_ROOT);
	assert_int_equal(model.count, 2);
	/* At the leaf it is any register. */
	at = (struct finish_state){.pc = 0x1000, .sp = STACK, .is_leaf = true};
	assert_int_equal(finish_model(&model, &at), PP_STOP_NO_INFO);
	assert_int_equal(model.count, 1);
}

static void stack_finish__forged_signal_frames_end_at_the_bound(void **state)
{
	struct model model = {.rule = {{.kind = PP_RULE_SIGNAL}}};
	struct finish_state at = {.pc = 0x1001, .sp = STACK};

	(void)state;
#if defined(__aarch64__)
	print_message("skipped: the frame below is x86-64's\n");
	skip();
#endif
	model.word[5 + 15] = STACK;  /* rsp: this very frame again */
	model.word[5 + 16] = 0x1001; /* rip */
	model.word[5 + 2] = 0x1010;  /* r10 */
	assert_int_equal(finish_model(&model, &at), PP_STOP_MAX_STEPS);
	assert_int_equal(model.count, PP_MAX_STEPS);
	assert_int_equal(model.seen[0], 0x1000);
	assert_int_equal(model.seen[1], 0x1001); /* exact after a signal */
	assert_int_equal(at.registers[10], 0x1010);
	assert_true(at.is_leaf);
}

static void stack_finish__frame_callback_can_end_the_walk(void **state)
{
	struct model model = {.rule = {sp_8}, .max = 3};
	struct finish_state at = {.pc = 0x1000, .sp = STACK, .is_leaf = true};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(model.word); i++)
		model.word[i] = 0x1008;
	assert_int_equal(finish_model(&model, &at), PP_STOP_MAX_STEPS);
	assert_int_equal(model.count, 3);
}

/* ---- limits ---- */

#define OUTERMOST {.kind = PP_RULE_STOP}

/* One frame of `rule` at 0x1000 whose caller, where it is found, is the outermost function at
 * 0x1020. */
static enum pp_stop leave_one(struct model *model, struct pp_rule rule, struct finish_state *at)
{
	model->rule[0] = rule;
	model->rule[2] = (struct pp_rule)OUTERMOST;
	return finish_model(model, at);
}

static void stack_finish__frame_pointer_within_bounds(void **state)
{
	static const struct {
		uint64_t fp, return_address;
		enum pp_stop stop;
		size_t frames;
	} expected[] = {
		{STACK, 0x1021, PP_STOP_ROOT, 2}, /* its own sp */
		{STACK + 8, 0x1021, PP_STOP_ROOT, 2},
		{STACK + 4, 0x1021, PP_STOP_NO_INFO, 1},
		{STACK + 9, 0x1021, PP_STOP_NO_INFO, 1},
		{STACK - 8, 0x1021, PP_STOP_NO_INFO, 1},
		{FAR, 0x1021, PP_STOP_ROOT, 2},
		{FAR + 8, 0x1021, PP_STOP_NO_INFO, 1},
		{STACK + 16, 0, PP_STOP_ROOT, 1},
		{STACK + 16, 0x1001, PP_STOP_NO_INFO,
		 2}, /* the code's first byte, and no frame pointer */
		{STACK + 16, 0x1000, PP_STOP_NO_INFO, 1}, /* the call would be before the code */
		{STACK + 16, 0x1030, PP_STOP_ROOT, 2},	  /* the call is the last byte of 0x1020 */
		{STACK + 8 * 63, 0x1021, PP_STOP_NO_INFO, 1}, /* half of the pair cannot be read */
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(expected); i++) {
		struct model model = {.count = 0};
		struct finish_state at = {
			.pc = 0x1000, .sp = STACK, .fp = expected[i].fp, .is_leaf = true};
		enum pp_stop stop;

		for (size_t w = 0; w < ARRAY_SIZE(model.word); w++)
			model.word[w] = w % 2 ? expected[i].return_address : 0x7777;
		if (expected[i].fp % 16)
			model.word[2] = expected[i].return_address;
		model.far[0] = model.far[1] = model.far[2] = expected[i].return_address;
		stop = leave_one(&model, (struct pp_rule){.kind = PP_RULE_NO_INFO}, &at);
		if (stop != expected[i].stop || model.count != expected[i].frames)
			fail_msg("%zu: stop %d after %zu frames", i, stop, model.count);
		if (stop == PP_STOP_ROOT && expected[i].return_address) {
			assert_int_equal(at.sp, expected[i].fp + 16);
			assert_int_equal(model.cfa[0], expected[i].fp + 16);
		}
	}
}

#if !defined(__aarch64__)
/* Anonymous code: a call of 5 bytes at 0x2002, behind it 0x2007; the leaf is at 0x200a. */
static void set_code(struct model *model, uint64_t call_target, const char *leaf, size_t leaf_bytes)
{
	const int32_t distance = (int32_t)(call_target - 0x2007);

	memset(model->code, 0x90, sizeof(model->code));
	model->code[2] = 0xe8;
	memcpy(model->code + 3, &distance, sizeof(distance));
	memcpy(model->code + 10, leaf, leaf_bytes);
}

static void stack_finish__leaf_without_a_frame_keeps_its_caller(void **state)
{
	static const struct {
		const char *leaf;
		uint64_t target, sp[2]; /* of the call; the words at sp */
		uint64_t caller_sp;	/* 0: by the frame pointer */
		bool is_unsure;
	} cases[] = {
		{"\xc3", 0x9000, {0x2007}, STACK + 8, false},
		{"\xc2\x08", 0x9000, {0x2007}, STACK + 8, false},
		{"\xf3\xc3", 0x9000, {0x2007}, STACK + 8, false},
		{"\x55", 0x9000, {0x2007}, STACK + 8, false},
		{"\xf3\x0f\x1e\xfa", 0x9000, {0x2007}, STACK + 8, false},
		{"\x48\x89\xe5", 0x9000, {STACK + 32, 0x2007}, STACK + 16, false},
		{"\x48\x8b\xec", 0x9000, {STACK + 32, 0x2007}, STACK + 16, false},
		{"\x90", 0x2009, {0x2007}, STACK + 8, false}, /* the call goes to the leaf */
		{"\x90", 0x200b, {0x2007}, 0, true},	      /* or elsewhere: behind it, */
		{"\x90", 0x9000, {0x2007}, 0, true},	      /* far away */
		{"\x90", 0x9000, {0x2006}, 0, false},	      /* no call is in front of it */
		{"\xc3", 0x9000, {0x2006}, 0, false},
		{"\x90", 0x2009, {0x9007}, 0, false}, /* no code */
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct model model = {.word = {cases[i].sp[0], cases[i].sp[1], 0, 0, 0x77, 0}};
		struct finish_state at = {
			.pc = 0x200a, .sp = STACK, .fp = STACK + 32, .is_leaf = true};

		set_code(&model, cases[i].target, cases[i].leaf, strlen(cases[i].leaf));
		assert_int_equal(finish_model(&model, &at), PP_STOP_ROOT);
		assert_int_equal(at.is_unsure, cases[i].is_unsure);
		assert_int_equal(model.count, 1 + (cases[i].caller_sp || cases[i].is_unsure));
		assert_int_equal(model.cfa[0],
				 cases[i].caller_sp ? cases[i].caller_sp : STACK + 48);
		if (cases[i].caller_sp)
			assert_int_equal(model.seen[1], 0x2006);
		else if (cases[i].is_unsure)
			assert_int_equal(model.file[1], PP_FILE_NONE);
	}
}

/* Both words follow a call: the function that begins nearer in front of the leaf is the leaf's. */
static void stack_finish__leaf_is_of_the_function_that_begins_last(void **state)
{
	static const struct {
		uint64_t sp_target, fp_target;
		uint64_t caller_sp;
		bool is_unsure;
	} cases[] = {
		{0x2002, 0x2001, STACK + 8, false},
		{0x2001, 0x2002, STACK + 48, false},
		{0x2001, 0x2001, STACK + 48, true}, /* recursion */
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct model model = {.word = {0x2005, 0, 0, 0, 0, 0x200a}};
		struct finish_state at = {
			.pc = 0x200c, .sp = STACK, .fp = STACK + 32, .is_leaf = true};
		const int32_t first = (int32_t)(cases[i].sp_target - 0x2005);
		const int32_t second = (int32_t)(cases[i].fp_target - 0x200a);

		/* There is no room for 7 bytes in front of the first one. */
		memset(model.code, 0x90, sizeof(model.code));
		model.code[0] = 0xe8;
		memcpy(model.code + 1, &first, sizeof(first));
		model.code[5] = 0xe8;
		memcpy(model.code + 6, &second, sizeof(second));
		model.is_code_low = true;
		(void)finish_model(&model, &at);
		assert_int_equal(model.cfa[0], cases[i].caller_sp);
		assert_int_equal(at.is_unsure, cases[i].is_unsure);
	}
}

static void stack_finish__stack_may_go_on_elsewhere_behind_a_call(void **state)
{
	struct model model = {.word = {[2] = 0, [3] = 0x2007}};
	struct finish_state at = {.pc = 0x200a, .sp = STACK + 256, .fp = STACK + 16};

	(void)state;
	set_code(&model, 0x9000, "\x90", 1);
	assert_int_equal(finish_model(&model, &at), PP_STOP_ROOT);
	assert_int_equal(model.count, 2);
	assert_int_equal(at.sp, STACK + 32);
	/* No call is there. */
	at = (struct finish_state){.pc = 0x200a, .sp = STACK + 256, .fp = STACK + 16};
	model.word[3] = 0x2008;
	assert_int_equal(finish_model(&model, &at), PP_STOP_NO_INFO);
	/* It goes in circles. */
	at = (struct finish_state){.pc = 0x200a, .sp = STACK + 256, .fp = STACK + 16};
	model.word[2] = STACK + 64;
	model.word[8] = STACK + 16;
	model.word[3] = model.word[9] = 0x2007;
	assert_int_equal(finish_model(&model, &at), PP_STOP_NO_INFO);
	assert_int_equal(model.count, 1 + 2 * PP_MAX_STACK_CHANGES);
	/* By a rule, as Go's have them. */
	at = (struct finish_state){.pc = 0x1001, .sp = STACK + 256, .fp = STACK + 64};
	model.rule[0] = (struct pp_rule){.kind = PP_RULE_CFA_REGISTER,
					 .cfa_register = PP_REG_FP,
					 .cfa_offset = -32,
					 .ra_offset = -8};
	(void)finish_model(&model, &at);
	assert_int_equal(model.cfa[0], STACK + 32);
	assert_int_equal(model.seen[1], 0x2006);
	model.word[3] = 0x2008;
	at = (struct finish_state){.pc = 0x1001, .sp = STACK + 256, .fp = STACK + 64};
	assert_int_equal(finish_model(&model, &at), PP_STOP_NOT_MOVING);
}
#endif

/* 0 is the psABI's end of a chain, and only of a chain: after a step by a rule rbp may hold 0. */
static void stack_finish__frame_pointer_of_0_after_a_rule_is_no_root(void **state)
{
	struct model model = {.rule = {sp_8, {.kind = PP_RULE_NO_INFO}}, .word = {0x1011}};
	struct finish_state at = {.pc = 0x1000, .sp = STACK, .is_leaf = true};

	(void)state;
	assert_int_equal(finish_model(&model, &at), PP_STOP_NO_INFO);
	assert_int_equal(model.count, 2);
	assert_false(at.by_frame_pointer);
}

static void stack_finish__frames_have_their_bounds(void **state)
{
	struct model model = {.rule = {{.kind = PP_RULE_CFA_SP, .cfa_offset = 24, .ra_offset = -8},
				       sp_8,
				       OUTERMOST}};
	struct finish_state at = {.pc = 0x1000, .sp = STACK, .is_leaf = true};

	(void)state;
	model.word[2] = 0x1011;
	model.word[3] = 0x1021;
	assert_int_equal(finish_model(&model, &at), PP_STOP_ROOT);
	assert_int_equal(model.count, 3);
	assert_int_equal(model.low[0], STACK);
	assert_int_equal(model.cfa[0], STACK + 24);
	assert_int_equal(model.low[1], STACK + 24);
	assert_int_equal(model.cfa[1], STACK + 32);
	assert_int_equal(model.low[2], STACK + 32); /* the outermost one has no CFA */
	assert_int_equal(model.cfa[2], STACK + 32);
	assert_int_equal(model.file[2], PP_FILE_FIRST);
}

static void stack_finish__each_rule_finds_the_cfa(void **state)
{
	static const struct {
		struct pp_rule rule;
		bool is_leaf;
		enum pp_stop stop;
		uint64_t sp; /* of the caller */
	} expected[] = {
		{{.kind = PP_RULE_CFA_SP, .cfa_offset = 16, .ra_offset = -8},
		 false,
		 PP_STOP_ROOT,
		 STACK + 48},
		{{.kind = PP_RULE_CFA_SP, .cfa_offset = 16, .ra_offset = -16},
		 false,
		 PP_STOP_ROOT,
		 STACK + 48},
		{{.kind = PP_RULE_CFA_FP, .cfa_offset = -16, .ra_offset = -8},
		 false,
		 PP_STOP_ROOT,
		 STACK + 48},
		{{.kind = PP_RULE_CFA_REGISTER,
		  .cfa_register = PP_REG_FP,
		  .cfa_offset = -16,
		  .ra_offset = -8},
		 false,
		 PP_STOP_ROOT,
		 STACK + 48},
		{{.kind = PP_RULE_CFA_REGISTER,
		  .cfa_register = PP_REG_SP,
		  .cfa_offset = 16,
		  .ra_offset = -8},
		 false,
		 PP_STOP_ROOT,
		 STACK + 48},
		{{.kind = PP_RULE_CFA_REGISTER,
		  .cfa_register = 15,
		  .cfa_offset = -8,
		  .ra_offset = -8},
		 true,
		 PP_STOP_ROOT,
		 STACK + 56},
		{{.kind = PP_RULE_CFA_REGISTER,
		  .cfa_register = 15,
		  .cfa_offset = -8,
		  .ra_offset = -8},
		 false,
		 PP_STOP_BAD_RULE,
		 0},
		{{.kind = PP_RULE_CFA_REGISTER, .cfa_register = PP_REG_COUNT, .ra_offset = -8},
		 true,
		 PP_STOP_BAD_RULE,
		 0},
		{{.kind = PP_RULE_CFA_DEREF,
		  .cfa_register = PP_REG_SP,
		  .cfa_offset = 8,
		  .cfa_add = -8,
		  .ra_offset = -8},
		 false,
		 PP_STOP_ROOT,
		 STACK + 56},
		{{.kind = PP_RULE_CFA_DEREF, .cfa_register = PP_REG_SP, .cfa_offset = 1 << 20},
		 false,
		 PP_STOP_READ_FAULT,
		 0},
		{{.kind = PP_RULE_CFA_SP, .cfa_offset = 1 << 20, .ra_offset = -8},
		 false,
		 PP_STOP_READ_FAULT,
		 0},
		{{.kind = PP_RULE_SIGNAL + 1, .cfa_offset = 16, .ra_offset = -8},
		 false,
		 PP_STOP_BAD_RULE,
		 0},
		/* Callers lie deeper; a leaf may have pushed nothing yet. */
		{{.kind = PP_RULE_CFA_SP, .cfa_offset = 0, .ra_offset = 8},
		 true,
		 PP_STOP_ROOT,
		 STACK + 32},
		{{.kind = PP_RULE_CFA_SP, .cfa_offset = 0, .ra_offset = 8},
		 false,
		 PP_STOP_NOT_MOVING,
		 0},
		{{.kind = PP_RULE_CFA_SP, .cfa_offset = -8, .ra_offset = 16},
		 true,
		 PP_STOP_NOT_MOVING,
		 0},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(expected); i++) {
		struct model model = {.count = 0};
		struct finish_state at = {.pc = 0x1001,
					  .sp = STACK + 32,
					  .fp = STACK + 64,
					  .is_leaf = expected[i].is_leaf};
		enum pp_stop stop;

		at.registers[15] = STACK + 64;
		for (size_t w = 4; w < 8; w++)
			model.word[w] = 0x1021;
		if (expected[i].rule.kind == PP_RULE_CFA_DEREF)
			model.word[5] = STACK + 64;
		stop = leave_one(&model, expected[i].rule, &at);
		if (stop != expected[i].stop)
			fail_msg("%zu: stop %d", i, stop);
		assert_int_equal(at.sp, stop == PP_STOP_ROOT ? expected[i].sp : STACK + 32);
		assert_int_equal(at.pc, stop == PP_STOP_ROOT ? 0x1021 : 0x1001);
		assert_int_equal(at.fp, STACK + 64);
		assert_int_equal(model.count, stop == PP_STOP_ROOT ? 2 : 1);
	}
}

static void stack_finish__return_address_in_a_register_within_bounds(void **state)
{
	static const struct {
		int16_t number;
		bool is_leaf;
		enum pp_stop stop;
	} expected[] = {
		{0, true, PP_STOP_ROOT},
		{PP_REG_COUNT - 1, true, PP_STOP_ROOT},
		{PP_REG_COUNT, true, PP_STOP_BAD_RULE},
		{-1, true, PP_STOP_BAD_RULE},
		{0, false, PP_STOP_BAD_RULE},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(expected); i++) {
		struct model model = {.count = 0};
		struct finish_state at = {
			.pc = 0x1001, .sp = STACK, .is_leaf = expected[i].is_leaf};

		for (size_t r = 0; r < ARRAY_SIZE(at.registers); r++)
			at.registers[r] = 0x1021;
		assert_int_equal(leave_one(&model,
					   (struct pp_rule){.kind = PP_RULE_CFA_SP,
							    .cfa_offset = 8,
							    .ra_kind = PP_RA_REGISTER,
							    .ra_offset = expected[i].number},
					   &at),
				 expected[i].stop);
	}
}

static void stack_finish__frame_pointer_is_restored_as_the_rule_says(void **state)
{
	static const struct {
		uint8_t kind;
		int32_t offset;
		enum pp_stop stop;
		uint64_t fp;
	} expected[] = {
		{PP_FP_SAME, 0, PP_STOP_ROOT, STACK + 128},
		{PP_FP_UNDEFINED, 0, PP_STOP_ROOT, STACK + 128},
		{PP_FP_AT_CFA, -16, PP_STOP_ROOT, 0xc1},
		{PP_FP_AT_CFA, -24, PP_STOP_ROOT, 0xc0},
		{PP_FP_AT_FP, 8, PP_STOP_ROOT, 0xf1},
		{PP_FP_AT_FP, 0, PP_STOP_ROOT, 0xf0},
		{PP_FP_AT_CFA, 1 << 20, PP_STOP_READ_FAULT, 0},
		{PP_FP_AT_FP, 1 << 20, PP_STOP_READ_FAULT, 0},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(expected); i++) {
		struct model model = {
			.word = {[1] = 0xc0, [2] = 0xc1, [3] = 0x1021, [16] = 0xf0, [17] = 0xf1}};
		struct finish_state at = {.pc = 0x1001, .sp = STACK, .fp = STACK + 128};

		assert_int_equal(leave_one(&model,
					   (struct pp_rule){.kind = PP_RULE_CFA_SP,
							    .cfa_offset = 32,
							    .fp_kind = expected[i].kind,
							    .fp_offset = expected[i].offset,
							    .ra_offset = -8},
					   &at),
				 expected[i].stop);
		assert_int_equal(at.fp,
				 expected[i].stop == PP_STOP_ROOT ? expected[i].fp : STACK + 128);
	}
}

static void stack_finish__undefined_return_address_is_the_root(void **state)
{
	struct model model = {.word = {0x1021, 0x1021}};
	struct finish_state at = {.pc = 0x1001, .sp = STACK};

	(void)state;
	assert_int_equal(leave_one(&model,
				   (struct pp_rule){.kind = PP_RULE_CFA_SP,
						    .cfa_offset = 8,
						    .ra_kind = PP_RA_UNDEFINED},
				   &at),
			 PP_STOP_ROOT);
	assert_int_equal(model.count, 1);
}

#if defined(__x86_64__)
/* The registers as <ucontext.h> names them, by their numbers in psABI x86-64, figure 3.36. */
static void stack_finish__signal_frame_restores_every_register(void **state)
{
	static const struct {
		int greg;
		uint8_t dwarf;
	} names[] = {{REG_RAX, 0},  {REG_RDX, 1},  {REG_RCX, 2},  {REG_RBX, 3},
		     {REG_RSI, 4},  {REG_RDI, 5},  {REG_RBP, 6},  {REG_RSP, 7},
		     {REG_R8, 8},   {REG_R9, 9},   {REG_R10, 10}, {REG_R11, 11},
		     {REG_R12, 12}, {REG_R13, 13}, {REG_R14, 14}, {REG_R15, 15}};
	struct model model = {.rule = {{.kind = PP_RULE_SIGNAL}, {.kind = PP_RULE_STOP}}};
	struct finish_state at = {.pc = 0x1001, .sp = STACK + 16, .by_frame_pointer = true};
	ucontext_t context = {0};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		context.uc_mcontext.gregs[names[i].greg] = 0x100 + names[i].dwarf;
	context.uc_mcontext.gregs[REG_RSP] = STACK; /* lower: the handler had a stack of its own */
	context.uc_mcontext.gregs[REG_RIP] = 0x1010;
	memcpy(&model.word[2], &context, offsetof(ucontext_t, uc_mcontext.gregs) + 17 * 8);
	assert_int_equal(finish_model(&model, &at), PP_STOP_ROOT);
	assert_int_equal(model.count, 2);
	assert_int_equal(model.seen[1], 0x1010);
	assert_int_equal(at.sp, STACK);
	assert_int_equal(at.fp, 0x106);
	assert_true(at.is_leaf);
	assert_false(at.by_frame_pointer);
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (names[i].dwarf != PP_REG_SP)
			assert_int_equal(at.registers[names[i].dwarf], 0x100 + names[i].dwarf);
	at = (struct finish_state){.pc = 0x1001, .sp = STACK + 8 * 44 + 8};
	assert_int_equal(finish_model(&model, &at), PP_STOP_READ_FAULT);
	assert_int_equal(model.count, 1);
}

/* `add $8,%rsp; ret` in anonymous memory is CPython's trampoline; any other code there is not. */
static void stack_finish__only_the_perf_trampoline_is_crossed_without_a_frame(void **state)
{
	static const uint8_t tail[] = {0x48, 0x83, 0xc4, 0x08, 0xc3};

	(void)state;
	for (size_t i = 0; i <= sizeof(tail) + 1; i++) {
		struct model model = {.rule = {[2] = {.kind = PP_RULE_STOP}},
				      .word = {0x7777, 0x1021}};
		struct finish_state at = {.pc = 0x2006, .sp = STACK, .is_leaf = i > sizeof(tail)};
		bool is_trampoline = i == sizeof(tail);

		memcpy(model.code + 6, tail, sizeof(tail));
		if (i < sizeof(tail))
			model.code[6 + i] ^= 1;
		assert_int_equal(finish_model(&model, &at),
				 is_trampoline ? PP_STOP_ROOT : PP_STOP_NO_INFO);
		assert_int_equal(model.count, 1);
		assert_int_equal(model.seen[0], is_trampoline ? 0x1020
						: at.is_leaf  ? 0x2006
							      : 0x2005);
		assert_int_equal(at.sp, is_trampoline ? STACK + 16 : STACK);
	}
}

static void stack_finish__trampoline_that_nobody_called_is_the_root(void **state)
{
	struct model model = {.code = {0x48, 0x83, 0xc4, 0x08, 0xc3}, .word = {0x7777, 0}};
	struct finish_state at = {.pc = 0x2000, .sp = STACK};

	(void)state;
	model.max = 1;
	/* pc - 1 must be anonymous, too */
	memmove(model.code + 2, model.code, 5);
	at.pc = 0x2002;
	assert_int_equal(finish_model(&model, &at), PP_STOP_ROOT);
	assert_int_equal(model.count, 0);
	at = (struct finish_state){.pc = 0x2002, .sp = STACK + 8 * 63};
	assert_int_equal(finish_model(&model, &at),
			 PP_STOP_NO_INFO); /* its caller cannot be read */
}
#endif

static void stack_finish__walk_is_bounded(void **state)
{
	struct model model = {
		.rule = {{.kind = PP_RULE_CFA_SP, .ra_kind = PP_RA_REGISTER, .ra_offset = 5}}};
	struct finish_state at = {.pc = 0x1000, .sp = STACK, .is_leaf = true};

	(void)state;
	at.registers[5] = 0x1001;
	/* at a caller the register is not known, so the second step ends it */
	assert_int_equal(finish_model(&model, &at), PP_STOP_BAD_RULE);
	assert_int_equal(model.count, 2);
	/* the frame callback says no at the very first one */
	model.max = 1;
	model.rule[0] = sp_8;
	for (size_t i = 0; i < ARRAY_SIZE(model.word); i++)
		model.word[i] = 0x1008;
	at = (struct finish_state){.pc = 0x1000, .sp = STACK, .is_leaf = true};
	assert_int_equal(finish_model(&model, &at), PP_STOP_MAX_STEPS);
	assert_int_equal(model.count, 1);
	assert_int_equal(at.sp, STACK + 8); /* where it can go on */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(stack_finish__caller_is_looked_up_one_byte_before),
#if !defined(__aarch64__)
		cmocka_unit_test(stack_finish__replaced_return_addresses_are_followed),
		cmocka_unit_test(
			stack_finish__replaced_return_address_above_a_frame_pointer_is_followed),
#endif
		cmocka_unit_test(stack_finish__stops_say_why),
		cmocka_unit_test(stack_finish__unreadable_stack_is_a_fault_and_keeps_the_state),
		cmocka_unit_test(stack_finish__leaf_may_use_any_register),
		cmocka_unit_test(stack_finish__return_address_may_be_in_a_register_at_the_leaf),
		cmocka_unit_test(stack_finish__plt_entry_counts_its_push),
		cmocka_unit_test(stack_finish__frame_pointer_is_followed_where_it_is_plausible),
		cmocka_unit_test(
			stack_finish__code_without_information_at_the_stacks_end_is_the_root),
		cmocka_unit_test(stack_finish__leaf_is_the_root_only_beside_the_first_word),
		cmocka_unit_test(stack_finish__frame_pointer_of_0_ends_a_chain_of_them),
		cmocka_unit_test(stack_finish__forged_signal_frames_end_at_the_bound),
		cmocka_unit_test(stack_finish__frame_callback_can_end_the_walk),
#if !defined(__aarch64__)
		cmocka_unit_test(stack_finish__leaf_without_a_frame_keeps_its_caller),
		cmocka_unit_test(stack_finish__leaf_is_of_the_function_that_begins_last),
		cmocka_unit_test(stack_finish__stack_may_go_on_elsewhere_behind_a_call),
#endif
		cmocka_unit_test(stack_finish__frame_pointer_within_bounds),
		cmocka_unit_test(stack_finish__frame_pointer_of_0_after_a_rule_is_no_root),
		cmocka_unit_test(stack_finish__frames_have_their_bounds),
		cmocka_unit_test(stack_finish__each_rule_finds_the_cfa),
		cmocka_unit_test(stack_finish__return_address_in_a_register_within_bounds),
		cmocka_unit_test(stack_finish__frame_pointer_is_restored_as_the_rule_says),
		cmocka_unit_test(stack_finish__undefined_return_address_is_the_root),
		cmocka_unit_test(stack_finish__walk_is_bounded),
#if defined(__x86_64__)
		cmocka_unit_test(stack_finish__signal_frame_restores_every_register),
		cmocka_unit_test(stack_finish__only_the_perf_trampoline_is_crossed_without_a_frame),
		cmocka_unit_test(stack_finish__trampoline_that_nobody_called_is_the_root),
#endif
	};

	return cmocka_run_group_tests_name("finish/stack_finish_rules", tests, NULL, NULL);
}
