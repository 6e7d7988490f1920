/* SPDX-License-Identifier: BSD-2-Clause */
/* Linker names as their authors wrote them: C++ and Rust (libiberty), Cython. */
#ifndef SYMBOLIZE_DEMANGLE_H
#define SYMBOLIZE_DEMANGLE_H

#include <stdbool.h>
#include <stddef.h>

#define DEMANGLE_MAX_BYTES 4096U       /* of a result with its NUL; longer ones end in "..." */
#define DEMANGLE_MAX_INPUT_BYTES 4096U /* longer names stay as they are */

/* C++ without parameter lists, which the mangled name keeps apart; Rust without hashes; Cython as
 * module.Class.function.  Hostile names cost bounded time and about 1 MiB of stack at most.
 * Returns false, with ret_text undefined, when the name is none of these. */
bool demangle(const char *name, size_t size, char ret_text[DEMANGLE_MAX_BYTES]);

/* In demangle_cython.c. */
bool demangle_cython(const char *name, size_t size, char ret_text[DEMANGLE_MAX_BYTES]);

#endif
