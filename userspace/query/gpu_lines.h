/* SPDX-License-Identifier: BSD-2-Clause */
/* Adds up what processes had the GPU do, from the comments of profiles of kind cuda
 * (profile/cuda_line.h), for the processes that are selected. */
#ifndef QUERY_GPU_LINES_H
#define QUERY_GPU_LINES_H

#include <stdbool.h>

#include "profile/cuda_lines.h"
#include "query/select.h"

/* Release with gpu_lines_release().  Begin with {.select = ...}. */
struct gpu_lines {
	const struct select
		*select;	  /* borrowed; its --pid and --comm choose processes; NULL: all */
	struct cuda_lines *lines; /* owned; NULL: there were none */
	/* Some are of more windows than were read, and added up all the same. */
	bool has_around;
};

void gpu_lines_release(struct gpu_lines *lines);
/* Adds a comment; ignores those that are not of it.  Returns 0 or -ENOMEM. */
int gpu_lines_add(struct gpu_lines *lines, const char *comment);
/* Returns whether the lines are of exactly what a profile has that was read with this selection:
 * neither labels nor stacks chose samples, and no line is of more windows. */
bool gpu_lines_are_whole(const struct gpu_lines *lines);

#endif
