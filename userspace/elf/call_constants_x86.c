/* SPDX-License-Identifier: BSD-2-Clause */
/* The effect of those instructions of x86-64 is known that compilers set arguments with; all others
 * make all registers unknown. */
#include <stdbool.h>
#include <string.h>

#include "elf/call_constants.h"
#include "elf/x86_decode.h"

#define REGISTERS 16U

struct reading {
	const struct call_handlers *handlers;
	uint32_t known;			  /* bits by register; the others are unknown */
	struct call_value reg[REGISTERS]; /* valid where they are known */
	const uint8_t *code;
	size_t left;
	uint64_t vaddr;
};

static uint64_t next_vaddr(const struct reading *reading, const struct x86_instruction *in)
{
	return reading->vaddr + in->size;
}

/* Returns the address of an operand that counts from rip. */
static uint64_t relative(const struct reading *reading, const struct x86_instruction *in)
{
	return next_vaddr(reading, in) + (uint64_t)in->displacement;
}

static void forget(struct reading *reading)
{
	reading->known = 0;
}

static void forget_register(struct reading *reading, uint8_t number)
{
	reading->known &= ~(1U << number);
}

static void set_as(struct reading *reading, uint8_t number, uint64_t value, uint32_t kind)
{
	reading->reg[number] = (struct call_value){.value = value, .kind = kind};
	reading->known |= 1U << number;
}

static void set(struct reading *reading, uint8_t number, uint64_t value)
{
	set_as(reading, number, value, CALL_VALUE);
}

static struct call_value value_of(const struct reading *reading, uint8_t number)
{
	return reading->known >> number & 1 ? reading->reg[number]
					    : (struct call_value){.kind = CALL_UNKNOWN};
}

static void tell_address(const struct reading *reading, uint64_t vaddr)
{
	reading->handlers->on_address(reading->handlers->context, vaddr);
}

static void tell_call(const struct reading *reading)
{
	const struct call_value argument[CALL_ARGUMENTS] = {
		value_of(reading, RDI), value_of(reading, RSI), value_of(reading, RDX),
		value_of(reading, RCX), value_of(reading, R8)};

	reading->handlers->on_call(reading->handlers->context, argument);
}

/* A function may change these registers. */
static void return_from_call(struct reading *reading)
{
	static const uint8_t changed[] = {RAX, RCX, RDX, RSI, RDI, R8, R9, R10, R11};

	for (size_t i = 0; i < sizeof(changed); i++)
		forget_register(reading, changed[i]);
}

/* mov: what an operand of 4 bytes leaves of a value.  An address in a slot does not fit. */
static void copy(struct reading *reading, uint8_t to, uint8_t from, bool is_wide)
{
	const struct call_value value = value_of(reading, from);

	if (is_wide && value.kind != CALL_UNKNOWN)
		set_as(reading, to, value.value, value.kind);
	else if (value.kind == CALL_VALUE)
		set(reading, to, (uint32_t)value.value);
	else
		forget_register(reading, to);
}

/* What may have changed of an operand that is written to. */
static void write_operand(struct reading *reading, const struct x86_instruction *in)
{
	if (!in->is_memory)
		forget_register(reading, in->rm);
}

static void do_load(struct reading *reading, const struct x86_instruction *in)
{
	const bool is_wide = in->rex & 8;

	if (!in->is_memory && !in->has_66)
		copy(reading, in->reg, in->rm, is_wide);
	else if (in->base == X86_RIP && is_wide)
		set_as(reading, in->reg, relative(reading, in), CALL_SLOT);
	else
		forget_register(reading, in->reg);
}

static void do_store(struct reading *reading, const struct x86_instruction *in)
{
	if (!in->is_memory && !in->has_66)
		copy(reading, in->rm, in->reg, in->rex & 8);
	else
		write_operand(reading, in);
}

static void do_lea(struct reading *reading, const struct x86_instruction *in)
{
	forget_register(reading, in->reg);
	if (in->base != X86_RIP || !(in->rex & 8))
		return;
	set(reading, in->reg, relative(reading, in));
	tell_address(reading, relative(reading, in));
}

static void do_load_immediate(struct reading *reading, const struct x86_instruction *in,
			      uint8_t number)
{
	const uint64_t value =
		in->rex & 8 ? (uint64_t)in->immediate : (uint64_t)(uint32_t)in->immediate;

	forget_register(reading, number);
	if (in->has_66)
		return;
	set(reading, number, value);
	tell_address(reading, value);
}

/* add, or, adc, sbb, and, sub, xor, cmp with an immediate. */
static void do_arithmetic(struct reading *reading, const struct x86_instruction *in)
{
	const uint8_t operation = in->reg & 7;

	if (operation == 7)
		return;
	write_operand(reading, in);
	/* or $-1 is shorter than mov */
	if (operation == 1 && in->immediate == -1 && !in->is_memory && !in->has_66 &&
	    in->opcode == 0x83)
		set(reading, in->rm, in->rex & 8 ? UINT64_MAX : UINT32_MAX);
}

static void do_exclusive_or(struct reading *reading, const struct x86_instruction *in)
{
	if (!in->is_memory && in->reg == in->rm && !in->has_66)
		set(reading, in->rm, 0);
	else
		forget(reading);
}

/* inc, dec, call, jmp and push of an operand. */
static void do_group_ff(struct reading *reading, const struct x86_instruction *in)
{
	switch (in->reg & 7) {
	case 0:
	case 1:
		write_operand(reading, in);
		return;
	case 2:
		tell_call(reading);
		return_from_call(reading);
		return;
	case 4: /* what a function ends with may be a call */
		tell_call(reading);
		forget(reading);
		return;
	case 6:
		return;
	default:
		forget(reading);
	}
}

static void do_call(struct reading *reading, const struct x86_instruction *in)
{
	tell_call(reading);
	tell_address(reading, next_vaddr(reading, in) + (uint64_t)in->immediate);
	if (in->opcode == 0xe8)
		return_from_call(reading);
	else
		forget(reading);
}

/* Returns whether an instruction of the map 0f leaves all that is followed as it is: endbr64 and
 * nop, moves and sums of vector registers, and to memory. */
static bool is_of_vectors(uint8_t opcode)
{
	static const uint8_t harmless[] = {0x0d, 0x10, 0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17,
					   0x18, 0x1e, 0x1f, 0x28, 0x29, 0x57, 0x60, 0x61, 0x62,
					   0x6c, 0x6d, 0x6e, 0x6f, 0x70, 0x7f, 0xc6, 0xd6, 0xef};

	return memchr(harmless, opcode, sizeof(harmless));
}

static void do_one_byte(struct reading *reading, const struct x86_instruction *in)
{
	const uint8_t number = x86_opcode_register(in);

	switch (in->opcode) {
	case 0x50 ... 0x57: /* push */
	case 0x68:
	case 0x6a:
	case 0x38 ... 0x3d: /* cmp, test */
	case 0x84:
	case 0x85:
	case 0xa8:
	case 0xa9:
	case 0x90: /* nop */
		return;
	case 0x58 ... 0x5f: /* pop */
		forget_register(reading, number);
		return;
	case 0x31:
	case 0x33:
		do_exclusive_or(reading, in);
		return;
	case 0x80:
	case 0x81:
	case 0x83:
		do_arithmetic(reading, in);
		return;
	case 0x88:
	case 0xc6:
		write_operand(reading, in);
		return;
	case 0x89:
		do_store(reading, in);
		return;
	case 0x8b:
		do_load(reading, in);
		return;
	case 0x8d:
		do_lea(reading, in);
		return;
	case 0xb8 ... 0xbf:
		do_load_immediate(reading, in, number);
		return;
	case 0xc7:
		if (!in->is_memory)
			do_load_immediate(reading, in, in->rm);
		return;
	case 0xe8:
	case 0xe9:
	case 0xeb:
		do_call(reading, in);
		return;
	case 0xff:
		do_group_ff(reading, in);
		return;
	default: /* branches, too: others may come here */
		forget(reading);
	}
}

static void do_instruction(struct reading *reading, const struct x86_instruction *in)
{
	if (in->map == X86_ONE_BYTE)
		do_one_byte(reading, in);
	else if (in->map != X86_TWO_BYTES || !is_of_vectors(in->opcode))
		forget(reading);
}

size_t call_constants_read_x86(const uint8_t *code, size_t size, uint64_t vaddr,
			       const struct call_handlers *handlers)
{
	struct reading reading = {.handlers = handlers, .code = code, .left = size, .vaddr = vaddr};

	while (reading.left) {
		struct x86_instruction in;

		if (!x86_decode(reading.code, reading.left, &in))
			break;
		do_instruction(&reading, &in);
		reading.code += in.size;
		reading.left -= in.size;
		reading.vaddr += in.size;
	}
	return size - reading.left;
}
