/* SPDX-License-Identifier: BSD-2-Clause */
/* What the agent's children have in common: each is this program, started again, and answers
 * requests from PARSER_SOCKET_FD until the agent closes it. */
#ifndef PARSER_CHILD_LOOP_H
#define PARSER_CHILD_LOOP_H

#include <stdbool.h>

#include "parser/protocol.h"
#include "parser/sandbox.h"

struct child {
	const char *name; /* of the process */
	int last_fd; /* what whoever started the agent left open behind it is closed */
	enum parser_sandbox sandbox;
	/* Receives one request and answers it.  Returns false when the agent has gone, or the
	 * request is none. */
	bool (*serve)(void *context);
};

/* Sends a reply, with a descriptor unless it is -1. Returns false when the agent has gone. */
bool child_answer(const struct parser_reply *reply, int fd);
/* Enters the child's sandbox, says hello, serves, and ends the process: what libraries do at an
 * exit needs more system calls than the child has.  Exit status 1: there is no sandbox. */
_Noreturn void child_run(const struct child *child, void *context);

#endif
