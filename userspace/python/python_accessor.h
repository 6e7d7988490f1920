/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads a short x86-64 accessor function by following its instructions with symbolic registers, to
 * learn which thread-local or global variable it returns, and what it passes to the function that
 * it calls last.  No emulation: a few instructions, two paths, at most 64 steps.  Private to
 * python/. */
#ifndef PYTHON_PYTHON_ACCESSOR_H
#define PYTHON_PYTHON_ACCESSOR_H

#include <stdint.h>

#include "elf/elf_image.h"

enum accessor_kind {
	ACCESSOR_UNKNOWN = 0,
	ACCESSOR_CONSTANT,     /* offset: a number, or an address in the file */
	ACCESSOR_LOADED,       /* *(u64 *)address + offset */
	ACCESSOR_FIELD,	       /* the value at LOADED */
	ACCESSOR_THREAD,       /* thread pointer + offset, + *(s64 *)address unless that is 0 */
	ACCESSOR_THREAD_VALUE, /* the value at THREAD */
	ACCESSOR_BLOCK,	       /* __tls_get_addr(address), + offset */
	ACCESSOR_BLOCK_VALUE,  /* the value at BLOCK */
	/* *(s64 *)address + offset, relative to the thread pointer (TLSDESC) */
	ACCESSOR_SLOT_OFFSET,
};

struct accessor_value {
	enum accessor_kind kind;
	uint64_t address; /* in the file */
	int64_t offset;
};

#define ACCESSOR_MAX_TOUCHED 24U

struct accessor {
	struct accessor_value result;	/* rax at the end */
	struct accessor_value argument; /* rdi at the end or at the last call */
	/* Every address that the function computed or read through, as CONSTANT or LOADED. */
	struct accessor_value touched[ACCESSOR_MAX_TOUCHED];
	size_t touched_count;
};

/* Reads the accessor with this name.  Returns 0; -ENOENT: no such function; -ENOTSUP: not
 * x86-64. */
int python_accessor_read(const struct elf_image *image, const char *name,
			 struct accessor *ret_accessor);

/* Finds what the loader writes to the 8 bytes at `slot`, from their relocation: for
 * R_X86_64_GLOB_DAT, _64, _RELATIVE an address in the file; for R_X86_64_DTPOFF64, _TPOFF64 an
 * offset in the TLS block.
 * -ENOENT: no relocation there, or one for a symbol of another file. */
int python_relocation_find(const struct elf_image *image, uint64_t slot, uint32_t *ret_type,
			   uint64_t *ret_value);

#endif
