/* SPDX-License-Identifier: BSD-2-Clause */
/* One thread of the sweep: from its record and its process's live memory to a stack. */
#ifndef FINISH_SWEEP_WALK_H
#define FINISH_SWEEP_WALK_H

#include <pyprofd/sample.h>
#include <pyprofd/sweep.h>

#include "base/cleanup.h"
#include "finish/sweep.h"

struct process;

/* Buffers, and what is known of processes that have been met. */
struct sweep_walker;
int sweep_walker_new(const struct finisher *finisher, struct sweep_walker **ret_walker);
void sweep_walker_free(struct sweep_walker *walker);
DEFINE_OWNED(struct sweep_walker, sweep_walker)
/* The threads of processes will be listed anew. */
void sweep_walker_forget(struct sweep_walker *walker);

/* Walks the thread's user stack.  Sets ret_swept's flags and wait; *ret_record is owned by the caller, and NULL
 * where there is no user stack.  process: NULL: not known.  Returns 0; -ENOMEM. */
int sweep_walk(struct sweep_walker *walker, const struct pp_sweep_record *thread,
	       struct process *process, struct swept *ret_swept,
	       struct pp_stack_record **ret_record);
/* The Python frames of a thread that runs: by its state, without native ones.  They may be of several
 * moments.  As sweep_walk(); -ENOENT: there is no interpreter that can be read. */
int sweep_walk_state(struct sweep_walker *walker, struct process *process, uint32_t tid,
		     uint64_t thread_state, struct swept *ret_swept,
		     struct pp_stack_record **ret_record);

#endif
