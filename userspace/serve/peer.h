/* SPDX-License-Identifier: BSD-2-Clause */
/* Asks the kernel whose the other end of a connection is. */
#ifndef SERVE_PEER_H
#define SERVE_PEER_H

#include <sys/types.h>

/* Finds the user at the other end of a connected socket: of a unix socket by SO_PEERCRED, of TCP on
 * loopback from the kernel's table of sockets (sock_diag(7)).  Returns 0; -EREMOTE: the other end
 * is not on this machine; -ENOTCONN: it has closed, and nobody owns it any more; -errno. */
int peer_uid(int fd, uid_t *ret_uid);

#endif
