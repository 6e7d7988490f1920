/* SPDX-License-Identifier: BSD-2-Clause */
/* What the kernel does with the instruction at a probe's site: arch/x86/kernel/uprobes.c
 * (branch_setup_xol_ops(), push_setup_xol_ops()), arch/arm64/kernel/probes/decode-insn.c. */
#include <elf.h>
#include <string.h>

#include "base/cleanup.h"
#include "elf/probe_sites.h"

/* Intel SDM volume 2, NOP: the forms that compilers and assemblers emit. */
static const struct {
	uint8_t size;
	uint8_t bytes[9];
} long_nops[] = {
	{3, {0x0f, 0x1f, 0x00}},
	{4, {0x0f, 0x1f, 0x40, 0x00}},
	{5, {0x0f, 0x1f, 0x44, 0x00, 0x00}},
	{6, {0x66, 0x0f, 0x1f, 0x44, 0x00, 0x00}},
	{7, {0x0f, 0x1f, 0x80, 0x00, 0x00, 0x00, 0x00}},
	{8, {0x0f, 0x1f, 0x84, 0x00, 0x00, 0x00, 0x00, 0x00}},
	{9, {0x66, 0x0f, 0x1f, 0x84, 0x00, 0x00, 0x00, 0x00, 0x00}},
};

static bool is_push(uint8_t opcode)
{
	return opcode >= 0x50 && opcode <= 0x57;
}

/* Jumps and calls to a distance. */
static bool is_branch(const uint8_t *code, uint64_t size)
{
	if (code[0] == 0xeb || code[0] == 0xe9 || code[0] == 0xe8 ||
	    (code[0] >= 0x70 && code[0] <= 0x7f))
		return true;
	return size > 1 && code[0] == 0x0f && code[1] >= 0x80 && code[1] <= 0x8f;
}

static enum probe_cost x86_cost(const uint8_t *code, uint64_t size)
{
	const bool has_prefix = size > 1 && (code[0] == 0x41 || code[0] == 0x66);

	if (code[0] == 0x90 || is_push(code[0]) || is_branch(code, size))
		return PROBE_COST_EMULATED;
	/* push %r8 and on; the NOP of two bytes */
	if (has_prefix && (code[0] == 0x41 ? is_push(code[1]) : code[1] == 0x90))
		return PROBE_COST_EMULATED;
	for (size_t i = 0; i < ARRAY_SIZE(long_nops); i++)
		if (size >= long_nops[i].size &&
		    !memcmp(code, long_nops[i].bytes, long_nops[i].size))
			return PROBE_COST_LONG_NOP;
	return PROBE_COST_SINGLE_STEP;
}

/* Arm A64 encodings: mask, value. */
static const uint32_t arm_simulated[][2] = {
	{0x7c000000, 0x14000000}, /* b, bl */
	{0xff000010, 0x54000000}, /* b.cond */
	{0x7e000000, 0x34000000}, /* cbz, cbnz */
	{0x7e000000, 0x36000000}, /* tbz, tbnz */
	{0xff9ffc1f, 0xd61f0000}, /* br, blr, ret */
	{0x1f000000, 0x10000000}, /* adr, adrp */
	{0xbf000000, 0x18000000}, /* ldr (literal) */
	{0xff000000, 0x98000000}, /* ldrsw (literal) */
};
#define ARM_NOP 0xd503201fU /* simulated since Linux 6.13 */

static enum probe_cost arm_cost(const uint8_t *code, uint64_t size)
{
	uint32_t word;

	if (size < sizeof(word))
		return PROBE_COST_SINGLE_STEP;
	memcpy(&word, code, sizeof(word));
	if (word == ARM_NOP)
		return PROBE_COST_LONG_NOP;
	for (size_t i = 0; i < ARRAY_SIZE(arm_simulated); i++)
		if ((word & arm_simulated[i][0]) == arm_simulated[i][1])
			return PROBE_COST_EMULATED;
	return PROBE_COST_SINGLE_STEP;
}

enum probe_cost probe_instruction_cost(uint16_t machine, const uint8_t *code, uint64_t size)
{
	if (!size)
		return PROBE_COST_SINGLE_STEP;
	return machine == EM_X86_64 ? x86_cost(code, size) : arm_cost(code, size);
}
