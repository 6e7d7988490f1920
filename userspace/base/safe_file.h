/* SPDX-License-Identifier: BSD-2-Clause */
/* Opens files whose names others chose or could take before, and tells who called this program
 * through sudo, which leaves that user's ids in the environment. */
#ifndef BASE_SAFE_FILE_H
#define BASE_SAFE_FILE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* ---- files to write, where other users may have put something before: a FIFO, whose reader would
 * get all that is written, a link, or a file of theirs ---- */

/* What may be at the path. */
enum safe_file_kinds {
	SAFE_FILE_REGULAR, /* nothing, or a regular file; a link is -ELOOP */
	SAFE_FILE_OUTPUT,  /* also a link to one, a device (/dev/null) or a name of an open
			    * descriptor (/dev/stdout), which may be a pipe */
};
/* Opens a file and creates it when it does not exist; nothing is truncated yet, nothing blocks.
 * Returns 0; -EINVAL: it is a FIFO, a socket, or for SAFE_FILE_REGULAR any other kind; -EEXIST: a
 * file or link of another user, who is not the one behind sudo, in a directory where each deletes
 * only his own (the sticky bit, as in /tmp); -errno. */
int safe_file_open(const char *path, enum safe_file_kinds kinds, mode_t mode, int *ret_fd);

/* Returns the open descriptor that "-", /dev/stdout, /dev/fd/N and similar names mean: opening the
 * name again would lose its offset, and renaming over it would replace the name for everyone.
 * -ENOENT: it is not such a name. */
int named_descriptor(const char *path);

/* ---- files to read, below any root directory.  Opening a device can have side effects, opening a
 * FIFO can block, and a link can lead anywhere.  So each file is first looked at (O_PATH), and then
 * that same inode is opened. ---- */

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

/* ---- users ---- */

/* Reads SUDO_UID and SUDO_GID.  Returns 0; -ENOENT when neither is set; -EINVAL when they are not
 * two user and group ids. */
int sudo_user_ids(uid_t *ret_uid, gid_t *ret_gid);
/* Reads the groups that a user has at login.  A name of NULL stands for a user without an entry,
 * who has `gid` alone.  The caller frees *ret_group.  Returns 0; -ENOMEM; -E2BIG: more than the
 * kernel takes. */
int user_groups(const char *name, gid_t gid, gid_t **ret_group, size_t *ret_count);

#endif
