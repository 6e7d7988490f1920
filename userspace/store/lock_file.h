/* SPDX-License-Identifier: BSD-2-Clause */
/* A lock file: flock() is the lock, and the pid in the file is for a person who finds it. */
#ifndef STORE_LOCK_FILE_H
#define STORE_LOCK_FILE_H

#include <sys/types.h>

/* Creates the file (mode 0640) when it does not exist, and locks it; never follows a symbolic link.
 * Returns 0 and a descriptor whose closing unlocks; -EBUSY: another process holds the lock;
 * -errno. */
int lock_file_take(int dir_fd, const char *name, int *ret_fd);
/* Removes the file, then unlocks it.  fd may be -1. */
void lock_file_remove(int dir_fd, const char *name, int fd);

#endif
