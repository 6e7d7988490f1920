/* SPDX-License-Identifier: BSD-2-Clause */
/* Opens the file behind a mapping, also when it lies in a container or was deleted or replaced
 * meanwhile. Only regular files are ever opened, and names are looked up inside the process's own
 * root.
 * Needs CAP_CHECKPOINT_RESTORE for /proc/PID/map_files, CAP_SYS_PTRACE for /proc/PID/root. */
#ifndef DISCOVER_FILE_OPEN_H
#define DISCOVER_FILE_OPEN_H

#include "discover/process.h"

/* Tries /proc/TGID/map_files, then the path in the process's root, then the path in our own root
 * (the maps of a chroot'ed process show such paths). When the mapping's inode is known, the file
 * must have the same.
 * *ret_fd is O_RDONLY | O_CLOEXEC and belongs to the caller.
 * Returns 0; -ENOENT: the file no longer exists, or the mapping is anonymous; -ESTALE: another file
 * has that name now; -EINVAL: not a regular file; -ESRCH; -EACCES and other -errno. */
int file_open(uint32_t tgid, const struct mapping *mapping, int *ret_fd);

/* Reads device, inode and, where the file system has one, the generation of an open file. The
 * device may differ from the one that mappings show (overlayfs, btrfs). Returns 0 or -errno. */
int file_key_from_fd(int fd, struct file_key *ret_key);

/* Returns whether an open file can be the one that a mapping's key names. overlayfs and btrfs show
 * mappings under another device; across devices we compare the low 48 bits of the inode, because
 * overlayfs puts the number of the layer above these. */
bool file_key_is_of_mapping(const struct file_key *file, const struct file_key *mapping);

#endif
