/* SPDX-License-Identifier: BSD-2-Clause */
/* Finds out where a thread keeps its PyThreadState, from the interpreter's own accessor functions.
 * Private to python/.  On x86-64 they are decoded; on aarch64 only the pthread key (by the table)
 * and a static `_Py_tss_tstate` (by its symbol) are supported. */
#ifndef PYTHON_PYTHON_TLS_H
#define PYTHON_PYTHON_TLS_H

#include <stdint.h>

#include "elf/elf_image.h"
#include "python/python_info.h"
#include "python/python_offsets.h"

/* Fills info->tls from the file; info->bpf (version) and info->symbols must be set.
 *
 * source[0] is the state attached to the running thread.  3.12+: the thread-local _Py_tss_tstate.
 * Before: the global current state, which belongs to the GIL's holder, so it is a thread's own only
 * while that thread holds the GIL (thread_id tells).  It is right under sub-interpreters, where
 * source[1] is not.
 * source[1] is the GILState slot, valid while detached too.  <= 3.14: a pthread key (2.7 has none).
 *
 * For PP_TLS_THREAD_OFFSET with an address (in the file), *(s64 *)address must be added to the
 * offset; the dynamic loader writes it there (initial-exec variables, TLS descriptors). */
void python_tls_plan(const struct elf_image *image, const struct python_layout *layout,
		     struct python_info *info);

/* Returns the address of the variable that an accessor returns, for 2.7 and 3.6 without .symtab; 0:
 * unknown. */
uint64_t python_accessor_variable(const struct elf_image *image, const char *name);

/* ---- accessor functions ---- */

/* Reads a short x86-64 accessor function by following its instructions with symbolic registers, to
 * learn which thread-local or global variable it returns, and what it passes to the function that
 * it calls last.  No emulation: a few instructions, two paths, at most 64 steps. */
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

#endif
