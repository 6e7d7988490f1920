/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads the stacks that all threads of some processes have now, and writes a reply (live/record.h).
 * Threads that sleep are found by a scan of its own, running ones through the interpreter's list
 * of threads. */
#ifndef AGENT_DUMP_H
#define AGENT_DUMP_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/cleanup.h"
#include "live/request.h"

struct dump;
struct finisher;
struct naming;
struct thread_names;

/* All is borrowed; the finisher has the tables of processes and stacks. */
struct dump_sources {
	const struct finisher *finisher;
	struct naming *naming;
	struct thread_names *thread_names;
};
/* Begins a dump of what that user may see.  The sources are borrowed.  Returns 0; -ENOTSUP: the
 * kernel side was opened without `waits`; -errno. */
int dump_new(const struct dump_sources *sources, uid_t uid, const struct live_request *request,
	     struct dump **ret_dump);
void dump_free(struct dump *dump);
DEFINE_OWNED(struct dump, dump)

/* Continues for about budget_ns, and by one thread at least.  Returns 1: there is more to do; 0:
 * done; -errno. */
int dump_step(struct dump *dump, uint64_t budget_ns);
/* Takes the reply of a dump that is done; *ret_text is heap.  Returns 0 or -ENOMEM. */
int dump_take(struct dump *dump, char **ret_text, size_t *ret_size);
/* Call it when scan_refresh() is called: the dump has a scan, stacks and names of its own. */
void dump_refresh(struct dump *dump);

#endif
