/* SPDX-License-Identifier: BSD-2-Clause */
/* One file by name, written whole or not at all, and the lock file beside it. */
#ifndef STORE_FILE_OUTPUT_H
#define STORE_FILE_OUTPUT_H

#include <stddef.h>
#include <sys/types.h>

/* ---- a lock file ---- */

/* flock() is the lock, and the pid in the file is for a person who finds it. */

/* Creates the file (mode 0640) when it does not exist, and locks it; never follows a symbolic link.
 * Returns 0 and a descriptor whose closing unlocks; -EBUSY: another process holds the lock;
 * -EOWNERDEAD: one that was killed and does not end, as a file system does not answer it;
 * -errno. */
int lock_file_take(int dir_fd, const char *name, int *ret_fd);
/* Removes the file, then unlocks it.  fd may be -1. */
void lock_file_remove(int dir_fd, const char *name, int fd);

/* ---- one file ---- */

/* Writes one file by name, whole or not at all, mode 0640.  owner: uid and gid to give it to, -1:
 * keep; without the right to give it away it stays ours.  Locks PATH.lock while file_output_lock()
 * holds `lock`.  "-", /dev/stdout and /dev/fd/N mean those descriptors; a symbolic link or a FIFO
 * is replaced, because others may have put it there; a device is -EINVAL. */
int file_output_write(const char *path, const void *bytes, size_t size, uid_t uid, gid_t gid);
/* Checks at the start that PATH can be written (its directory exists and is writable, there is
 * nothing but a regular file or a link) and takes a lock against a second instance.  Returns a lock
 * fd in *ret_fd (-1: PATH is a descriptor and needs no lock); -EBUSY; -EISDIR; -EINVAL: a device or
 * FIFO; -errno. */
int file_output_lock(const char *path, int *ret_fd);
/* Removes the lock file and closes the fd (-1: does nothing). */
void file_output_unlock(const char *path, int fd);

#endif
