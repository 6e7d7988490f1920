/* SPDX-License-Identifier: BSD-2-Clause */
/* Asks the kernel whose the other end of a connection is. */
#ifndef SERVE_PEER_H
#define SERVE_PEER_H

#include <sys/types.h>

/* Where TCP connections are looked up. */
enum peer_source {
	PEER_SOCK_DIAG, /* the kernel is asked for one: sock_diag(7) */
	PEER_PROC,	/* all of them are read (socket_table.h) */
};

/* Finds out whether sock_diag knows TCP, by asking for a socket of our own: the module tcp_diag may
 * be missing, or a filter of system calls may be in its way. */
enum peer_source peer_find_source(void);

/* Finds the user at the other end of a connected socket: of a unix socket by SO_PEERCRED, of TCP on
 * loopback from the kernel's table of sockets.  Returns 0; -EREMOTE: the other end is not on this
 * machine; -ENOTCONN: it has closed, and nobody owns it any more; -EFBIG with PEER_PROC: there are
 * too many sockets; -errno. */
int peer_uid(int fd, enum peer_source source, uid_t *ret_uid);

#endif
