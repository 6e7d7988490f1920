/* SPDX-License-Identifier: BSD-2-Clause */
/* The budget of one ELF file: how much work its parsers may do before the file is given up.
 * A file says itself how long its tables are, and a sparse one of 12 KiB can claim gigabytes. So
 * each loop over a file's bytes pays first, and the budget grows with what is really stored. */
#ifndef ELF_ELF_WORK_H
#define ELF_ELF_WORK_H

#include <stdbool.h>
#include <stdint.h>

/* A unit is about a nanosecond of this machine's class: reading one byte of a program of CFI
 * instructions, or a tenth of a symbol. The largest files that we know stay below a third of what
 * they get: docs/design/files.md. */
#define ELF_WORK_BASE_UNITS (16ULL << 20)   /* what every file gets */
#define ELF_WORK_UNITS_PER_BYTE 16U	    /* more for each byte stored */
#define ELF_WORK_MAX_UNITS (200ULL << 20)   /* less than the loop's longest stall, 250 ms */
#define ELF_WORK_PER_SYMBOL 10U		    /* one entry of a symbol table is read and placed */
#define ELF_WORK_PER_SYMBOL_SORTED 60U	    /* and sorted */
#define ELF_WORK_PER_HEADER 4U		    /* a section header, a note, an entry of a hash chain */
#define ELF_WORK_PER_FDE 48U		    /* beside the bytes of its record */
#define ELF_WORK_PER_FDE_SORTED 80U	    /* when the index of FDEs must be built */
#define ELF_WORK_PER_INSTRUCTION_BYTE 4U    /* of a CIE or an FDE */
#define ELF_WORK_PER_UNPACKED_BYTE 4U	    /* of .gnu_debugdata (xz) */
#define ELF_WORK_SEARCHED_BYTES_PER_UNIT 2U /* memmem() */
#define ELF_WORK_NAME_BYTES_PER_UNIT 8U	    /* strnlen(), memchr() */

struct elf_work {
	uint64_t spent, limit; /* units */
};

static inline uint64_t elf_work_limit(uint64_t stored_bytes)
{
	if (stored_bytes >= (ELF_WORK_MAX_UNITS - ELF_WORK_BASE_UNITS) / ELF_WORK_UNITS_PER_BYTE)
		return ELF_WORK_MAX_UNITS;
	return ELF_WORK_BASE_UNITS + stored_bytes * ELF_WORK_UNITS_PER_BYTE;
}

/* Returns whether the budget is used up. It stays so: the file is given up. */
static inline bool elf_work_is_over(const struct elf_work *work)
{
	return work->spent > work->limit;
}

/* Pays for `count` steps of `units` each. Returns false when the budget does not allow them; then
 * the caller leaves them out. */
static inline bool elf_work_pay(struct elf_work *work, uint64_t count, uint64_t units)
{
	uint64_t price, spent;

	if (__builtin_mul_overflow(count, units, &price) ||
	    __builtin_add_overflow(work->spent, price, &spent))
		spent = UINT64_MAX;
	work->spent = spent > work->limit ? work->limit + 1 : spent;
	return !elf_work_is_over(work);
}

#endif
