/* SPDX-License-Identifier: BSD-2-Clause */
/* The functions at which stacks begin, where stripping has removed their names.  No state. */
#ifndef FILES_STACK_STARTS_H
#define FILES_STACK_STARTS_H

#include <stdint.h>

#include "elf/elf_image.h"
#include "unwind/cfi.h"

/* Names the function at an address: _start, and clone3 or clone for threads.  Returns a static
 * string; NULL: it is none of these. */
const char *thread_start_name(const struct elf_image *image, struct cfi *cfi, uint64_t vaddr);

/* Greenlets (gevent, eventlet, and the workers of gunicorn and celery with these names) share one C
 * stack: the memory above a greenlet's own part belongs to another greenlet, or is half
 * overwritten.  Finds the function in which each one's part begins.  Returns its address in the
 * file; 0 when the file is not the greenlet extension or has no symbol for that function. */
uint64_t greenlet_first_function(const struct elf_image *image);

/* Declares where the functions of coroutines return to: glibc's __start_context, and the end that
 * boost's make_fcontext() gives them, which have no symbol and no caller. */
void coroutine_roots_add(const struct elf_image *image, struct cfi *cfi);

#endif
