/* SPDX-License-Identifier: BSD-2-Clause */
/* Removes the path of a unix socket when the server ends, however that ends.  The server itself may
 * not: Landlock leaves it no file to remove, and a right to remove this one would be one to remove
 * all that lies beside it, in /run for instance.  So a process of its own, that waits for the
 * server's end and holds no capability, does it. */
#ifndef SERVE_SOCKET_KEEPER_H
#define SERVE_SOCKET_KEEPER_H

#include <sys/types.h>

#include "live/listener.h"

/* Release with socket_keeper_end(). */
struct socket_keeper {
	int fd; /* of a pipe; closed: the path goes; -1: there is no keeper */
	pid_t pid;
};
#define SOCKET_KEEPER_NONE {.fd = -1}

/* Starts it for an open listener.  Call it before threads are started.  Returns 0 or -errno. */
int socket_keeper_start(const struct live_listener *listener, struct socket_keeper *ret_keeper);
/* Has the path removed, if it is still this listener's, and waits for that. */
void socket_keeper_end(struct socket_keeper *keeper);

#endif
