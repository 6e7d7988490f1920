/* SPDX-License-Identifier: BSD-2-Clause */
/* Opens files whose names others have chosen, in whatever root directory.  To open a device can do things, to
 * open a FIFO can wait, and a link leads anywhere: so each file is looked at first (O_PATH), and then that
 * very inode is opened. */
#ifndef BASE_ROOT_FILE_H
#define BASE_ROOT_FILE_H

#include <stdint.h>

/* How a name is looked up below root ("/" or "/proc/PID/root"); plain open() would follow a container's
 * absolute links into the host. */
enum root_file_links {
	ROOT_FILE_LINKS,    /* symbolic links lead to files below root */
	ROOT_FILE_NO_LINKS, /* none on the whole way: -ELOOP */
};
/* *ret_path_fd: O_PATH | O_CLOEXEC, the caller's.  0; -EINVAL: not a regular file; -errno. */
int root_file_look(const char *root, const char *path, enum root_file_links links, int *ret_path_fd);
/* Opens for reading what an O_PATH descriptor is of; never waits.  0; -EINVAL: not a regular file; -ESTALE:
 * another one (never seen); -errno. */
int root_file_open_seen(int path_fd, int *ret_fd);
/* Both, with links. */
int root_file_open(const char *root, const char *path, int *ret_fd);

#endif
