/* SPDX-License-Identifier: BSD-2-Clause */
/* Where in a program a kernel was launched, by the native frames of the call: the driver's, those
 * of the runtime, and then those of the file that called it, of which one may be the kernel's
 * stub. */
#ifndef GPU_LAUNCH_SITE_H
#define GPU_LAUNCH_SITE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "drain/dictionary.h"

/* Frames of the calling file that are looked at.  A file may have the runtime in itself, whose
 * frames are the first ones. */
#define LAUNCH_SITE_FRAMES 8U

struct launch_site {
	uint32_t file; /* slot of the calling file */
	uint32_t count;
	uint64_t
		vaddr[LAUNCH_SITE_FRAMES]; /* leaf to root; all in that file, one after the other */
};

/* Says what a file is, by its slot. */
enum launch_file { LAUNCH_FILE_OTHER, LAUNCH_FILE_DRIVER, LAUNCH_FILE_RUNTIME };
typedef enum launch_file launch_file_of(void *context, uint32_t slot);

/* Finds it in a stack.  Returns false when the stack does not begin in the driver or the runtime,
 * or nothing is known behind them. */
bool launch_site_find(const struct dict_stack *stack, launch_file_of *file_of, void *context,
		      struct launch_site *ret_site);

#endif
