/* SPDX-License-Identifier: BSD-2-Clause */
/* Where a thread finds its PyThreadState, as the interpreter's own accessor functions tell.
 * Private to python/.  x86-64: decoded; aarch64: the pthread key by the table, a static
 * `_Py_tss_tstate` by its symbol, nothing else. */
#ifndef PYTHON_PYTHON_TLS_H
#define PYTHON_PYTHON_TLS_H

#include "python/python_info.h"
#include "python/python_offsets.h"

/* Fills info->tls from the file; info->bpf (version) and info->symbols are set already.
 *
 * source[0]: the state attached to the running thread.  3.12+: the thread-local _Py_tss_tstate;
 * before: the global current state, which is the GIL holder's, so it is a thread's own only while
 * that holds the GIL (thread_id tells).  It is right under sub-interpreters, which source[1] is not.
 * source[1]: the GILState slot, valid while detached too.  <= 3.14: a pthread key (none in 2.7).
 *
 * PP_TLS_THREAD_OFFSET with an address (in the file): *(s64 *)address must be added to the offset,
 * which the dynamic loader writes there (initial-exec variables, TLS descriptors). */
void python_tls_plan(const struct elf_image *image, const struct python_layout *layout,
		     struct python_info *info);

/* 2.7 and 3.6 without .symtab: the address of the variable that an accessor returns; 0: unknown. */
uint64_t python_accessor_variable(const struct elf_image *image, const char *name);

#endif
