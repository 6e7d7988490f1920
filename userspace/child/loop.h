/* SPDX-License-Identifier: BSD-2-Clause */
/* What the agent's children have in common: each is this program, started again, and answers
 * requests from CHILD_SOCKET_FD until the agent closes it. */
#ifndef CHILD_LOOP_H
#define CHILD_LOOP_H

#include <stdbool.h>

#include "child/worker.h"

/* Sends a reply, with a descriptor unless it is -1. Returns false when the agent has gone. */
bool child_answer(const struct child_reply *reply, int fd);
/* Begins as that child, says hello, answers requests, and ends the process: what libraries do at an
 * exit needs more system calls than the child has.  serve() receives one request and answers it; it
 * returns false when the agent has gone, or the request is none.  Exit status 1: there is no
 * sandbox. */
_Noreturn void child_run(enum child_kind kind, bool (*serve)(void *context), void *context);

#endif
