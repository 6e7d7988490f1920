/* SPDX-License-Identifier: BSD-2-Clause */
/* Opens files whose names were chosen by others, below any root directory. Opening a device can
 * have side effects, opening a FIFO can block, and a link can lead anywhere. So each file is first
 * looked at (O_PATH), and then that same inode is opened. */
#ifndef BASE_ROOT_FILE_H
#define BASE_ROOT_FILE_H

#include <stdint.h>

/* How links are followed below root ("/" or "/proc/PID/root"). A plain open() would follow a
 * container's absolute links into the host. */
enum root_file_links {
	ROOT_FILE_LINKS,    /* symbolic links are resolved below root */
	ROOT_FILE_NO_LINKS, /* a link anywhere on the path is -ELOOP */
};
/* Looks a file up without opening it. *ret_path_fd is O_PATH | O_CLOEXEC and belongs to the caller.
 * Returns 0; -EINVAL when it is not a regular file; -errno. */
int root_file_look(const char *root, const char *path, enum root_file_links links,
		   int *ret_path_fd);
/* Opens for reading the file that an O_PATH descriptor refers to; never blocks. Returns 0; -EINVAL
 * when it is not a regular file; -ESTALE when another file was opened (never seen); -errno. */
int root_file_open_seen(int path_fd, int *ret_fd);
/* root_file_look() with links allowed, then root_file_open_seen(). */
int root_file_open(const char *root, const char *path, int *ret_fd);

#endif
