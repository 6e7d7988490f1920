/* SPDX-License-Identifier: BSD-2-Clause */
/* Where a user's stacks were more than his share of a profile (docs/design/shares.md), samples have
 * lost the labels that say what was called: the exact totals say it. */
#ifndef READER_GPU_LEFT_OUT_H
#define READER_GPU_LEFT_OUT_H

#include "reader/gpu_calls.h"

/* Of processes with samples that do not say what was called: adds what the totals have and no
 * sample does, as calls of "[stack left out]".  Returns 0 or -ENOMEM. */
int gpu_add_left_out(struct gpu_table *table);

#endif
