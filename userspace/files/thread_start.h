/* SPDX-License-Identifier: BSD-2-Clause */
/* The functions at which stacks begin, where stripping has removed their names.  No state. */
#ifndef FILES_THREAD_START_H
#define FILES_THREAD_START_H

#include <stdint.h>

#include "elf/elf_image.h"
#include "unwind/cfi.h"

/* Names the function at an address: _start, and clone3 or clone for threads.  Returns a static
 * string; NULL: it is none of these. */
const char *thread_start_name(const struct elf_image *image, struct cfi *cfi, uint64_t vaddr);

#endif
