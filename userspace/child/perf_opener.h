/* SPDX-License-Identifier: BSD-2-Clause */
/* Opens perf events for the agent: by itself where CAP_PERFMON is enough, else through a child that
 * has CAP_SYS_ADMIN (CHILD_EVENTS), so that the agent can give that capability up.  One thread. */
#ifndef CHILD_PERF_OPENER_H
#define CHILD_PERF_OPENER_H

#include <stdbool.h>

#include "base/cleanup.h"
#include "child/perf_event.h"

struct perf_opener;
/* Starts the child, where the number in paranoid_path is above PERF_PARANOID_MAX and the caller has
 * CAP_SYS_ADMIN.  program: what the child is, "/proc/self/exe" for the agent's own.  paranoid_path:
 * PERF_PARANOID_PATH.  Returns 0 or -ENOMEM. */
int perf_opener_new(const char *program, const char *paranoid_path,
		    struct perf_opener **ret_opener);
/* Ends the child. */
void perf_opener_free(struct perf_opener *opener);
DEFINE_OWNED(struct perf_opener, perf_opener)

/* Opens an event as perf_event_open_here() does.  opener NULL: in the calling process.  Besides
 * that -ETIME, -EPIPE, -ETIMEDOUT: the child does not answer.  Under no_new_privs a child that
 * replaces it has only what the agent still has. */
int perf_opener_open(struct perf_opener *opener, const struct perf_event_request *request,
		     int *ret_fd);
/* Returns whether a child opens the events. */
bool perf_opener_has_child(const struct perf_opener *opener);

/* The child: it opens nothing but the kinds of child/perf_event.h, reads nothing foreign, and
 * hands each descriptor to the agent.  Answers requests from CHILD_SOCKET_FD until the agent closes
 * it, and ends the process. */
_Noreturn void perf_child_main(void);

#endif
