/* SPDX-License-Identifier: BSD-2-Clause */
/* A listening socket with a path. */
#ifndef LIVE_LISTENER_H
#define LIVE_LISTENER_H

#include <sys/socket.h>
#include <sys/types.h>
#include <sys/un.h>

/* Release with live_listener_close(). */
struct live_listener {
	int fd; /* -1: closed */
	struct sockaddr_un address;
	dev_t device;
	ino_t inode; /* of the path; 0: nothing to remove */
};

/* Binds the path, with these permissions; a socket that nobody serves any more is replaced.
 * Creates the socket's directory when only that is missing.  Returns 0; -EADDRINUSE: somebody
 * serves it; -EEXIST: it is no socket; -ENAMETOOLONG; -errno. */
int live_listener_open(const char *path, mode_t mode, struct live_listener *ret_listener);
/* Closes the socket and removes the path, if it is still this one's. */
void live_listener_close(struct live_listener *listener);

#endif
