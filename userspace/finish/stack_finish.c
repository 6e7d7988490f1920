/* SPDX-License-Identifier: BSD-2-Clause */
/* Follows bpf/lib/walk_native.bpf.h case by case: what one side can unwind, the other can, too
 * (tests/bpf/host/test_walk_twin.c). */
#include "finish/stack_finish.h"

#include <errno.h>
#include <pyprofd/python.h>
#include <string.h>

/* A frame pointer that is followed without unwind information stays within this of the stack
 * pointer: larger frames exist, but garbage is more likely.  One that does not points into another
 * stack, where a return address must follow a call. */
#define FINISH_MAX_FRAME_BYTES (4U << 20)

/* A return probe replaces the return address: where the word lies, from the caller's sp (aarch64:
 * sp at the function's first instruction, whose link register it was). */
#if defined(__aarch64__)
#define RETURN_ADDRESS_BELOW_CFA 0U
#else
#define RETURN_ADDRESS_BELOW_CFA 8U
#endif

/* Replaces *pc, which was read as the return address of the frame that ends at cfa, where the
 * kernel had replaced it by that of its trampoline. */
static bool true_return_address(const struct finish_callbacks *callbacks, uint64_t cfa,
				uint64_t *pc)
{
	for (size_t i = 0; i < callbacks->return_count; i++)
		if (callbacks->returns[i].stack == cfa - RETURN_ADDRESS_BELOW_CFA &&
		    callbacks->returns[i].address) {
			*pc = callbacks->returns[i].address;
			return true;
		}
	return false;
}

/* The machine state in a frame's caller. */
struct caller {
	uint64_t pc, sp, fp; /* sp: the frame's CFA */
};

static bool read_u64(const struct finish_callbacks *callbacks, uint64_t address,
		     uint64_t *ret_value)
{
	return !callbacks->read(callbacks->context, address, ret_value, sizeof(*ret_value));
}

/* Returns whether the address lies in known code, behind a call.  *ret_target: what that calls; 0:
 * that is not in the code. */
static bool follows_call(const struct finish_callbacks *callbacks, uint64_t address,
			 uint64_t *ret_target)
{
	struct pp_rule rule;
	uint64_t vaddr, code = 0;
	uint32_t file;

	if (callbacks->find(callbacks->context, address - 1, &file, &vaddr, &rule) ||
	    callbacks->read(callbacks->context, address - PP_CALL_BYTES, &code, PP_CALL_BYTES) ||
	    !pp_is_call(code))
		return false;
	*ret_target = pp_call_target(code, address);
	return true;
}

/* Looks at a frame that has no unwind information where it is the leaf. */
static enum pp_leaf find_leaf(const struct finish_state *state, const struct pp_rule *rule,
			      const struct finish_callbacks *callbacks)
{
	uint64_t word, target, bare, framed = 0;
	enum pp_leaf leaf;
	uint32_t code;

	if (!state->is_leaf || rule->kind != PP_RULE_NO_INFO)
		return PP_LEAF_FRAMED;
#if defined(__aarch64__)
	return PP_LEAF_FRAMED;
#endif
	if (callbacks->read(callbacks->context, state->pc, &code, PP_LEAF_BYTES))
		return PP_LEAF_FRAMED;
	leaf = pp_leaf_by_code(code);
	if (!read_u64(callbacks, state->sp + 8 * (leaf == PP_LEAF_PUSHED), &word) ||
	    !follows_call(callbacks, word, &target))
		return PP_LEAF_FRAMED;
	if (leaf != PP_LEAF_FRAMED)
		return leaf;
	bare = pp_leaf_begin(target, state->pc);
	if (read_u64(callbacks, state->fp + 8, &word) && follows_call(callbacks, word, &target))
		framed = pp_leaf_begin(target, state->pc);
	if (bare == framed)
		return PP_LEAF_UNSURE;
	return bare > framed ? PP_LEAF_BARE : PP_LEAF_FRAMED;
}

static enum pp_stop leave_bare_leaf(const struct finish_state *state,
				    const struct finish_callbacks *callbacks, bool is_pushed,
				    struct caller *ret_caller)
{
	struct caller caller = {.sp = state->sp, .fp = state->fp};

	if (is_pushed && !read_u64(callbacks, caller.sp, &caller.fp))
		return PP_STOP_NO_INFO;
	caller.sp += is_pushed ? 16 : 8;
	if (!read_u64(callbacks, caller.sp - 8, &caller.pc))
		return PP_STOP_NO_INFO;
	*ret_caller = caller;
	return PP_STOP_NONE;
}

static enum pp_stop leave_by_frame_pointer(const struct finish_state *state,
					   const struct finish_callbacks *callbacks,
					   enum pp_leaf leaf, struct caller *ret_caller)
{
	uint64_t pair[2], vaddr;
	struct pp_rule rule;
	uint32_t file;

	if (leaf == PP_LEAF_BARE || leaf == PP_LEAF_PUSHED)
		return leave_bare_leaf(state, callbacks, leaf == PP_LEAF_PUSHED, ret_caller);
	/* psABI x86-64 3.4.1: 0 anchors the deepest frame.  Go's runtime.goexit. */
	if (!state->fp && state->by_frame_pointer)
		return PP_STOP_ROOT;
	if (state->fp & 7)
		return PP_STOP_NO_INFO;
	if (callbacks->read(callbacks->context, state->fp, pair, sizeof(pair)))
		return PP_STOP_NO_INFO;
	/* If the word above is no return address, fp was no frame pointer. */
	if (pair[1] && callbacks->find(callbacks->context, pair[1] - 1, &file, &vaddr, &rule) &&
	    !true_return_address(callbacks, state->fp + 16, &pair[1]))
		return PP_STOP_NO_INFO;
	*ret_caller = (struct caller){.pc = pair[1], .sp = state->fp + 16, .fp = pair[0]};
	return PP_STOP_NONE;
}

#if !defined(__aarch64__)
/* CPython's perf trampoline (Python/asm_trampoline.S, 3.12+): the return address in it points to
 * `add $8,%rsp; ret`; its copies lie in anonymous memory and have no FDE. */
static bool leave_trampoline(const struct finish_state *state,
			     const struct finish_callbacks *callbacks, struct caller *ret_caller)
{
	static const uint8_t tail[] = {0x48, 0x83, 0xc4, 0x08, 0xc3};
	struct caller caller = {.sp = state->sp + 16, .fp = state->fp};
	uint8_t code[sizeof(tail)];

	if (state->is_leaf || callbacks->read(callbacks->context, state->pc, code, sizeof(code)) ||
	    memcmp(code, tail, sizeof(tail)) || !read_u64(callbacks, caller.sp - 8, &caller.pc))
		return false;
	*ret_caller = caller;
	return true;
}

/* struct rt_sigframe as the restorer sees it (arch/x86/include/asm/sigframe.h): sp points to the
 * ucontext, whose mcontext begins at 40 with r8..r15 di si bp bx dx ax cx sp ip. */
static enum pp_stop leave_signal_frame(const struct finish_state *state,
				       const struct finish_callbacks *callbacks,
				       uint64_t *ret_registers, struct caller *ret_caller)
{
	static const uint8_t dwarf_number[] = {8, 9, 10, 11, 12, 13, 14, 15,
					       5, 4, 6,	 3,  1,	 0,  2,	 7};
	uint64_t saved[17];

	if (callbacks->read(callbacks->context, state->sp + 40, saved, sizeof(saved)))
		return PP_STOP_READ_FAULT;
	for (size_t i = 0; i < sizeof(dwarf_number); i++)
		ret_registers[dwarf_number[i]] = saved[i];
	*ret_caller = (struct caller){
		.pc = saved[16], .sp = ret_registers[PP_REG_SP], .fp = ret_registers[PP_REG_FP]};
	return PP_STOP_NONE;
}
#else
static bool leave_trampoline(const struct finish_state *state,
			     const struct finish_callbacks *callbacks, struct caller *ret_caller)
{
	(void)state;
	(void)callbacks;
	(void)ret_caller;
	return false;
}

/* struct rt_sigframe (arch/arm64/kernel/signal.c): siginfo 128, ucontext with regs[31] sp pc at
 * 312 from sp. */
static enum pp_stop leave_signal_frame(const struct finish_state *state,
				       const struct finish_callbacks *callbacks,
				       uint64_t *ret_registers, struct caller *ret_caller)
{
	uint64_t saved[33];

	if (callbacks->read(callbacks->context, state->sp + 312, saved, sizeof(saved)))
		return PP_STOP_READ_FAULT;
	memcpy(ret_registers, saved, 32 * sizeof(saved[0]));
	*ret_caller = (struct caller){.pc = saved[32], .sp = saved[31], .fp = saved[29]};
	return PP_STOP_NONE;
}
#endif

static enum pp_stop rule_cfa(const struct finish_state *state, const struct pp_rule *rule,
			     const struct finish_callbacks *callbacks, uint64_t *ret_cfa)
{
	uint64_t base;

	switch (rule->kind) {
	case PP_RULE_CFA_SP:
		*ret_cfa = state->sp + (uint64_t)(int64_t)rule->cfa_offset;
		return PP_STOP_NONE;
	case PP_RULE_CFA_FP:
		*ret_cfa = state->fp + (uint64_t)(int64_t)rule->cfa_offset;
		return PP_STOP_NONE;
	case PP_RULE_PLT:
		*ret_cfa = state->sp + 8 + (((state->pc & 15) >= (uint32_t)rule->cfa_offset) << 3);
		return PP_STOP_NONE;
	case PP_RULE_CFA_DEREF:
	case PP_RULE_CFA_REGISTER:
		break;
	default:
		return PP_STOP_BAD_RULE;
	}
	if (rule->cfa_register == PP_REG_FP)
		base = state->fp;
	else if (rule->cfa_register == PP_REG_SP)
		base = state->sp;
	else if (!state->is_leaf || rule->cfa_register >= PP_REG_COUNT)
		return PP_STOP_BAD_RULE;
	else
		base = state->registers[rule->cfa_register];
	base += (uint64_t)(int64_t)rule->cfa_offset;
	if (rule->kind == PP_RULE_CFA_DEREF) {
		if (!read_u64(callbacks, base, &base))
			return PP_STOP_READ_FAULT;
		base += (uint64_t)(int64_t)rule->cfa_add;
	}
	*ret_cfa = base;
	return PP_STOP_NONE;
}

static enum pp_stop rule_return_address(const struct finish_state *state,
					const struct pp_rule *rule,
					const struct finish_callbacks *callbacks, uint64_t cfa,
					uint64_t *ret_pc)
{
	if (rule->ra_kind == PP_RA_REGISTER) {
#if defined(__aarch64__)
		const unsigned int number = PP_REG_RA;
#else
		const unsigned int number = (uint16_t)rule->ra_offset;
#endif

		if (!state->is_leaf || number >= PP_REG_COUNT)
			return PP_STOP_BAD_RULE;
		*ret_pc = state->registers[number];
		return PP_STOP_NONE;
	}
	if (!read_u64(callbacks, cfa + (uint64_t)(int64_t)rule->ra_offset, ret_pc))
		return PP_STOP_READ_FAULT;
	return PP_STOP_NONE;
}

static enum pp_stop leave_by_rule(const struct finish_state *state, const struct pp_rule *rule,
				  const struct finish_callbacks *callbacks,
				  struct caller *ret_caller)
{
	struct caller caller = {.fp = state->fp};
	enum pp_stop stop;
	uint64_t base;

	stop = rule_cfa(state, rule, callbacks, &caller.sp);
	if (stop)
		return stop;
	stop = rule_return_address(state, rule, callbacks, caller.sp, &caller.pc);
	if (stop)
		return stop;
	if (rule->fp_kind == PP_FP_AT_CFA || rule->fp_kind == PP_FP_AT_FP) {
		base = rule->fp_kind == PP_FP_AT_CFA ? caller.sp : state->fp;
		if (!read_u64(callbacks, base + (uint64_t)(int64_t)rule->fp_offset, &caller.fp))
			return PP_STOP_READ_FAULT;
	}
	*ret_caller = caller;
	return PP_STOP_NONE;
}

/* Return addresses on an aarch64 stack may be signed in the bits above the address. */
static uint64_t strip_signature(uint64_t pc)
{
#if defined(__aarch64__)
	return pc & ((1ULL << 48) - 1);
#else
	return pc;
#endif
}

/* The caller's frame lies on another stack, if it is one. */
static enum pp_stop change_stacks(struct finish_state *state,
				  const struct finish_callbacks *callbacks, uint64_t pc,
				  bool by_frame_pointer)
{
	uint64_t target;

	if (state->stack_changes >= PP_MAX_STACK_CHANGES || !follows_call(callbacks, pc, &target))
		return by_frame_pointer ? PP_STOP_NO_INFO : PP_STOP_NOT_MOVING;
	state->stack_changes++;
	return PP_STOP_NONE;
}

/* Finds the caller of a frame whose rule is known.  Sets ret_registers for a signal frame only. */
static enum pp_stop leave_frame(struct finish_state *state, const struct pp_rule *rule,
				const struct finish_callbacks *callbacks, enum pp_leaf leaf,
				uint64_t *ret_registers, struct caller *ret_caller)
{
	bool by_frame_pointer = false;
	struct caller caller;
	enum pp_stop stop;

	if (rule->kind == PP_RULE_NO_INFO)
		stop = leave_by_frame_pointer(state, callbacks, leaf, &caller);
	else if (rule->kind == PP_RULE_STOP || rule->ra_kind == PP_RA_UNDEFINED)
		return PP_STOP_ROOT;
	else if (rule->kind == PP_RULE_SIGNAL) /* the handler may have a stack of its own */
		return leave_signal_frame(state, callbacks, ret_registers, ret_caller);
	else
		stop = leave_by_rule(state, rule, callbacks, &caller);
	if (stop)
		return stop;
	/* Only a leaf may have pushed nothing yet. */
	if (caller.sp == state->sp && !state->is_leaf)
		return PP_STOP_NOT_MOVING;
	caller.pc = strip_signature(caller.pc);
	by_frame_pointer = rule->kind == PP_RULE_NO_INFO && caller.sp == state->fp + 16;
	if (caller.sp < state->sp ||
	    (by_frame_pointer && state->fp - state->sp > FINISH_MAX_FRAME_BYTES))
		stop = change_stacks(state, callbacks, caller.pc, by_frame_pointer);
	*ret_caller = caller;
	return stop;
}

/* Finds the rule at the state's pc, or, when that is the kernel's trampoline, at the address to
 * which the function below really returns; then state->pc is that.  Returns 0 or -ENOENT. */
static int find_true(struct finish_state *state, const struct finish_callbacks *callbacks,
		     uint32_t *ret_file, uint64_t *ret_vaddr, struct pp_rule *ret_rule)
{
	const bool is_caller = !state->is_leaf;
	int err = callbacks->find(callbacks->context, state->pc - is_caller, ret_file, ret_vaddr,
				  ret_rule);

	/* The trampoline's page has no file; whether its mapping is known depends on when the
	 * process' mappings were read. */
	if ((!err && *ret_file != PP_FILE_ANONYMOUS) || !is_caller ||
	    !true_return_address(callbacks, state->sp, &state->pc))
		return err;
	return callbacks->find(callbacks->context, state->pc - is_caller, ret_file, ret_vaddr,
			       ret_rule);
}

static bool tell_gap(const struct finish_callbacks *callbacks, uint64_t sp)
{
	return callbacks->frame(callbacks->context, PP_FILE_NONE, 0, sp, sp);
}

static enum pp_stop finish_step(struct finish_state *state,
				const struct finish_callbacks *callbacks)
{
	const uint64_t low = state->sp, fp = state->fp;
	uint64_t registers[PP_REG_COUNT], vaddr;
	struct caller caller = {.sp = low};
	enum pp_leaf leaf;
	enum pp_stop stop;
	struct pp_rule rule = {.kind = PP_RULE_NO_INFO};
	uint32_t file;

	if (find_true(state, callbacks, &file, &vaddr, &rule))
		return PP_STOP_NO_MAPPING;
	if (file == PP_FILE_ANONYMOUS && leave_trampoline(state, callbacks, &caller)) {
		/* The trampoline calls the eval loop and is no frame worth showing. */
		state->pc = caller.pc;
		state->sp = caller.sp;
		return caller.pc ? PP_STOP_NONE : PP_STOP_ROOT;
	}
	leaf = find_leaf(state, &rule, callbacks);
	state->is_unsure |= leaf == PP_LEAF_UNSURE;
	stop = leave_frame(state, &rule, callbacks, leaf, registers, &caller);
	if (!callbacks->frame(callbacks->context, file, vaddr, low, stop ? low : caller.sp) ||
	    (leaf == PP_LEAF_UNSURE && !tell_gap(callbacks, low)))
		return PP_STOP_MAX_STEPS;
	if (stop == PP_STOP_NO_INFO &&
	    pp_is_root(low, state->is_leaf, state->first_word, state->thread_pointer))
		return PP_STOP_ROOT;
	if (stop)
		return stop;
	state->pc = caller.pc;
	state->sp = caller.sp;
	state->fp = caller.fp;
	state->by_frame_pointer = rule.kind == PP_RULE_NO_INFO && caller.sp == fp + 16;
	state->is_leaf = rule.kind == PP_RULE_SIGNAL;
	if (state->is_leaf)
		memcpy(state->registers, registers, sizeof(registers));
	return state->pc ? PP_STOP_NONE : PP_STOP_ROOT;
}

enum pp_stop stack_finish(struct finish_state *state, const struct finish_callbacks *callbacks)
{
	for (unsigned int step = 0; step < PP_MAX_STEPS; step++) {
		enum pp_stop stop = finish_step(state, callbacks);

		if (stop)
			return stop;
	}
	return PP_STOP_MAX_STEPS;
}

/* A walk is stuck in code without unwind information (JIT code, assembler) that the eval loop
 * called. The frame of that eval activation contains a stack anchor whose address we know, so the
 * frame's bounds are searched for around the anchor and the walk resumes there. */

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
