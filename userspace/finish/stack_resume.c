/* SPDX-License-Identifier: BSD-2-Clause */
#include "finish/stack_resume.h"

#include <errno.h>

/* An eval function's frame: 0x90 to 0x2a0 bytes in CPython 3.10 to 3.15. */
#define MAX_FRAME_BYTES 2048U

/* The most addresses that all walks of one search may look up: a hostile stack can consist of
 * nothing but candidate calls, or of return addresses into trampolines, which are no frames. */
#define SEARCH_LOOK_UPS 4096U

int stack_resume_at(const struct finish_callbacks *callbacks, const struct pp_resync *resync,
		    uint64_t anchor, struct finish_state *state)
{
	const uint64_t cfa = anchor + (uint64_t)resync->cfa_minus_anchor;
	uint64_t pc, fp;

	if (cfa <= state->sp || callbacks->read(callbacks->context, cfa - 8, &pc, sizeof(pc)) ||
	    callbacks->read(callbacks->context, cfa + (uint64_t)resync->fp_offset, &fp, sizeof(fp)))
		return -EFAULT;
	state->pc = pc;
	state->sp = cfa;
	state->fp = fp;
	state->is_leaf = false;
	state->by_frame_pointer = false;
	return 0;
}

/* The state of one search. */
struct search {
	const struct finish_callbacks *callbacks;
	uint32_t file;
	uint64_t sp, anchor;
	uint32_t look_ups; /* of all walks so far */
	bool is_tried;	   /* by_frame_pointer() ran */
};

static int search_find(void *context, uint64_t pc, uint32_t *ret_file, uint64_t *ret_vaddr,
		       struct pp_rule *ret_rule)
{
	struct search *search = context;
	const struct finish_callbacks *callbacks = search->callbacks;

	if (search->look_ups >= SEARCH_LOOK_UPS)
		return -ENOENT;
	search->look_ups++;
	return callbacks->find(callbacks->context, pc, ret_file, ret_vaddr, ret_rule);
}

static int search_read(void *context, uint64_t address, void *buffer, size_t size)
{
	const struct finish_callbacks *callbacks = ((struct search *)context)->callbacks;

	return callbacks->read(callbacks->context, address, buffer, size);
}

static bool pass_frame(void *context, uint32_t file, uint64_t vaddr, uint64_t low, uint64_t cfa)
{
	(void)context;
	(void)file;
	(void)vaddr;
	(void)low;
	(void)cfa;
	return true;
}

/* Returns whether the stack can be unwound to its root from an activation with these distances. */
static bool reaches_root(struct search *search, const struct pp_resync *found)
{
	const struct finish_callbacks quiet = {.context = search,
					       .find = search_find,
					       .read = search_read,
					       .frame = pass_frame,
					       .returns = search->callbacks->returns,
					       .return_count = search->callbacks->return_count};
	struct finish_state state = {.sp = search->sp};

	return !stack_resume_at(search->callbacks, found, search->anchor, &state) &&
	       stack_finish(&state, &quiet) == PP_STOP_ROOT;
}

static bool by_stack_pointer(struct search *search, const struct pp_rule *rule, uint64_t at,
			     struct pp_resync *ret_resync)
{
	const uint64_t cfa = at + 8 + (uint64_t)(int64_t)rule->cfa_offset;

	if (cfa <= search->anchor || cfa - search->anchor > MAX_FRAME_BYTES)
		return false;
	*ret_resync = (struct pp_resync){.cfa_minus_anchor = (int64_t)(cfa - search->anchor),
					 .fp_offset = rule->fp_offset};
	return reaches_root(search, ret_resync);
}

/* The CFA cannot be computed, because the call's frame pointer is unknown.  Try each CFA that the
 * psABI allows (multiples of 16) below which lies a return address into the interpreter's file, and
 * take the first from which the root is reached. */
static bool by_frame_pointer(struct search *search, const struct pp_rule *rule,
			     struct pp_resync *ret_resync)
{
	const struct finish_callbacks *callbacks = search->callbacks;
	uint64_t cfa = (search->anchor + 16) & ~15ULL, vaddr, word;
	struct pp_rule caller;
	uint32_t file;

	if (search->is_tried)
		return false;
	search->is_tried = true;
	for (; cfa - search->anchor <= MAX_FRAME_BYTES; cfa += 16) {
		if (callbacks->read(callbacks->context, cfa - 8, &word, sizeof(word)) ||
		    callbacks->find(callbacks->context, word - 1, &file, &vaddr, &caller) ||
		    file != search->file)
			continue;
		*ret_resync =
			(struct pp_resync){.cfa_minus_anchor = (int64_t)(cfa - search->anchor),
					   .fp_offset = rule->fp_offset};
		if (reaches_root(search, ret_resync))
			return true;
	}
	return false;
}

/* Returns whether the word at `at` is the return address of a call whose frame contains the
 * anchor. */
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
		      uint64_t anchor, struct pp_resync *ret_resync)
{
	struct search search = {.callbacks = callbacks, .file = file, .sp = sp, .anchor = anchor};
	uint64_t at = anchor - MAX_FRAME_BYTES;
	struct pp_resync found;

	if (anchor & 7 || anchor <= MAX_FRAME_BYTES || sp >= anchor)
		return -ENOENT;
	if (at < sp)
		at = (sp + 7) & ~7ULL;
	/* The nearest call below the anchor first: words farther below may be left over from older
	 * calls. */
	for (uint64_t next = anchor - 8; next >= at; next -= 8) {
		if (is_call(&search, next, &found)) {
			*ret_resync = found;
			return 0;
		}
	}
	return -ENOENT;
}
