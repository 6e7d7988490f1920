/* SPDX-License-Identifier: BSD-2-Clause */
#include "elf/x86_decode.h"

#include <string.h>

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

/* Bytes of one instruction, as far as they are there. */
struct bytes {
	const uint8_t *at;
	size_t left, taken;
};

static bool take(struct bytes *bytes, void *to, size_t size)
{
	if (size > bytes->left || bytes->taken + size > X86_INSTRUCTION_MAX_BYTES)
		return false;
	memcpy(to, bytes->at, size);
	bytes->at += size;
	bytes->left -= size;
	bytes->taken += size;
	return true;
}

static bool is_prefix(uint8_t byte)
{
	static const uint8_t prefixes[] = {0x66, 0x67, 0xf0, 0xf2,   0xf3,  0x2e,
					   0x36, 0x3e, 0x26, X86_FS, X86_GS};

	return memchr(prefixes, byte, sizeof(prefixes));
}

static bool take_prefixes(struct bytes *bytes, struct x86_instruction *in)
{
	uint8_t byte;

	do {
		if (!take(bytes, &byte, 1))
			return false;
		in->has_66 |= byte == 0x66;
		in->has_67 |= byte == 0x67;
		if (byte == X86_FS || byte == X86_GS)
			in->segment = byte;
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
static bool take_vector_prefix(struct bytes *bytes, struct x86_instruction *in, char *ret_form)
{
	const size_t size = in->opcode == 0xc5 ? 1 : in->opcode == 0xc4 ? 2 : 3;
	uint8_t payload[3], map;

	if (!take(bytes, payload, size) || !take(bytes, &in->opcode, 1))
		return false;
	map = size == 1 ? 1 : payload[0] & 7;
	in->map = map == 1 ? X86_TWO_BYTES : X86_OTHER;
	*ret_form = map == 3 ? 'm' : map == 1 ? two_bytes[in->opcode] : 'M';
	return map != 0;
}

/* Returns what follows the opcode; 'x': it is none. */
static char take_opcode(struct bytes *bytes, struct x86_instruction *in)
{
	char form;
	uint8_t third;

	if (!take_prefixes(bytes, in))
		return 'x';
	if (in->opcode == 0xc4 || in->opcode == 0xc5 || in->opcode == 0x62)
		return take_vector_prefix(bytes, in, &form) ? form : 'x';
	if (in->opcode != 0x0f)
		return one_byte[in->opcode];
	in->map = X86_TWO_BYTES;
	if (!take(bytes, &in->opcode, 1))
		return 'x';
	if (in->opcode != 0x38 && in->opcode != 0x3a)
		return two_bytes[in->opcode];
	form = in->opcode == 0x38 ? 'M' : 'm';
	in->map = X86_OTHER;
	return take(bytes, &third, 1) ? form : 'x';
}

static bool take_displacement(struct bytes *bytes, struct x86_instruction *in)
{
	int8_t narrow = 0;
	int32_t wide = 0;

	if (in->mod == 1) {
		if (!take(bytes, &narrow, 1))
			return false;
		in->displacement = narrow;
	} else if (in->mod == 2 || in->base < 0) {
		if (!take(bytes, &wide, 4))
			return false;
		in->displacement = wide;
	}
	return true;
}

static bool take_modrm(struct bytes *bytes, struct x86_instruction *in)
{
	uint8_t modrm, sib;

	if (!take(bytes, &modrm, 1))
		return false;
	in->mod = modrm >> 6;
	in->reg = (modrm >> 3 & 7) | (in->rex & 4 ? 8 : 0);
	in->rm = (modrm & 7) | (in->rex & 1 ? 8 : 0);
	in->is_memory = in->mod != 3;
	if (!in->is_memory)
		return true;
	in->base = (int8_t)in->rm;
	if ((modrm & 7) == 4) {
		if (!take(bytes, &sib, 1))
			return false;
		in->base = (int8_t)((sib & 7) | (in->rex & 1 ? 8 : 0));
		in->index = (int8_t)((sib >> 3 & 7) | (in->rex & 2 ? 8 : 0));
		in->index = in->index == 4 ? X86_NO_REGISTER : in->index;
		in->is_scaled = sib >> 6;
		if ((sib & 7) == 5 && !in->mod)
			in->base = X86_NO_REGISTER;
	} else if ((modrm & 7) == 5 && !in->mod) {
		in->base = X86_RIP;
	}
	return take_displacement(bytes, in);
}

static bool take_immediate(struct bytes *bytes, struct x86_instruction *in, size_t size)
{
	const size_t unused_bits = 64 - 8 * size;
	uint64_t value = 0;

	if (!size)
		return true;
	if (!take(bytes, &value, size))
		return false;
	in->immediate = (int64_t)(value << unused_bits) >> unused_bits;
	return true;
}

static size_t immediate_bytes(const struct x86_instruction *in, char form)
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

bool x86_decode(const uint8_t *code, size_t size, struct x86_instruction *ret_instruction)
{
	struct x86_instruction in = {.base = X86_NO_REGISTER, .index = X86_NO_REGISTER};
	struct bytes bytes = {.at = code, .left = size};
	const char form = take_opcode(&bytes, &in);

	if (form == 'x' || (strchr("MmnT", form) && !take_modrm(&bytes, &in)) ||
	    !take_immediate(&bytes, &in, immediate_bytes(&in, form)))
		return false;
	in.size = bytes.taken;
	*ret_instruction = in;
	return true;
}
