/* SPDX-License-Identifier: BSD-2-Clause */
/* Lets root access files as somebody else (setfsuid(2)): in a directory of another user root then
 * makes files that belong to that user, and can do no more there than that user could. */
#ifndef BASE_FS_USER_H
#define BASE_FS_USER_H

#include <stdbool.h>
#include <sys/types.h>

/* What the calling thread had before. */
struct fs_user {
	uid_t uid;
	gid_t gid;
	bool is_changed;
};
/* Changes the calling thread's user and group for files.  Nothing changes for a caller who is not
 * root, or has no capability to. */
struct fs_user fs_user_become(uid_t uid, gid_t gid);
void fs_user_return(struct fs_user *before);

#endif
