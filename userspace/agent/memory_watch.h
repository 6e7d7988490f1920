/* SPDX-License-Identifier: BSD-2-Clause */
/* Opens what counts memory that programs touch (attach/memory_side.h).  The kernel verifies its
 * programs for half a second: a run that goes on for long does not begin later for that, and a
 * thread beside the loop opens them.  The loop's thread. */
#ifndef AGENT_MEMORY_WATCH_H
#define AGENT_MEMORY_WATCH_H

#include <stdbool.h>

struct kernel_side;
struct memory_watch;

/* kernel is borrowed.  is_beside: a thread opens it, and a failure is only told.  Returns 0;
 * -ENOMEM; without is_beside also -errno, with a line in the log. */
int memory_watch_new(const struct kernel_side *kernel, bool is_beside,
		     struct memory_watch **ret_watch);
/* Waits for the thread.  NULL is allowed. */
void memory_watch_free(struct memory_watch *watch);
/* Tells when it could not be opened; call it now and then.  NULL is allowed. */
void memory_watch_tick(struct memory_watch *watch);

#endif
