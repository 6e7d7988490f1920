/* SPDX-License-Identifier: BSD-2-Clause */
/* Tells which files the agent itself may have open: the kernel puts the breakpoints of probes into
 * them in the name of who asks for it, and waits for their pages.  Only for the child that opens
 * files.  No state. */
#ifndef FILES_VOUCH_H
#define FILES_VOUCH_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* Returns whether the kernel alone answers for files of a file system of that type (statfs(2)):
 * neither a program nor a network, nor other file systems below it. */
bool file_system_is_local(uint64_t type);

/* Returns whether the kernel alone answers for an open file: its file system is local; or it is an
 * overlayfs, whose layers are, and which root has mounted: for the task's mount namespace, or for
 * that of process 1, and that belongs to the user namespace of this program. */
bool file_is_vouched_for(int fd, pid_t tid);

/* The same by the name of the type, also for overlayfs: that is root's, where this program sees the
 * mount. */
bool file_system_name_is_local(const char *name);
/* Finds the type of the file system with that device in a text like /proc/PID/mountinfo (proc(5)),
 * of one that has several mounts by the first of them.  Returns whether there is one. */
bool mountinfo_type(const char *text, uint32_t major, uint32_t minor, char *type, size_t size);

/* Finds the line of a text like /proc/PID/mountinfo (proc(5)) with that number, and in it the
 * options of the file system, where the paths of an overlayfs' layers are.  Returns them up to the
 * line's end in *ret_bytes; NULL: there is no such mount. */
const char *mountinfo_options(const char *text, uint32_t mount, size_t *ret_bytes);
/* Copies the path of the first layer from *at on in options of `bytes`, decoded, and moves *at
 * behind it.  Returns whether there is one; too long ones are empty. */
bool mount_options_next_layer(const char *options, size_t bytes, size_t *at, char *path,
			      size_t path_bytes);

#endif
