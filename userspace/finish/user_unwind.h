/* SPDX-License-Identifier: BSD-2-Clause */
/* Unwinds an incomplete stack to its root, from the registers and the copy of the stack in its
 * record, and loads the unwind rows of its code so that the kernel side can unwind it next time.
 * Stacks of blocked threads (scan_walk.c) come here too, with no frame walked yet. */
#ifndef FINISH_USER_UNWIND_H
#define FINISH_USER_UNWIND_H

#include "drain/decode.h"
#include "finish/finisher.h"

/* Completes one stack of at most STITCH_STACK_FRAMES frames and sets its hash; the caller owns
 * *ret_record.  Without a process (NULL) the stack keeps the kernel side's frames only.  Returns 0;
 * -ENOMEM. */
int user_unwind(const struct finisher *finisher, struct process *process,
		const struct decoded_incomplete *incomplete, struct pp_stack_record **ret_record);
/* Makes a stack of the kernel side's frames alone, which ends with PP_STOP_LEFT_OUT, and sets its
 * hash; the caller owns *ret_record.  Returns 0; -ENOMEM. */
int user_unwind_leave_out(const struct finisher *finisher,
			  const struct decoded_incomplete *incomplete,
			  struct pp_stack_record **ret_record);
/* Adds the stack to the dictionary.  Returns 0; -ENOSPC; -ENOMEM. */
int user_unwind_describe(struct dictionary *dictionary, const struct pp_stack_record *record);

#endif
