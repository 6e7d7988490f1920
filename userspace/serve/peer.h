/* SPDX-License-Identifier: BSD-2-Clause */
/* Asks the kernel whose the other end of a connection is. */
#ifndef SERVE_PEER_H
#define SERVE_PEER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Finds a TCP connection in /proc/self/net/tcp and tcp6 (proc(5)), for kernels that cannot be asked
 * for one alone.  No state. */

/* How much of the table is read, 28,000 sockets of IPv4: beyond it a socket is not found. */
#define SOCKET_TABLE_MAX_BYTES (4U << 20)
#define SOCKET_TABLE_LINE_BYTES 512U

struct socket_end {
	uint32_t address[4]; /* in the network's order; of IPv4 the first alone, the others are 0 */
	uint16_t port;	     /* in the host's order */
};
struct socket_row {
	struct socket_end own, peer;
	unsigned int state; /* TCP_ESTABLISHED */
	uid_t uid;
	uint64_t inode; /* 0: no program has it open */
};

/* Parses a line, with or without its line feed.  Returns 0; -EBADMSG: it is no socket's, as the
 * first one is not. */
int socket_table_parse(const char *line, size_t size, struct socket_row *ret_row);
/* Reads a table up to the socket with these ends.  Returns 0; -ENOENT: it has none; -EFBIG: none in
 * the first SOCKET_TABLE_MAX_BYTES; -errno. */
int socket_table_find(const char *path, const struct socket_end *own, const struct socket_end *peer,
		      struct socket_row *ret_row);

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
