/* SPDX-License-Identifier: BSD-2-Clause */
/* A walk is stuck in code without unwind information (JIT code, assembler) that the eval loop
 * called. The frame of that eval activation contains a stack anchor whose address we know, so the
 * frame's bounds are searched for around the anchor and the walk resumes there. */
#ifndef FINISH_STACK_RESUME_H
#define FINISH_STACK_RESUME_H

#include <pyprofd/python.h>

#include "finish/stack_finish.h"

/* Finds a call in `file` whose frame contains `anchor` by its unwind rule and whose callers can be
 * unwound to the root.  `sp` is that of the frame where the walk is stuck; callbacks->frame is not
 * called.  Returns 0 and the distances from anchor to CFA and frame pointer (agreed and asked are
 * 0); -ENOENT. */
int stack_resume_find(const struct finish_callbacks *callbacks, uint32_t file, uint64_t sp,
		      uint64_t anchor, struct pp_resync *ret_resync);

/* Sets *state to the caller of the activation that contains the anchor.  Returns 0; -EFAULT: its
 * frame cannot be read, or lies above state->sp; *state is unchanged. */
int stack_resume_at(const struct finish_callbacks *callbacks, const struct pp_resync *resync,
		    uint64_t anchor, struct finish_state *state);

#endif
