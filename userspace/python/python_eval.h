/* SPDX-License-Identifier: BSD-2-Clause */
/* Finds all parts of one function that the compiler has split (hot, cold, partitioned).
 * Private to python/. */
#ifndef PYTHON_PYTHON_EVAL_H
#define PYTHON_PYTHON_EVAL_H

#include <stddef.h>

#include <pyprofd/python.h>

#include "elf/elf_image.h"

/* Finds the parts by the unwind table and by jumps, so that it works in stripped files too.  A part
 * is an FDE with at least two jumps between it and a known part, whose first row shows that the
 * frame is set up already, unlike that of a function just called.  Returns the number of ranges in
 * ret_range, the one with the symbol first; 0: no such function. */
size_t python_eval_ranges(const struct elf_image *image, const char *name,
			  struct pp_eval_range ret_range[PP_MAX_EVAL_RANGES]);

#endif
