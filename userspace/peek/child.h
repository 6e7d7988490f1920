/* SPDX-License-Identifier: BSD-2-Clause */
/* The child that reads other processes' memory and mappings for the agent, so that a page which
 * never comes (of a FUSE file, of userfaultfd), or a lock that is never released because
 * somebody waits for such a page, blocks this process alone. */
#ifndef PEEK_CHILD_H
#define PEEK_CHILD_H

#include "peek/protocol.h"

/* Answers requests from CHILD_SOCKET_FD until the agent closes it, and ends the process. */
_Noreturn void peek_child_main(void);

/* Carries out a sound request into `memory`, PEEK_MEMORY_BYTES. Sets ret_reply's error (0;
 * -EFAULT when part of a piece is not mapped; -ESRCH; -errno) and size, and *ret_fd, which the
 * caller closes; -1: there is none. */
void peek_child_do(const struct peek_request *request, uint8_t *memory,
		   struct child_reply *ret_reply, int *ret_fd);

#endif
