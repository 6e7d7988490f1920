/* SPDX-License-Identifier: BSD-2-Clause */
/* The socket where clients connect. */
#ifndef SERVE_LISTEN_H
#define SERVE_LISTEN_H

#include <sys/types.h>

#include "config/config.h"
#include "live/listener.h"

/* Removes the path of a unix socket when the server ends, however that ends.  The server itself may
 * not: Landlock leaves it no file to remove, and a right to remove this one would be one to remove
 * all that lies beside it, in /run for instance.  So a process of its own, that waits for the
 * server's end and holds no capability, does it. */

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

/* Binds the address and listens, without waiting in accept(2).  A unix socket may be connected to
 * by everybody: what a client sees is decided by who it is; its path is removed by the keeper,
 * which is started where there is one to remove.  Returns 0; -EADDRINUSE; -EEXIST: the path is no
 * socket; -errno. */
int listen_at(const struct config_address *address, int *ret_fd, struct socket_keeper *ret_keeper);

#endif
