/* SPDX-License-Identifier: BSD-2-Clause */
/* The stacks of all threads of some processes, now: a sweep of its own for those that sleep, the
 * interpreter's own list for those that run; then the records of a reply (live/record.h). */
#ifndef AGENT_DUMP_H
#define AGENT_DUMP_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/cleanup.h"
#include "live/request.h"

struct agent;
struct dump;

/* Of what that user may see.  0; -ENOTSUP: the kernel side was opened without `waits`; -errno. */
int dump_new(struct agent *agent, uid_t uid, const struct live_request *request,
	     struct dump **ret_dump);
void dump_free(struct dump *dump);
DEFINE_OWNED(struct dump, dump)

/* Goes on for about budget_ns, and at least by one process.  1: there is more to do; 0: done; -errno. */
int dump_step(struct dump *dump, uint64_t budget_ns);
/* Once it is done: heap.  0; -ENOMEM. */
int dump_take(struct dump *dump, char **ret_text, size_t *ret_size);
/* As sweep_refresh(). */
void dump_refresh(struct dump *dump);

#endif
