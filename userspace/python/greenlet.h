/* SPDX-License-Identifier: BSD-2-Clause */
/* Greenlets (gevent, eventlet, gunicorn's and celery's workers of those names) share one stack: what
 * lies above a greenlet's own part of it belongs to another one, or is half overwritten. */
#ifndef PYTHON_GREENLET_H
#define PYTHON_GREENLET_H

#include <stdint.h>

#include "elf/elf_image.h"

/* Address in the file of the function in which each greenlet's part begins; 0: the file is not the
 * greenlet extension, or does not name it. */
uint64_t greenlet_first_function(const struct elf_image *image);

#endif
