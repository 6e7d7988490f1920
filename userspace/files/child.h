/* SPDX-License-Identifier: BSD-2-Clause */
/* The child that parses files: whatever their bytes do to it, they do to a process that may do
 * nothing. */
#ifndef FILES_CHILD_H
#define FILES_CHILD_H

/* Answers requests from CHILD_SOCKET_FD until the agent closes it, and ends the process. */
_Noreturn void foreign_child_main(void);

#endif
