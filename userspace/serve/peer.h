/* SPDX-License-Identifier: BSD-2-Clause */
/* Asks the kernel whose the other end of a connection is. */
#ifndef SERVE_PEER_H
#define SERVE_PEER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* What the kernel says of a socket. */
struct socket_owner {
	bool is_open; /* connected, and a program has it open: a closed one is shown as uid 0's */
	uid_t uid;
};

/* How much of the table is read, 28,000 sockets of IPv4: beyond it a socket is not found. */
#define SOCKET_TABLE_MAX_BYTES (4U << 20)
#define SOCKET_ENDS_CHARS 80U

/* Finds a TCP connection in /proc/self/net/tcp or tcp6 (proc(5)), for kernels that cannot be asked
 * for one alone.  ends: its own address and its peer's as they stand there, with the blank before
 * each.  Returns 0; -ENOENT: it has none; -EBADMSG: it is no such table; -EFBIG: none in the first
 * SOCKET_TABLE_MAX_BYTES; -errno. */
int socket_table_find(const char *path, const char *ends, struct socket_owner *ret_owner);

/* Where TCP connections are looked up. */
enum peer_source {
	PEER_SOCK_DIAG, /* the kernel is asked for one: sock_diag(7) */
	PEER_PROC,	/* all of them are read: socket_table_find() */
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
