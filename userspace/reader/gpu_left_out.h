/* SPDX-License-Identifier: BSD-2-Clause */
/* Joins a table of what processes had the GPU do with the comments' sums (profile/cuda_line.h).
 * Where a user's stacks were more than his share of a profile (docs/design/shares.md), samples
 * have lost the labels that say what was called: the comments say it. */
#ifndef READER_GPU_LEFT_OUT_H
#define READER_GPU_LEFT_OUT_H

#include "profile/cuda_lines.h"
#include "reader/gpu_calls.h"

/* Returns the number of a call's own line, or cuda_lines_count(). */
uint32_t gpu_find_own_line(const struct gpu_table *table, const struct gpu_call *call,
			   const struct cuda_lines *lines);
/* Of processes with samples that do not say what was called: adds what the lines have and no sample
 * does, as calls of "[stack left out]".  line_of: of each call, its own line.  Returns 0 or
 * -ENOMEM. */
int gpu_add_left_out(struct gpu_table *table, const struct cuda_lines *lines,
		     const uint32_t *line_of);

#endif
