/* SPDX-License-Identifier: BSD-2-Clause */
/* Follows constants through machine code, as far as one stretch without a branch: which functions
 * it calls with which constant arguments, and which addresses it forms.  What it does not know, it
 * calls unknown; no bytes make it read outside of the code.  No state. */
#ifndef ELF_CALL_CONSTANTS_H
#define ELF_CALL_CONSTANTS_H

#include <stddef.h>
#include <stdint.h>

#define CALL_ARGUMENTS 5U /* that are told of a call */

enum call_value_kind {
	CALL_UNKNOWN,
	CALL_VALUE, /* a number, or an address in the file */
	CALL_SLOT,  /* what is stored at that address: of the global offset table, for example */
};

struct call_value {
	uint64_t value;
	uint32_t kind; /* enum call_value_kind */
};

struct call_handlers {
	/* A call, or a jump that may be one; the first integer arguments of the calling
	 * convention. */
	void (*on_call)(void *context, const struct call_value argument[CALL_ARGUMENTS]);
	/* An address that the code calls, jumps to, or computes. */
	void (*on_address)(void *context, uint64_t vaddr);
	void *context;
};

/* Reads `size` bytes of code from its first instruction on.  machine: EM_X86_64, EM_AARCH64; of
 * others nothing is told.  Returns how many bytes were read: fewer where no instruction could be
 * told.  Sources: System V psABI x86-64, section 3.2.3; AAPCS64, section 6.4. */
size_t call_constants_read(uint16_t machine, const uint8_t *code, size_t size, uint64_t vaddr,
			   const struct call_handlers *handlers);

/* Defined in call_constants_x86.c and call_constants_arm.c. */
size_t call_constants_read_x86(const uint8_t *code, size_t size, uint64_t vaddr,
			       const struct call_handlers *handlers);
size_t call_constants_read_arm(const uint8_t *code, size_t size, uint64_t vaddr,
			       const struct call_handlers *handlers);

#endif
