/* SPDX-License-Identifier: BSD-2-Clause */
/* Follows bpf/lib/walk_native.bpf.h case by case: what one side can unwind, the other can, too
 * (tests/bpf/host/test_walk_twin.c). */
#include "finish/stack_finish.h"

#include <string.h>

/* A frame pointer that is followed without unwind information stays within this of the stack
 * pointer: larger frames exist, but garbage is more likely. */
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

static enum pp_stop leave_by_frame_pointer(const struct finish_state *state,
					   const struct finish_callbacks *callbacks,
					   struct caller *ret_caller)
{
	uint64_t pair[2], vaddr;
	struct pp_rule rule;
	uint32_t file;

	/* psABI x86-64 3.4.1: 0 anchors the deepest frame.  Go's runtime.goexit. */
	if (!state->fp && state->by_frame_pointer)
		return PP_STOP_ROOT;
	if (state->fp < state->sp || state->fp - state->sp > FINISH_MAX_FRAME_BYTES ||
	    state->fp & 7)
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

/* Finds the caller of a frame whose rule is known.  Sets ret_registers for a signal frame only. */
static enum pp_stop leave_frame(const struct finish_state *state, const struct pp_rule *rule,
				const struct finish_callbacks *callbacks, uint64_t *ret_registers,
				struct caller *ret_caller)
{
	struct caller caller;
	enum pp_stop stop;

	if (rule->kind == PP_RULE_NO_INFO)
		stop = leave_by_frame_pointer(state, callbacks, &caller);
	else if (rule->kind == PP_RULE_STOP || rule->ra_kind == PP_RA_UNDEFINED)
		return PP_STOP_ROOT;
	else if (rule->kind == PP_RULE_SIGNAL) /* the handler may have a stack of its own */
		return leave_signal_frame(state, callbacks, ret_registers, ret_caller);
	else
		stop = leave_by_rule(state, rule, callbacks, &caller);
	if (stop)
		return stop;
	/* Only a leaf may have pushed nothing yet. */
	if (caller.sp < state->sp || (caller.sp == state->sp && !state->is_leaf))
		return PP_STOP_NOT_MOVING;
	caller.pc = strip_signature(caller.pc);
	*ret_caller = caller;
	return PP_STOP_NONE;
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

static enum pp_stop finish_step(struct finish_state *state,
				const struct finish_callbacks *callbacks)
{
	const uint64_t low = state->sp;
	uint64_t registers[PP_REG_COUNT], vaddr;
	struct caller caller = {.sp = low};
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
	stop = leave_frame(state, &rule, callbacks, registers, &caller);
	if (!callbacks->frame(callbacks->context, file, vaddr, low, caller.sp))
		return PP_STOP_MAX_STEPS;
	if (stop == PP_STOP_NO_INFO &&
	    pp_is_root(low, state->is_leaf, state->first_word, state->thread_pointer))
		return PP_STOP_ROOT;
	if (stop)
		return stop;
	state->pc = caller.pc;
	state->sp = caller.sp;
	state->fp = caller.fp;
	state->by_frame_pointer = rule.kind == PP_RULE_NO_INFO;
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
