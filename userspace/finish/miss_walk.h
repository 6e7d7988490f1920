/* SPDX-License-Identifier: BSD-2-Clause */
/* Walks a stack that the kernel side could not finish on to its root, from the registers and the copy of the
 * stack that came with it, and loads its code's rows for the next time.  Stacks of threads that sleep
 * (sweep_walk.c) come the same way, nothing walked yet. */
#ifndef FINISH_MISS_WALK_H
#define FINISH_MISS_WALK_H

#include "drain/decode.h"
#include "finish/finisher.h"

/* *ret_record: owned by the caller, its hash set; at most STITCH_STACK_FRAMES frames.  process: NULL: only
 * what was walked before.  0; -ENOMEM. */
int miss_walk(const struct finisher *finisher, struct process *process,
	      const struct decoded_miss *miss, struct pp_stack_record **ret_record);
/* Puts it into the dictionary.  0; -ENOSPC; -ENOMEM. */
int miss_describe(struct dictionary *dictionary, const struct pp_stack_record *record);

#endif
