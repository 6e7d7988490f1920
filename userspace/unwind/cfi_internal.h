/* SPDX-License-Identifier: BSD-2-Clause */
/* Private to cfi.c (index and lookup), cfi_program.c (records and their execution), cfi_rule.c
 * (state -> pp_rule) and cfi_go.c (the same from Go's tables). Only three registers matter: the
 * CFA, the frame pointer and the return address; instructions for other registers are skipped. */
#ifndef UNWIND_CFI_INTERNAL_H
#define UNWIND_CFI_INTERNAL_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "elf/go_table.h"
#include "unwind/cfi.h"

#define CFI_MAX_REMEMBERED 32U		/* nested DW_CFA_remember_state; compilers need 1 or 2 */
#define CFI_MAX_CODE_ALIGN 64U		/* bytes; 1 and 4 occur */
#define CFI_CIE_CACHE_SLOTS 64U		/* a linked file has 1 to 10 CIEs */
#define CFI_MAX_PADDING_BYTES 16U	/* between FDEs: alignment; belongs to the code before it */
#define CFI_MAX_LEB_BYTES 32U		/* of one number, with its padding */
#define CFI_MAX_RECORD_BYTES (1U << 20) /* of one CIE or FDE; CPython's largest has 30 KiB */

/* A cursor over foreign bytes.  A read past the end gives 0 and sets is_bad. */
struct cfi_reader {
	const uint8_t *at, *end;
	bool is_bad;
};

static inline bool cfi_has(struct cfi_reader *reader, size_t size)
{
	if ((size_t)(reader->end - reader->at) >= size)
		return true;
	reader->is_bad = true;
	reader->at = reader->end;
	return false;
}

#define CFI_DEFINE_READ(name, type)                                                                \
	static inline type cfi_read_##name(struct cfi_reader *reader)                              \
	{                                                                                          \
		type value;                                                                        \
                                                                                                   \
		if (!cfi_has(reader, sizeof(value)))                                               \
			return 0;                                                                  \
		memcpy(&value, reader->at, sizeof(value));                                         \
		reader->at += sizeof(value);                                                       \
		return value;                                                                      \
	}
CFI_DEFINE_READ(u8, uint8_t)
CFI_DEFINE_READ(u16, uint16_t)
CFI_DEFINE_READ(u32, uint32_t)
CFI_DEFINE_READ(u64, uint64_t)

static inline void cfi_skip(struct cfi_reader *reader, uint64_t size)
{
	if (size > (uint64_t)(reader->end - reader->at)) {
		reader->is_bad = true;
		reader->at = reader->end;
		return;
	}
	reader->at += size;
}

/* Bits above the 64th are dropped; a number that does not end, or is longer than that of any
 * assembler, is bad.  *ret_bits: how many it has. */
static inline uint64_t cfi_read_leb(struct cfi_reader *reader, unsigned int *ret_bits)
{
	uint64_t value = 0;
	unsigned int shift = 0;

	while (reader->at < reader->end && shift < 7 * CFI_MAX_LEB_BYTES) {
		uint8_t byte = *reader->at++;

		if (shift < 64)
			value |= (uint64_t)(byte & 0x7f) << shift;
		shift += 7;
		if (byte & 0x80)
			continue;
		*ret_bits = shift;
		return value;
	}
	reader->is_bad = true;
	*ret_bits = 64;
	return 0;
}

static inline uint64_t cfi_read_uleb(struct cfi_reader *reader)
{
	unsigned int bits;

	return cfi_read_leb(reader, &bits);
}

static inline int64_t cfi_read_sleb(struct cfi_reader *reader)
{
	unsigned int bits;
	const uint64_t value = cfi_read_leb(reader, &bits);

	if (bits < 64 && value >> (bits - 1) & 1)
		return (int64_t)(value | ~0ULL << bits);
	return (int64_t)value;
}

enum cfi_place_kind {
	/* For the frame pointer and the return address: */
	CFI_SAME = 0,
	CFI_UNDEFINED,
	CFI_AT_CFA,	 /* *(CFA + offset) */
	CFI_AT_REGISTER, /* *(reg + offset) */
	CFI_IN_REGISTER, /* reg */
	/* For the CFA: */
	CFI_CFA_REGISTER, /* reg + offset */
	CFI_CFA_DEREF,	  /* *(reg + offset) + add */
	CFI_CFA_PLT,	  /* sp + 8 + ((pc & 15) >= offset) * 8 */
	/* For all: well-formed, but a pp_rule can't express it. */
	CFI_UNSUPPORTED,
};

struct cfi_place {
	uint8_t kind; /* enum cfi_place_kind */
	uint8_t reg;  /* DWARF number */
	int16_t add;
	int32_t offset;
};

struct cfi_state {
	struct cfi_place cfa, fp, ra;
};

struct cfi_machine {
	uint8_t fp, sp, ra; /* DWARF numbers */
	uint8_t register_count;
	bool has_link_register;
};

/* .eh_frame or .debug_frame. */
struct cfi_section {
	const uint8_t *data;
	uint64_t size, vaddr;
	bool is_debug_frame;
	bool ends_at_zero; /* size is only a bound: a zero length word ends it */
};

struct cfi_cie {
	uint64_t offset; /* in the section */
	uint64_t code_align;
	int64_t data_align;
	uint64_t ra_register;
	struct cfi_state state; /* after the initial instructions */
	uint8_t encoding;	/* DW_EH_PE_… of addresses in FDEs */
	bool has_augmentation;
	bool is_signal;
	bool is_cached; /* this cache slot is in use */
	bool is_bad;
};

/* One FDE; cie stays valid until the next FDE is read. */
struct cfi_fde {
	uint64_t low, high;
	const struct cfi_cie *cie;
	struct cfi_reader program;
};

/* Reads records; owns the cache of CIEs. */
struct cfi_records {
	struct cfi_section section;
	struct elf_work *work; /* of the image; reading and executing records pays from it */
	struct cfi_machine machine;
	struct cfi_cie cie[CFI_CIE_CACHE_SLOTS];
};

/* One record of the section, CIE or FDE. */
struct cfi_record {
	uint64_t offset, next; /* in the section; next: the record after it */
	uint64_t cie_offset;
	bool is_cie;
	struct cfi_reader body; /* what follows the CIE id or pointer */
};

/* Reads a record. Returns 0; -ENOENT at a zero length word (next is after it); -EBADMSG. */
int cfi_record_read(const struct cfi_section *section, uint64_t offset,
		    struct cfi_record *ret_record);
/* Reads the FDE at a section offset. Returns 0; -EBADMSG when the FDE or its CIE is invalid, of a
 * form that we do not support, or more work than the budget allows. */
int cfi_fde_read(struct cfi_records *records, uint64_t offset, struct cfi_fde *ret_fde);
/* Reads one encoded address; vaddr is the address of reader->at. Supports absolute and PC-relative
 * ones, and with data_base (non-zero) also those relative to data_base. */
uint64_t cfi_read_encoded(struct cfi_reader *reader, uint8_t encoding, uint64_t vaddr,
			  uint64_t data_base);

struct cfi_program {
	struct cfi_reader reader;
	const struct cfi_cie *cie;
	const struct cfi_machine *machine;
	const struct cfi_section *section;
	uint64_t location, high;
	struct cfi_state state; /* of the row that cfi_program_next() returned */
	struct cfi_state remembered[CFI_MAX_REMEMBERED];
	unsigned int remembered_count;
	bool is_done;
};

void cfi_program_start(struct cfi_program *program, const struct cfi_records *records,
		       const struct cfi_fde *fde);
/* Computes the next row of the FDE: its state holds in [*ret_low, next row or the FDE's end).
 * Returns 1; 0 when there is no further row; -EBADMSG. */
int cfi_program_next(struct cfi_program *program, uint64_t *ret_low);

/* The rows of a Go function, from its table of the stack pointer. */
struct cfi_go {
	const struct cfi_machine *machine;
	struct go_function function;
	struct go_steps steps;
	int64_t saved; /* bytes below the CFA where the caller's frame pointer is; 0: not saved */
	struct pp_rule elsewhere; /* x86-64: the rule of a function that goes to another stack */
};
void cfi_go_start(struct cfi_go *go, const struct go_table *table,
		  const struct cfi_machine *machine, const struct go_function *function);
/* Computes the next row, which holds in [*ret_low, next row or the function's end).  Returns false
 * when there is no further row. */
bool cfi_go_next(struct cfi_go *go, uint64_t *ret_low, struct pp_rule *ret_rule);

void cfi_machine_of(uint16_t elf_machine, struct cfi_machine *ret_machine);
/* Translate a DWARF expression for the CFA, or for where a register was saved. They never fail: an
 * expression of no known shape is CFI_UNSUPPORTED. */
struct cfi_place cfi_expression_cfa(const struct cfi_machine *machine,
				    struct cfi_reader expression);
struct cfi_place cfi_expression_saved(struct cfi_reader expression);
struct pp_rule cfi_state_rule(const struct cfi_machine *machine, const struct cfi_cie *cie,
			      const struct cfi_state *state);
/* Returns the size of the code that a signal handler returns to. */
size_t cfi_trampoline(uint16_t elf_machine, const uint8_t **ret_bytes);

#endif
