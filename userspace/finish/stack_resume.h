/* SPDX-License-Identifier: BSD-2-Clause */
/* Below an activation of the eval loop lies code without unwind information (JIT code, assembler), and
 * the walk is stuck in it.  The activation's frame holds a mark of known address: its bounds are
 * looked for around it. */
#ifndef FINISH_STACK_RESUME_H
#define FINISH_STACK_RESUME_H

#include <pyprofd/python.h>

#include "finish/stack_finish.h"

/* Finds a call in `file` whose frame, by its rule, holds `mark`, and from which on the stack can be
 * unwound to its root.  sp: of the frame where the walk is stuck.  callbacks->frame is not called.
 * Returns 0: ret_resync has the distances (agreed, asked: 0); -ENOENT. */
int stack_resume_find(const struct finish_callbacks *callbacks, uint32_t file, uint64_t sp,
		      uint64_t mark, struct pp_resync *ret_resync);

/* The caller of the activation with this mark.  0; -EFAULT. */
int stack_resume_at(const struct finish_callbacks *callbacks, const struct pp_resync *resync,
		    uint64_t mark, struct finish_state *state);

#endif
