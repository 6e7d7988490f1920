/* SPDX-License-Identifier: BSD-2-Clause */
/* The child that opens perf events where the kernel gives them to CAP_SYS_ADMIN alone.  It has that
 * capability and CAP_PERFMON, opens nothing but the kinds of perf/event.h, reads nothing that is
 * foreign, and hands each descriptor to the agent, which has no such capability. */
#ifndef PERF_CHILD_H
#define PERF_CHILD_H

#include <stdbool.h>

#define PERF_ARGV0 "pyprofd-perf" /* the agent's own program under this name is the child */

/* Returns whether this program was started to be a child. */
bool perf_child_is_meant(const char *argv0);
/* Answers requests from PARSER_SOCKET_FD until the agent closes it, and ends the process. */
_Noreturn void perf_child_main(void);

#endif
