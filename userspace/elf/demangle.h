/* SPDX-License-Identifier: BSD-2-Clause */
/* Demangles the linker's names of C++ and Rust (by libiberty) and of Cython. */
#ifndef ELF_DEMANGLE_H
#define ELF_DEMANGLE_H

#include <stdbool.h>
#include <stddef.h>

#define DEMANGLE_MAX_BYTES 4096U       /* of a result with its NUL; longer ones end in "..." */
#define DEMANGLE_MAX_INPUT_BYTES 4096U /* longer names stay as they are */

/* Demangles a name: C++ without parameter lists, Rust without hashes, Cython as
 * module.Class.function.  A hostile name costs bounded time and at most about 1 MiB of stack.
 * Returns false, with ret_text undefined, when the name is none of these. */
bool demangle(const char *name, size_t size, char ret_text[DEMANGLE_MAX_BYTES]);

#endif
