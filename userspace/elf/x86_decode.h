/* SPDX-License-Identifier: BSD-2-Clause */
/* Splits instructions of x86-64 into their parts: the length of each is known.  Source: Intel SDM
 * volume 2, chapters 2.1 and 2.2, appendix A.  Numbers are sign-extended.  No state. */
#ifndef ELF_X86_DECODE_H
#define ELF_X86_DECODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define X86_INSTRUCTION_MAX_BYTES 15U

enum { RAX, RCX, RDX, RBX, RSP, RBP, RSI, RDI, R8, R9, R10, R11 };

/* X86_TWO_BYTES: the opcode comes behind 0f; X86_OTHER: behind 0f 38, 0f 3a, or in another map. */
enum x86_map { X86_ONE_BYTE, X86_TWO_BYTES, X86_OTHER };
enum { X86_NO_REGISTER = -1, X86_RIP = -2 };
enum { X86_FS = 0x64, X86_GS = 0x65 };

struct x86_instruction {
	enum x86_map map;
	uint8_t opcode, rex;
	bool has_66, has_67;
	uint8_t segment; /* X86_FS, X86_GS; 0: no such prefix */
	/* of ModRM */
	uint8_t mod, reg, rm;
	bool is_memory, is_scaled; /* an operand in memory; its index counts more than once */
	int8_t base, index;	   /* registers of its address, X86_NO_REGISTER, or X86_RIP */
	int64_t displacement;	   /* from X86_RIP: from the next instruction on */
	int64_t immediate;
	size_t size; /* bytes */
};

/* Returns false when the bytes are no instruction, or not a whole one. */
bool x86_decode(const uint8_t *code, size_t size, struct x86_instruction *ret_instruction);

/* Returns the register that the opcode itself names. */
static inline uint8_t x86_opcode_register(const struct x86_instruction *in)
{
	return (in->opcode & 7) | (in->rex & 1 ? 8 : 0);
}

#endif
