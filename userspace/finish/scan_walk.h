/* SPDX-License-Identifier: BSD-2-Clause */
/* Unwinds one scanned thread, from its iterator record and its process's live memory. */
#ifndef FINISH_SCAN_WALK_H
#define FINISH_SCAN_WALK_H

#include <pyprofd/sample.h>
#include <pyprofd/wait.h>

#include "base/cleanup.h"
#include "finish/scan.h"

struct process;

/* Buffers, and the thread lists of processes seen so far. */
struct scan_walker;
int scan_walker_new(const struct finisher *finisher, struct scan_walker **ret_walker);
void scan_walker_free(struct scan_walker *walker);
DEFINE_OWNED(struct scan_walker, scan_walker)
/* Drops the cached thread lists of all processes. */
void scan_walker_forget(struct scan_walker *walker);

/* Unwinds a blocked thread's user stack, and sets ret_scanned's flags and wait.  The caller owns
 * *ret_record, which is NULL when there is no user stack.  `process` is NULL when it is unknown.
 * Returns 0; -ENOMEM. */
int scan_walk(struct scan_walker *walker, const struct pp_scan_record *thread,
	      struct process *process, struct scanned *ret_scanned,
	      struct pp_stack_record **ret_record);
/* Reads only the Python frames of a running thread, from its thread state; they may mix several
 * moments.  Returns as scan_walk(); -ENOENT: the process has no interpreter that can be read. */
int scan_walk_state(struct scan_walker *walker, struct process *process, uint32_t tid,
		    uint64_t thread_state, struct scanned *ret_scanned,
		    struct pp_stack_record **ret_record);

#endif
