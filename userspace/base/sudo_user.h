/* SPDX-License-Identifier: BSD-2-Clause */
/* Tells who called this program through sudo, which leaves that user's ids in the environment, and
 * which groups that user has. */
#ifndef BASE_SUDO_USER_H
#define BASE_SUDO_USER_H

#include <sys/types.h>

/* Reads SUDO_UID and SUDO_GID.  Returns 0; -ENOENT when neither is set; -EINVAL when they are not
 * two user and group ids. */
int sudo_user_ids(uid_t *ret_uid, gid_t *ret_gid);
/* Reads the groups that a user has at login.  A name of NULL stands for a user without an entry,
 * who has `gid` alone.  The caller frees *ret_group.  Returns 0; -ENOMEM; -E2BIG: more than the
 * kernel takes. */
int user_groups(const char *name, gid_t gid, gid_t **ret_group, size_t *ret_count);

#endif
