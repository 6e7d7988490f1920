/* SPDX-License-Identifier: BSD-2-Clause */
/* The length of each instruction of x86-64 is known, the effect of those that compilers set
 * arguments with; all others make all registers unknown.  Source: Intel SDM volume 2, appendix
 * A. */
#include <stdbool.h>
#include <string.h>

#include "elf/call_constants.h"

#define INSTRUCTION_MAX_BYTES 15U
#define REGISTERS 16U
enum { RAX, RCX, RDX, RBX, RSP, RBP, RSI, RDI, R8, R9, R10, R11 };

/* What follows the opcode.  '.': nothing; M: a ModRM byte; 1, 2, 3, 4, 8: so many bytes, of which 4
 * become 2 with the prefix 66; m, n: ModRM and one, or four; I: four bytes, or eight with REX.W; T:
 * ModRM, and an immediate for two of its operations; J: four bytes always; x: no instruction. */
static const char one_byte[] = "MMMM14xxMMMM14xx"   /* 00 */
			       "MMMM14xxMMMM14xx"   /* 10 */
			       "MMMM14xxMMMM14xx"   /* 20 */
			       "MMMM14xxMMMM14xx"   /* 30 */
			       "xxxxxxxxxxxxxxxx"   /* 40: REX, which is read before */
			       "................"   /* 50 */
			       "xxxMxxxx4n1m...."   /* 60 */
			       "1111111111111111"   /* 70 */
			       "mnxmMMMMMMMMMMMM"   /* 80 */
			       "..........x....."   /* 90 */
			       "8888....14......"   /* a0 */
			       "11111111IIIIIIII"   /* b0 */
			       "mm2.xxmn3.2..1x."   /* c0 */
			       "MMMMxxx.MMMMMMMM"   /* d0 */
			       "11111111JJx1...."   /* e0 */
			       "x.xx..TT......MM";  /* f0 */
static const char two_bytes[] = "MMMMx.....x.xM.m"  /* 0f 00 */
				"MMMMMMMMMMMMMMMM"  /* 10 */
				"MMMMxxxxMMMMMMMM"  /* 20 */
				"......x.xxxxxxxx"  /* 30: 38 and 3a are read before */
				"MMMMMMMMMMMMMMMM"  /* 40 */
				"MMMMMMMMMMMMMMMM"  /* 50 */
				"MMMMMMMMMMMMMMMM"  /* 60 */
				"mmmmMMM.MMxxMMMM"  /* 70 */
				"JJJJJJJJJJJJJJJJ"  /* 80 */
				"MMMMMMMMMMMMMMMM"  /* 90 */
				"...MmMxx...MmMMM"  /* a0 */
				"MMMMMMMMMMmMMMMM"  /* b0 */
				"MMmMmmmM........"  /* c0 */
				"MMMMMMMMMMMMMMMM"  /* d0 */
				"MMMMMMMMMMMMMMMM"  /* e0 */
				"MMMMMMMMMMMMMMMM"; /* f0 */
_Static_assert(sizeof(one_byte) == 257 && sizeof(two_bytes) == 257, "one for each opcode");

enum map { ONE_BYTE, TWO_BYTES, OTHER };

struct instruction {
	enum map map;
	uint8_t opcode, rex;
	bool has_66;
	/* of ModRM */
	uint8_t mod, reg, rm;
	bool is_memory, is_relative; /* an operand in memory; its address counts from rip */
	uint64_t relative;	     /* that address */
	int64_t immediate;	     /* sign-extended */
	size_t size;
};

struct reading {
	const struct call_handlers *handlers;
	uint32_t known;			  /* bits by register; the others are unknown */
	struct call_value reg[REGISTERS]; /* valid where they are known */
	const uint8_t *code;
	size_t left;
	uint64_t vaddr;
};

/* ---- one instruction ---- */

/* Bytes of one instruction, as far as they are there. */
struct bytes {
	const uint8_t *at;
	size_t left, taken;
};

static bool take(struct bytes *bytes, void *to, size_t size)
{
	if (size > bytes->left || bytes->taken + size > INSTRUCTION_MAX_BYTES)
		return false;
	memcpy(to, bytes->at, size);
	bytes->at += size;
	bytes->left -= size;
	bytes->taken += size;
	return true;
}

static bool is_prefix(uint8_t byte)
{
	return byte == 0x66 || byte == 0x67 || byte == 0xf0 || byte == 0xf2 || byte == 0xf3 ||
	       byte == 0x2e || byte == 0x36 || byte == 0x3e || byte == 0x26 || byte == 0x64 ||
	       byte == 0x65;
}

static bool take_prefixes(struct bytes *bytes, struct instruction *in)
{
	uint8_t byte;

	do {
		if (!take(bytes, &byte, 1))
			return false;
		in->has_66 |= byte == 0x66;
	} while (is_prefix(byte));
	if ((byte & 0xf0) == 0x40) {
		in->rex = byte;
		if (!take(bytes, &byte, 1))
			return false;
	}
	in->opcode = byte;
	return true;
}

/* VEX in two or three bytes (c5, c4), EVEX (62): the map is in the lowest bits of the first byte
 * behind the longer two. */
static bool take_vector_prefix(struct bytes *bytes, struct instruction *in, char *ret_form)
{
	const size_t size = in->opcode == 0xc5 ? 1 : in->opcode == 0xc4 ? 2 : 3;
	uint8_t payload[3], map;

	if (!take(bytes, payload, size) || !take(bytes, &in->opcode, 1))
		return false;
	map = size == 1 ? 1 : payload[0] & 7;
	in->map = map == 1 ? TWO_BYTES : OTHER;
	*ret_form = map == 3 ? 'm' : map == 1 ? two_bytes[in->opcode] : 'M';
	return map != 0;
}

/* Returns what follows the opcode; 'x': it is none. */
static char take_opcode(struct bytes *bytes, struct instruction *in)
{
	char form;
	uint8_t third;

	if (!take_prefixes(bytes, in))
		return 'x';
	if (in->opcode == 0xc4 || in->opcode == 0xc5 || in->opcode == 0x62)
		return take_vector_prefix(bytes, in, &form) ? form : 'x';
	if (in->opcode != 0x0f)
		return one_byte[in->opcode];
	in->map = TWO_BYTES;
	if (!take(bytes, &in->opcode, 1))
		return 'x';
	if (in->opcode != 0x38 && in->opcode != 0x3a)
		return two_bytes[in->opcode];
	form = in->opcode == 0x38 ? 'M' : 'm';
	in->map = OTHER;
	return take(bytes, &third, 1) ? form : 'x';
}

static bool take_modrm(struct bytes *bytes, struct instruction *in)
{
	uint8_t modrm, sib = 0, narrow;
	int32_t wide = 0;

	if (!take(bytes, &modrm, 1))
		return false;
	in->mod = modrm >> 6;
	in->reg = (modrm >> 3 & 7) | (in->rex & 4 ? 8 : 0);
	in->rm = (modrm & 7) | (in->rex & 1 ? 8 : 0);
	in->is_memory = in->mod != 3;
	if (!in->is_memory)
		return true;
	if ((modrm & 7) == 4 && !take(bytes, &sib, 1))
		return false;
	in->is_relative = !in->mod && (modrm & 7) == 5;
	if (in->mod == 1)
		return take(bytes, &narrow, 1);
	if (in->mod == 2 || in->is_relative || (!in->mod && (modrm & 7) == 4 && (sib & 7) == 5)) {
		if (!take(bytes, &wide, 4))
			return false;
		in->relative = (uint64_t)(int64_t)wide; /* from the next instruction on */
	}
	return true;
}

static bool take_immediate(struct bytes *bytes, struct instruction *in, size_t size)
{
	int8_t byte = 0;
	int16_t half = 0;
	int32_t word = 0;

	switch (size) {
	case 0:
		return true;
	case 1:
		if (!take(bytes, &byte, 1))
			return false;
		in->immediate = byte;
		return true;
	case 2:
		if (!take(bytes, &half, 2))
			return false;
		in->immediate = half;
		return true;
	case 4:
		if (!take(bytes, &word, 4))
			return false;
		in->immediate = word;
		return true;
	default:
		return take(bytes, &in->immediate, size);
	}
}

static size_t immediate_bytes(const struct instruction *in, char form)
{
	const size_t word = in->has_66 ? 2 : 4;

	switch (form) {
	case '1':
	case 'm':
		return 1;
	case '2':
		return 2;
	case '3':
		return 3;
	case '8':
		return 8;
	case 'J':
		return 4;
	case 'I':
		return in->rex & 8 ? 8 : word;
	case '4':
	case 'n':
		return word;
	case 'T': /* test; not, neg, mul and div have none */
		return (in->reg & 7) > 1 ? 0 : in->opcode == 0xf6 ? 1 : word;
	default:
		return 0;
	}
}

/* Returns false when the bytes are no instruction. */
static bool read_instruction(const struct reading *reading, struct instruction *in)
{
	struct bytes bytes = {.at = reading->code, .left = reading->left};
	const char form = take_opcode(&bytes, in);

	if (form == 'x')
		return false;
	if (strchr("MmnT", form) && !take_modrm(&bytes, in))
		return false;
	if (!take_immediate(&bytes, in, immediate_bytes(in, form)))
		return false;
	in->size = bytes.taken;
	in->relative += reading->vaddr + in->size;
	return true;
}

/* ---- what it does ---- */

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
static void write_operand(struct reading *reading, const struct instruction *in)
{
	if (!in->is_memory)
		forget_register(reading, in->rm);
}

static void do_load(struct reading *reading, const struct instruction *in)
{
	const bool is_wide = in->rex & 8;

	if (!in->is_memory && !in->has_66)
		copy(reading, in->reg, in->rm, is_wide);
	else if (in->is_relative && is_wide)
		set_as(reading, in->reg, in->relative, CALL_SLOT);
	else
		forget_register(reading, in->reg);
}

static void do_store(struct reading *reading, const struct instruction *in)
{
	if (!in->is_memory && !in->has_66)
		copy(reading, in->rm, in->reg, in->rex & 8);
	else
		write_operand(reading, in);
}

static void do_lea(struct reading *reading, const struct instruction *in)
{
	forget_register(reading, in->reg);
	if (!in->is_relative || !(in->rex & 8))
		return;
	set(reading, in->reg, in->relative);
	tell_address(reading, in->relative);
}

static void do_load_immediate(struct reading *reading, const struct instruction *in, uint8_t number)
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
static void do_arithmetic(struct reading *reading, const struct instruction *in)
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

static void do_exclusive_or(struct reading *reading, const struct instruction *in)
{
	if (!in->is_memory && in->reg == in->rm && !in->has_66)
		set(reading, in->rm, 0);
	else
		forget(reading);
}

/* inc, dec, call, jmp and push of an operand. */
static void do_group_ff(struct reading *reading, const struct instruction *in)
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

static void do_call(struct reading *reading, const struct instruction *in)
{
	tell_call(reading);
	tell_address(reading, reading->vaddr + in->size + (uint64_t)in->immediate);
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

static void do_one_byte(struct reading *reading, const struct instruction *in)
{
	const uint8_t number = (in->opcode & 7) | (in->rex & 1 ? 8 : 0);

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

static void do_instruction(struct reading *reading, const struct instruction *in)
{
	if (in->map == ONE_BYTE)
		do_one_byte(reading, in);
	else if (in->map != TWO_BYTES || !is_of_vectors(in->opcode))
		forget(reading);
}

size_t call_constants_read_x86(const uint8_t *code, size_t size, uint64_t vaddr,
			       const struct call_handlers *handlers)
{
	struct reading reading = {.handlers = handlers, .code = code, .left = size, .vaddr = vaddr};

	while (reading.left) {
		struct instruction in = {.map = ONE_BYTE};

		if (!read_instruction(&reading, &in))
			break;
		do_instruction(&reading, &in);
		reading.code += in.size;
		reading.left -= in.size;
		reading.vaddr += in.size;
	}
	return size - reading.left;
}
