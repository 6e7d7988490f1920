/* SPDX-License-Identifier: BSD-2-Clause */
/* Files of a process that may live in another root directory and may be hostile. */
#ifndef ELF_ROOT_FILE_H
#define ELF_ROOT_FILE_H

/* Opens a regular file read-only, with every symbolic link resolved inside root ("/" or
 * "/proc/PID/root"): plain open() would follow a container's absolute links into the host.
 * Never blocks (a FIFO is refused).  Returns 0; -EINVAL for another kind of file; -errno. */
int root_file_open(const char *root, const char *path, int *ret_fd);

#endif
