/* SPDX-License-Identifier: BSD-2-Clause */
/* Opens the file behind a mapping: of any container, deleted or replaced since.  Only regular files
 * are ever opened; names are looked up inside the process's own root.
 * Needs CAP_CHECKPOINT_RESTORE for /proc/PID/map_files, CAP_SYS_PTRACE for /proc/PID/root. */
#ifndef DISCOVER_FILE_OPEN_H
#define DISCOVER_FILE_OPEN_H

#include "discover/process.h"

/* Tries /proc/TGID/map_files, then the path in the process's root, then the path in our own (maps of
 * a chroot'ed process show it so).  A known inode must be that of the file.
 * *ret_fd is O_RDONLY | O_CLOEXEC, the caller's.
 * Returns 0; -ENOENT: no such file any more, or anonymous; -ESTALE: another file is there now;
 * -EINVAL: not a regular file; -ESRCH; -EACCES and other -errno. */
int file_open(uint32_t tgid, const struct mapping *mapping, int *ret_fd);

/* Device, inode and, where the file system tells, generation of an open file.
 * The device may differ from what mappings show (overlayfs, btrfs).  Returns 0 or -errno. */
int file_key_from_fd(int fd, struct file_key *ret_key);

/* Whether an open file's key can be that of a mapping's.  Across devices that differ (overlayfs and
 * btrfs show mappings under another one) the inode's low 48 bits are compared: overlayfs numbers its
 * layers above. */
bool file_key_is_of_mapping(const struct file_key *file, const struct file_key *mapping);

#endif
