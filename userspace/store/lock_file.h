/* SPDX-License-Identifier: BSD-2-Clause */
/* A lock file: flock() decides, the pid inside only names the holder in a message. */
#ifndef STORE_LOCK_FILE_H
#define STORE_LOCK_FILE_H

#include <sys/types.h>

/* Creates the file (mode 0640) when it is not there; never follows a symbolic link.
 * Returns 0 and a descriptor whose closing unlocks; -EBUSY: someone else holds it; -errno. */
int lock_file_take(int dir_fd, const char *name, int *ret_fd);
/* Returns 0; -ENODATA: no pid in it; -errno. */
int lock_file_owner(int dir_fd, const char *name, pid_t *ret_pid);
/* Removes the file, then unlocks it.  fd -1 is fine. */
void lock_file_remove(int dir_fd, const char *name, int fd);

#endif
