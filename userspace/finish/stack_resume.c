/* SPDX-License-Identifier: BSD-2-Clause */
#include "finish/stack_resume.h"

#include <errno.h>

/* An eval function's frame: 0x90 to 0x2a0 bytes in CPython 3.10 to 3.15. */
#define MAX_FRAME_BYTES 2048U

/* Of all walks of one search together: a stack may be made of such calls, and is its owner's. */
#define SEARCH_STEPS 4096U

int stack_resume_at(const struct finish_callbacks *callbacks, const struct pp_resync *resync,
		    uint64_t mark, struct finish_state *state)
{
	const uint64_t cfa = mark + (uint64_t)resync->cfa_minus_mark;
	uint64_t pc, fp;

	if (cfa <= state->sp || callbacks->read(callbacks->context, cfa - 8, &pc, sizeof(pc)) ||
	    callbacks->read(callbacks->context, cfa + (uint64_t)resync->fp_offset, &fp,
			    sizeof(fp)))
		return -EFAULT;
	state->pc = pc;
	state->sp = cfa;
	state->fp = fp;
	state->is_leaf = false;
	state->by_frame_pointer = false;
	return 0;
}

/* What one search shares. */
struct search {
	const struct finish_callbacks *callbacks;
	uint32_t file;
	uint64_t sp, mark;
	uint32_t steps; /* walked so far */
	bool is_tried;	/* by_frame_pointer() */
};

static int search_find(void *context, uint64_t pc, uint32_t *ret_file, uint64_t *ret_vaddr,
		       struct pp_rule *ret_rule)
{
	const struct finish_callbacks *callbacks = ((struct search *)context)->callbacks;

	return callbacks->find(callbacks->context, pc, ret_file, ret_vaddr, ret_rule);
}

static int search_read(void *context, uint64_t address, void *buffer, size_t size)
{
	const struct finish_callbacks *callbacks = ((struct search *)context)->callbacks;

	return callbacks->read(callbacks->context, address, buffer, size);
}

static bool count_step(void *context, uint32_t file, uint64_t vaddr, uint64_t low, uint64_t cfa)
{
	struct search *search = context;

	(void)file;
	(void)vaddr;
	(void)low;
	(void)cfa;
	return ++search->steps < SEARCH_STEPS;
}

/* Whether the stack goes on to its root from an activation of these distances. */
static bool reaches_root(struct search *search, const struct pp_resync *found)
{
	const struct finish_callbacks quiet = {
		.context = search, .find = search_find, .read = search_read, .frame = count_step};
	struct finish_state state = {.sp = search->sp};

	return search->steps < SEARCH_STEPS &&
	       !stack_resume_at(search->callbacks, found, search->mark, &state) &&
	       stack_finish(&state, &quiet) == PP_STOP_ROOT;
}

static bool by_stack_pointer(struct search *search, const struct pp_rule *rule, uint64_t at,
			     struct pp_resync *ret_resync)
{
	const uint64_t cfa = at + 8 + (uint64_t)(int64_t)rule->cfa_offset;

	if (cfa <= search->mark || cfa - search->mark > MAX_FRAME_BYTES)
		return false;
	*ret_resync = (struct pp_resync){.cfa_minus_mark = (int64_t)(cfa - search->mark),
					 .fp_offset = rule->fp_offset};
	return reaches_root(search, ret_resync);
}

/* The call's frame pointer is not known: the frame ends where a return address into the interpreter's
 * file lies from which the root is reached.  psABI: CFA is a multiple of 16. */
static bool by_frame_pointer(struct search *search, const struct pp_rule *rule,
			     struct pp_resync *ret_resync)
{
	const struct finish_callbacks *callbacks = search->callbacks;
	uint64_t cfa = (search->mark + 16) & ~15ULL, vaddr, word;
	struct pp_rule caller;
	uint32_t file;

	if (search->is_tried)
		return false;
	search->is_tried = true;
	for (; cfa - search->mark <= MAX_FRAME_BYTES; cfa += 16) {
		if (callbacks->read(callbacks->context, cfa - 8, &word, sizeof(word)) ||
		    callbacks->find(callbacks->context, word - 1, &file, &vaddr, &caller) ||
		    file != search->file)
			continue;
		*ret_resync = (struct pp_resync){.cfa_minus_mark = (int64_t)(cfa - search->mark),
						 .fp_offset = rule->fp_offset};
		if (reaches_root(search, ret_resync))
			return true;
	}
	return false;
}

/* Whether the word at `at` is the return address of a call whose frame holds the mark. */
static bool is_call(struct search *search, uint64_t at, struct pp_resync *ret_resync)
{
	const struct finish_callbacks *callbacks = search->callbacks;
	struct pp_rule rule = {.kind = PP_RULE_NO_INFO};
	uint64_t word, vaddr;
	uint32_t file;

	if (callbacks->read(callbacks->context, at, &word, sizeof(word)) ||
	    callbacks->find(callbacks->context, word - 1, &file, &vaddr, &rule) ||
	    file != search->file || rule.ra_kind != PP_RA_AT_CFA || rule.fp_kind != PP_FP_AT_CFA)
		return false;
	if (rule.kind == PP_RULE_CFA_SP)
		return by_stack_pointer(search, &rule, at, ret_resync);
	return rule.kind == PP_RULE_CFA_FP && by_frame_pointer(search, &rule, ret_resync);
}

int stack_resume_find(const struct finish_callbacks *callbacks, uint32_t file, uint64_t sp,
		      uint64_t mark, struct pp_resync *ret_resync)
{
	struct search search = {.callbacks = callbacks, .file = file, .sp = sp, .mark = mark};
	uint64_t at = mark - MAX_FRAME_BYTES;
	struct pp_resync found;

	if (mark & 7 || mark <= MAX_FRAME_BYTES || sp >= mark)
		return -ENOENT;
	if (at < sp)
		at = (sp + 7) & ~7ULL;
	/* The nearest call below the mark first: what lies deeper may be left over from other calls. */
	for (uint64_t next = mark - 8; next >= at; next -= 8) {
		if (is_call(&search, next, &found)) {
			*ret_resync = found;
			return 0;
		}
	}
	return -ENOENT;
}
