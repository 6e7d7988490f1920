/* SPDX-License-Identifier: BSD-2-Clause */
/* Unwinds Go's own code by .gopclntab.  The stack pointer's table says where the frame ends; the
 * code, where the caller's frame pointer was saved.  Functions that go from a goroutine's stack to
 * the thread's or back (runtime.asmcgocall, .systemstack, .cgocallback) leave the frame pointer as
 * it was, and from that the frame is found on the other stack. */
#include "unwind/cfi_internal.h"

#include <errno.h>

#include "base/bytes.h"

#define PROLOGUE_BYTES 160U /* of a function, in which it saves the frame pointer */
#define NAME_BYTES 64U	    /* of a function that changes stacks */
#define PUSH_FP 0x55U

static const struct pp_rule stop = {.kind = PP_RULE_STOP};
/* No caller has it: its callers are unknown. */
static const struct pp_rule unknown = {
	.kind = PP_RULE_CFA_SP, .cfa_offset = 8, .ra_kind = PP_RA_REGISTER, .ra_offset = PP_REG_SP};

static int64_t deepest(const struct go_table *table, const struct go_function *function)
{
	struct go_steps steps;
	int64_t depth = 0;

	go_steps_begin(table, function, &steps);
	while (go_steps_next(&steps))
		depth = steps.depth > depth ? steps.depth : depth;
	return depth;
}

/* Finds what calls a function that changes stacks and has no frame: the wrapper of the same name
 * that the compiler makes for calls from Go, or else the one function that does. */
static int find_caller(const struct go_table *table, const struct go_function *function,
		       struct go_function *ret_caller)
{
	const size_t room = function->name_room < NAME_BYTES ? function->name_room : NAME_BYTES;
	struct go_function other;

	if (!memchr(function->name, '\0', room))
		return -ENOENT;
	for (size_t i = 0; i < table->count && !elf_work_is_over(table->image->work); i++) {
		if (go_table_function(table, i, &other) || other.sets_stack ||
		    !go_function_is(&other, function->name))
			continue;
		*ret_caller = other;
		return 0;
	}
	return go_function_is(function, "runtime.asmcgocall")
		       ? go_table_named(table, "runtime.cgocall", ret_caller)
		       : -ENOENT;
}

/* The caller's frame pointer is still in its register: it points to 16 bytes below the end of the
 * caller's frame, whose size is known. */
static struct pp_rule rule_from_caller(const struct go_table *table,
				       const struct go_function *function)
{
	struct go_function caller;
	int64_t depth;

	/* It never returns, and has cleared the frame pointer. */
	if (go_function_is(function, "runtime.mcall"))
		return stop;
	depth = find_caller(table, function, &caller) ? 0 : deepest(table, &caller);
	if (depth < 8)
		return unknown;
	return (struct pp_rule){.kind = PP_RULE_CFA_REGISTER,
				.cfa_register = PP_REG_FP,
				.cfa_offset = (int32_t)(8 - depth),
				.ra_offset = -8};
}

void cfi_go_start(struct cfi_go *go, const struct go_table *table,
		  const struct cfi_machine *machine, const struct go_function *function)
{
	*go = (struct cfi_go){.machine = machine, .function = *function, .elsewhere = unknown};
	go_steps_begin(table, function, &go->steps);
	if (function->sets_stack && !machine->has_link_register)
		go->elsewhere = rule_from_caller(table, function);
}

/* Looks for `push %rbp`, which ends before the step, and `mov %rbp, offset(%rsp)` in it. */
static int64_t find_saved(const struct cfi_go *go, uint64_t before)
{
	const struct go_steps *steps = &go->steps;
	const uint64_t end = go->function.low + PROLOGUE_BYTES;
	const uint64_t size = (steps->high < end ? steps->high : end) - steps->low;
	const uint8_t *code = elf_image_at(steps->table->image, steps->low - 1, size + 1);

	if (steps->low >= end || !code)
		return 0;
	if (before + 8 == (uint64_t)steps->depth && *code == PUSH_FP)
		return steps->depth + 8;
	for (uint64_t i = 1; i + 8 <= size; i++) {
		if (code[i] != 0x48 || code[i + 1] != 0x89 || code[i + 3] != 0x24)
			continue;
		if (code[i + 2] == 0x6c)
			return steps->depth + 8 - (int8_t)code[i + 4];
		if (code[i + 2] == 0xac)
			return steps->depth + 8 - (int32_t)load_u32(code + i + 4);
	}
	return 0;
}

/* aarch64: the return address is at sp, the caller's frame pointer below it. */
static struct pp_rule rule_with_link_register(int64_t depth)
{
	struct pp_rule rule = {.kind = PP_RULE_CFA_SP, .cfa_offset = (int32_t)depth};

	if (!depth) {
		rule.ra_kind = PP_RA_REGISTER;
		return rule;
	}
	if (depth > INT16_MAX)
		return unknown;
	rule.ra_offset = (int16_t)-depth;
	rule.fp_kind = PP_FP_AT_CFA;
	rule.fp_offset = (int32_t)-depth - 8;
	return rule;
}

static struct pp_rule rule_of_step(const struct cfi_go *go)
{
	const int64_t depth = go->steps.depth;
	const bool is_saved = go->saved >= 16 && go->saved <= depth + 8;
	struct pp_rule rule = {
		.kind = PP_RULE_CFA_SP, .cfa_offset = (int32_t)depth + 8, .ra_offset = -8};

	if (go->function.sets_stack && !is_saved)
		return go->elsewhere;
	if (go->machine->has_link_register)
		return rule_with_link_register(depth);
	if (!is_saved)
		return rule;
	rule.fp_kind = PP_FP_AT_CFA;
	rule.fp_offset = (int32_t)-go->saved;
	if (go->function.sets_stack) {
		rule.kind = PP_RULE_CFA_REGISTER;
		rule.cfa_register = PP_REG_FP;
		rule.cfa_offset = (int32_t)go->saved;
	}
	return rule;
}

bool cfi_go_next(struct cfi_go *go, uint64_t *ret_low, struct pp_rule *ret_rule)
{
	const uint64_t before = (uint64_t)go->steps.depth;

	/* runtime.sigtramp ends Go's own walks; behind it the interrupted code goes on. */
	if (go->function.is_outermost && !go_function_is(&go->function, "runtime.sigtramp")) {
		*ret_low = go->function.low;
		*ret_rule = stop;
		go->function.is_outermost = false;
		go->steps.limit = 0;
		return true;
	}
	if (!go_steps_next(&go->steps))
		return false;
	if (!go->saved && !go->machine->has_link_register)
		go->saved = find_saved(go, before);
	*ret_low = go->steps.low;
	*ret_rule = rule_of_step(go);
	return true;
}
