/* SPDX-License-Identifier: BSD-2-Clause */
/* All parts of one function that the compiler has split (hot, cold, partitioned).
 * Private to python/. */
#ifndef PYTHON_PYTHON_EVAL_H
#define PYTHON_PYTHON_EVAL_H

#include <stddef.h>

#include <pyprofd/python.h>

#include "elf/elf_image.h"

/* Finds the parts by the unwind table and by jumps, so that a stripped file tells as much: a part is
 * an FDE with two jumps at least between it and a known part, and whose first row is not that of a
 * function just called (the frame is set up already).  Returns the number of ranges in ret_range,
 * the one with the symbol first; 0: no such function. */
size_t python_eval_ranges(const struct elf_image *image, const char *name,
			  struct pp_eval_range ret_range[PP_MAX_EVAL_RANGES]);

#endif
