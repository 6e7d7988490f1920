/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/fs_user.h"

#include <sys/fsuid.h>
#include <unistd.h>

struct fs_user fs_user_become(uid_t uid, gid_t gid)
{
	struct fs_user before = {.is_changed = !geteuid() && uid};

	if (!before.is_changed)
		return before;
	before.gid = (gid_t)setfsgid(gid);
	before.uid = (uid_t)setfsuid(uid);
	return before;
}

void fs_user_return(struct fs_user *before)
{
	if (!before->is_changed)
		return;
	setfsuid(before->uid);
	setfsgid(before->gid);
}
