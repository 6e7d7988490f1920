/* SPDX-License-Identifier: BSD-2-Clause */
/* Greenlets (gevent, eventlet, and the workers of gunicorn and celery with these names) share one C
 * stack: the memory above a greenlet's own part belongs to another greenlet, or is half
 * overwritten. */
#ifndef PYTHON_GREENLET_H
#define PYTHON_GREENLET_H

#include <stdint.h>

#include "elf/elf_image.h"

/* Finds the function in which each greenlet's part of the stack begins.  Returns its address in the
 * file; 0 when the file is not the greenlet extension or has no symbol for that function. */
uint64_t greenlet_first_function(const struct elf_image *image);

#endif
