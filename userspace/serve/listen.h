/* SPDX-License-Identifier: BSD-2-Clause */
/* The socket where clients connect. */
#ifndef SERVE_LISTEN_H
#define SERVE_LISTEN_H

#include "config/config.h"
#include "serve/socket_keeper.h"

/* Binds the address and listens, without waiting in accept(2).  A unix socket may be connected to
 * by everybody: what a client sees is decided by who it is; its path is removed by the keeper,
 * which is started where there is one to remove.  Returns 0; -EADDRINUSE; -EEXIST: the path is no
 * socket; -errno. */
int listen_at(const struct config_address *address, int *ret_fd, struct socket_keeper *ret_keeper);

#endif
