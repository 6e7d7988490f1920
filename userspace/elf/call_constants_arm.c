/* SPDX-License-Identifier: BSD-2-Clause */
/* Instructions of A64 that set arguments, and those that change no general register; all others
 * make all registers unknown.  Source: Arm Architecture Reference Manual, C4.1. */
#include <elf.h>
#include <stdbool.h>
#include <string.h>

#include "elf/call_constants.h"

#define REGISTERS 32U /* the last one is sp, or zero */
#define LINK 30U
#define CHANGED_BY_CALLS 18U /* x0 and on, and the link register */
#define ZERO 31U

struct reading {
	const struct call_handlers *handlers;
	struct call_value reg[REGISTERS];
	uint64_t vaddr; /* of the instruction */
};

static void forget(struct reading *reading)
{
	memset(reading->reg, 0, sizeof(reading->reg));
}

static void set(struct reading *reading, uint32_t number, uint64_t value, uint32_t kind)
{
	if (number != ZERO)
		reading->reg[number] = (struct call_value){.value = value, .kind = kind};
}

static void tell_address(const struct reading *reading, uint64_t vaddr)
{
	reading->handlers->on_address(reading->handlers->context, vaddr);
}

static void do_call(struct reading *reading)
{
	reading->handlers->on_call(reading->handlers->context, reading->reg);
	memset(reading->reg, 0, (CHANGED_BY_CALLS + 1) * sizeof(reading->reg[0]));
	set(reading, LINK, 0, CALL_UNKNOWN);
}

static uint64_t signed_bits(uint64_t value, uint32_t bits)
{
	return (value & ((1ULL << bits) - 1)) - ((value >> (bits - 1) & 1) << bits);
}

/* b and bl: the distance to where they go, in words. */
static uint64_t branch_target(const struct reading *reading, uint32_t word)
{
	return reading->vaddr + (signed_bits(word, 26) << 2);
}

/* adr, adrp */
static void do_address(struct reading *reading, uint32_t word)
{
	const uint64_t distance =
		signed_bits((uint64_t)(word >> 5 & 0x7ffff) << 2 | (word >> 29 & 3), 21);
	const bool is_page = word >> 31;
	const uint64_t base = is_page ? reading->vaddr & ~0xfffULL : reading->vaddr;
	const uint64_t value = base + (is_page ? distance << 12 : distance);

	set(reading, word & 31, value, CALL_VALUE);
	if (!is_page)
		tell_address(reading, value);
}

/* add x, x, #immediate */
static void do_add(struct reading *reading, uint32_t word)
{
	const struct call_value base = reading->reg[word >> 5 & 31];
	const uint64_t value = base.value + ((word >> 10 & 0xfff) << (word >> 22 & 1 ? 12 : 0));

	if (base.kind != CALL_VALUE) {
		set(reading, word & 31, 0, CALL_UNKNOWN);
		return;
	}
	set(reading, word & 31, value, CALL_VALUE);
	if ((word & 31) != ZERO)
		tell_address(reading, value);
}

/* ldr x, [x, #offset] */
static void do_load(struct reading *reading, uint32_t word)
{
	const struct call_value base = reading->reg[word >> 5 & 31];

	set(reading, word & 31, base.value + (word >> 10 & 0xfff) * 8,
	    base.kind == CALL_VALUE ? CALL_SLOT : CALL_UNKNOWN);
}

static void do_move(struct reading *reading, uint32_t word)
{
	const uint32_t from = word >> 16 & 31;
	const bool is_wide = word >> 31;
	const struct call_value value = reading->reg[from];

	if (from == ZERO)
		set(reading, word & 31, 0, CALL_VALUE);
	else if (is_wide || value.kind == CALL_VALUE)
		set(reading, word & 31, is_wide ? value.value : (uint32_t)value.value, value.kind);
	else
		set(reading, word & 31, 0, CALL_UNKNOWN);
}

/* movz, movn */
static void do_move_immediate(struct reading *reading, uint32_t word, bool is_inverted)
{
	uint64_t value = (uint64_t)(word >> 5 & 0xffff) << 16 * (word >> 21 & 3);

	value = is_inverted ? ~value : value;
	set(reading, word & 31, word >> 31 ? value : (uint32_t)value, CALL_VALUE);
}

/* Returns whether an instruction only stores, to an address that it leaves as it is but for sp; or
 * does nothing, or changes sp or vector registers alone. */
static bool is_harmless(uint32_t word)
{
	static const uint32_t harmless[][2] = {
		{0xfffff01f, 0xd503201f}, /* nop, bti, paciasp and the like */
		{0x7fc00000, 0x29000000}, /* stp */
		{0x7ec003e0, 0x288003e0}, /* stp with sp changed */
		{0xffc00000, 0x6d000000}, /* stp of vector registers */
		{0xffc00000, 0xad000000}, {0x3fc00000, 0x39000000}, /* str, strb, strh */
		{0x3fe00c00, 0x38000000},			    /* stur */
		{0x3f000000, 0x3d000000}, /* str and ldr of vector registers */
		{0x7f00001f, 0x1100001f}, /* add and sub to sp */
		{0x7f00001f, 0x5100001f}, {0x9ff80400, 0x0f000400}, /* movi */
	};

	for (size_t i = 0; i < sizeof(harmless) / sizeof(harmless[0]); i++)
		if ((word & harmless[i][0]) == harmless[i][1])
			return true;
	return false;
}

static void do_branch(struct reading *reading, uint32_t word)
{
	if (word >> 31) { /* bl */
		tell_address(reading, branch_target(reading, word));
		do_call(reading);
		return;
	}
	do_call(reading);
	tell_address(reading, branch_target(reading, word));
	forget(reading);
}

static void do_instruction(struct reading *reading, uint32_t word)
{
	if ((word & 0x7c000000) == 0x14000000)
		do_branch(reading, word);
	else if ((word & 0xfffffc1f) == 0xd63f0000) /* blr */
		do_call(reading);
	else if ((word & 0x1f000000) == 0x10000000)
		do_address(reading, word);
	else if ((word & 0xff800000) == 0x91000000)
		do_add(reading, word);
	else if ((word & 0xffc00000) == 0xf9400000)
		do_load(reading, word);
	else if ((word & 0x7fe0ffe0) == 0x2a0003e0)
		do_move(reading, word);
	else if ((word & 0x7f800000) == 0x52800000)
		do_move_immediate(reading, word, false);
	else if ((word & 0x7f800000) == 0x12800000)
		do_move_immediate(reading, word, true);
	else if (!is_harmless(word))
		forget(reading);
}

size_t call_constants_read_arm(const uint8_t *code, size_t size, uint64_t vaddr,
			       const struct call_handlers *handlers)
{
	struct reading reading = {.handlers = handlers, .vaddr = vaddr};
	size_t at;
	uint32_t word;

	for (at = 0; size - at >= sizeof(word); at += sizeof(word)) {
		memcpy(&word, code + at, sizeof(word));
		do_instruction(&reading, word);
		reading.vaddr += sizeof(word);
	}
	return at;
}

size_t call_constants_read(uint16_t machine, const uint8_t *code, size_t size, uint64_t vaddr,
			   const struct call_handlers *handlers)
{
	if (machine == EM_X86_64)
		return call_constants_read_x86(code, size, vaddr, handlers);
	return machine == EM_AARCH64 ? call_constants_read_arm(code, size, vaddr, handlers) : 0;
}
