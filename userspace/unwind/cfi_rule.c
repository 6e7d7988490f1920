/* SPDX-License-Identifier: BSD-2-Clause */
#include "unwind/cfi_internal.h"

#include <dwarf.h>

void cfi_machine_of(uint16_t elf_machine, struct cfi_machine *ret_machine)
{
	/* psABI x86-64 figure 3.36; AAPCS64 DWARF table 1. */
	static const struct cfi_machine x86_64 = {.fp = 6, .sp = 7, .ra = 16, .register_count = 16};
	static const struct cfi_machine aarch64 = {
		.fp = 29, .sp = 31, .ra = 30, .register_count = 32, .has_link_register = true};

	*ret_machine = elf_machine == EM_AARCH64 ? aarch64 : x86_64;
}

size_t cfi_trampoline(uint16_t elf_machine, const uint8_t **ret_bytes)
{
	/* mov $15,%rax; syscall */
	static const uint8_t x86_64[] = {0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05};
	/* mov x8,#139; svc #0 */
	static const uint8_t aarch64[] = {0x68, 0x11, 0x80, 0xd2, 0x01, 0, 0, 0xd4};

	*ret_bytes = elf_machine == EM_AARCH64 ? aarch64 : x86_64;
	return elf_machine == EM_AARCH64 ? sizeof(aarch64) : sizeof(x86_64);
}

/* DW_OP_breg0…31 or DW_OP_bregx. */
static bool read_base(struct cfi_reader *reader, uint64_t *ret_reg, int64_t *ret_offset)
{
	uint8_t op = cfi_read_u8(reader);

	if (op >= DW_OP_breg0 && op <= DW_OP_breg31)
		*ret_reg = op - DW_OP_breg0;
	else if (op == DW_OP_bregx)
		*ret_reg = cfi_read_uleb(reader);
	else
		return false;
	*ret_offset = cfi_read_sleb(reader);
	return !reader->is_bad && *ret_reg <= UINT8_MAX;
}

/* Reads the end of an expression: nothing, DW_OP_plus_uconst, or a constant and DW_OP_plus or
 * DW_OP_minus. */
static bool read_addend(struct cfi_reader *reader, int64_t *ret_add)
{
	int64_t value;
	uint8_t op;

	if (reader->at == reader->end) {
		*ret_add = 0;
		return true;
	}
	op = cfi_read_u8(reader);
	if (op == DW_OP_plus_uconst) {
		*ret_add = (int64_t)cfi_read_uleb(reader);
		return !reader->is_bad && reader->at == reader->end;
	}
	if (op >= DW_OP_lit0 && op <= DW_OP_lit31)
		value = op - DW_OP_lit0;
	else if (op == DW_OP_const1u)
		value = cfi_read_u8(reader);
	else if (op == DW_OP_const1s)
		value = (int8_t)cfi_read_u8(reader);
	else if (op == DW_OP_const2u)
		value = cfi_read_u16(reader);
	else if (op == DW_OP_const2s)
		value = (int16_t)cfi_read_u16(reader);
	else
		return false;
	op = cfi_read_u8(reader);
	*ret_add = op == DW_OP_minus ? -value : value;
	return !reader->is_bad && reader->at == reader->end &&
	       (op == DW_OP_plus || op == DW_OP_minus);
}

/* Reads the expression that linkers write for a PLT entry, which pushes once, `offset` bytes after
 * its aligned start. */
static bool read_plt(const struct cfi_machine *machine, const struct cfi_reader *expression,
		     struct cfi_place *ret_place)
{
	uint8_t shape[] = {DW_OP_breg7, 8,	  DW_OP_breg16, 0,	   DW_OP_lit15, DW_OP_and,
			   0,		DW_OP_ge, DW_OP_lit3,	DW_OP_shl, DW_OP_plus};

	if (machine->has_link_register ||
	    (size_t)(expression->end - expression->at) != sizeof(shape))
		return false;
	shape[6] = expression->at[6];
	if (shape[6] < DW_OP_lit0 || shape[6] > DW_OP_lit15 ||
	    memcmp(expression->at, shape, sizeof(shape)))
		return false;
	*ret_place = (struct cfi_place){.kind = CFI_CFA_PLT, .offset = shape[6] - DW_OP_lit0};
	return true;
}

struct cfi_place cfi_expression_cfa(const struct cfi_machine *machine, struct cfi_reader expression)
{
	const struct cfi_place unsupported = {.kind = CFI_UNSUPPORTED};
	struct cfi_place place = {.kind = CFI_CFA_REGISTER};
	int64_t offset, add;
	uint64_t reg;

	if (read_plt(machine, &expression, &place))
		return place;
	if (!read_base(&expression, &reg, &offset))
		return unsupported;
	if (expression.at < expression.end && *expression.at == DW_OP_deref) {
		expression.at++;
		place.kind = CFI_CFA_DEREF;
	}
	if (!read_addend(&expression, &add))
		return unsupported;
	if (place.kind == CFI_CFA_REGISTER) {
		if (__builtin_add_overflow(offset, add, &offset))
			return unsupported;
		add = 0;
	}
	if (offset != (int32_t)offset || add != (int16_t)add)
		return unsupported;
	place.reg = (uint8_t)reg;
	place.offset = (int32_t)offset;
	place.add = (int16_t)add;
	return place;
}

struct cfi_place cfi_expression_saved(struct cfi_reader expression)
{
	const struct cfi_place unsupported = {.kind = CFI_UNSUPPORTED};
	int64_t offset, add;
	uint64_t reg;

	if (!read_base(&expression, &reg, &offset) || !read_addend(&expression, &add) ||
	    __builtin_add_overflow(offset, add, &offset) || offset != (int32_t)offset)
		return unsupported;
	return (struct cfi_place){
		.kind = CFI_AT_REGISTER, .reg = (uint8_t)reg, .offset = (int32_t)offset};
}

/* Returns false when no rule can express it. */
static bool set_cfa(struct pp_rule *rule, const struct cfi_machine *machine,
		    const struct cfi_place *cfa)
{
	rule->cfa_offset = cfa->offset;
	switch (cfa->kind) {
	case CFI_CFA_REGISTER:
		if (cfa->reg == machine->sp) {
			rule->kind = PP_RULE_CFA_SP;
		} else if (cfa->reg == machine->fp) {
			rule->kind = PP_RULE_CFA_FP;
		} else {
			rule->kind = PP_RULE_CFA_REGISTER;
			rule->cfa_register = cfa->reg;
		}
		return cfa->reg < machine->register_count;
	case CFI_CFA_DEREF:
		rule->kind = PP_RULE_CFA_DEREF;
		rule->cfa_register = cfa->reg;
		rule->cfa_add = cfa->add;
		return cfa->reg < machine->register_count;
	case CFI_CFA_PLT:
		rule->kind = PP_RULE_PLT;
		return true;
	default:
		return false;
	}
}

static void set_fp(struct pp_rule *rule, const struct cfi_machine *machine,
		   const struct cfi_place *fp)
{
	if (fp->kind == CFI_SAME || (fp->kind == CFI_IN_REGISTER && fp->reg == machine->fp)) {
		rule->fp_kind = PP_FP_SAME;
	} else if (fp->kind == CFI_AT_CFA) {
		rule->fp_kind = PP_FP_AT_CFA;
		rule->fp_offset = fp->offset;
	} else if (fp->kind == CFI_AT_REGISTER && fp->reg == machine->fp) {
		rule->fp_kind = PP_FP_AT_FP;
		rule->fp_offset = fp->offset;
	} else {
		rule->fp_kind = PP_FP_UNDEFINED;
	}
}

static bool set_ra(struct pp_rule *rule, const struct cfi_machine *machine,
		   const struct cfi_place *ra)
{
	if (ra->kind == CFI_AT_CFA) {
		rule->ra_kind = PP_RA_AT_CFA;
		rule->ra_offset = (int16_t)ra->offset;
		if (!machine->has_link_register)
			return ra->offset == -8;
		return ra->offset == (int16_t)ra->offset;
	}
	rule->ra_kind = PP_RA_REGISTER;
	if (!machine->has_link_register) { /* glibc's vfork keeps it in rdi */
		rule->ra_offset = ra->reg;
		return ra->kind == CFI_IN_REGISTER && ra->reg < PP_REG_COUNT;
	}
	return ra->kind == CFI_SAME || (ra->kind == CFI_IN_REGISTER && ra->reg == machine->ra);
}

struct pp_rule cfi_state_rule(const struct cfi_machine *machine, const struct cfi_cie *cie,
			      const struct cfi_state *state)
{
	/* Fields that a kind does not use stay 0, so that equal rules have equal bytes. */
	const struct pp_rule no_info = {.kind = PP_RULE_NO_INFO};
	struct pp_rule rule = {.kind = PP_RULE_NO_INFO};

	if (cie->is_signal)
		return (struct pp_rule){.kind = PP_RULE_SIGNAL};
	if (state->ra.kind == CFI_UNDEFINED)
		return (struct pp_rule){.kind = PP_RULE_STOP};
	if (!set_cfa(&rule, machine, &state->cfa) || !set_ra(&rule, machine, &state->ra))
		return no_info;
	set_fp(&rule, machine, &state->fp);
	return rule;
}
