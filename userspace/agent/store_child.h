/* SPDX-License-Identifier: BSD-2-Clause */
/* Starts a child that works on a store's directory (merge/child.h, merge/keep_child.h). */
#ifndef AGENT_STORE_CHILD_H
#define AGENT_STORE_CHILD_H

#include <sys/types.h>

/* Starts a program, "/proc/self/exe" for this one, under a name, with the store's directory and one
 * end of a socket as MERGE_STORE_FD and MERGE_SOCKET_FD.  Returns 0 with its pid and the other end;
 * -errno. */
int store_child_start(const char *program, const char *argv0, int store_fd, pid_t *ret_pid,
		      int *ret_socket_fd);

#endif
