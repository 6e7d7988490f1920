/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/sudo_user.h"

#include <errno.h>
#include <grp.h>
#include <limits.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

#define GROUPS_FIRST 64

/* Parses a decimal id.  The largest 32-bit number means "no id" to chown(2) and setuid(2). */
static int parse_id(const char *text, uint32_t *ret_id)
{
	unsigned long long id;
	char *end;

	if (!text || *text < '0' || *text > '9')
		return -EINVAL;
	errno = 0;
	id = strtoull(text, &end, 10);
	if (*end || errno || id >= UINT32_MAX)
		return -EINVAL;
	*ret_id = (uint32_t)id;
	return 0;
}

int sudo_user_ids(uid_t *ret_uid, gid_t *ret_gid)
{
	const char *uid_text = getenv("SUDO_UID"), *gid_text = getenv("SUDO_GID");
	uint32_t uid, gid;

	if (!uid_text && !gid_text)
		return -ENOENT;
	if (parse_id(uid_text, &uid) || parse_id(gid_text, &gid))
		return -EINVAL;
	*ret_uid = uid;
	*ret_gid = gid;
	return 0;
}

int user_groups(const char *name, gid_t gid, gid_t **ret_group, size_t *ret_count)
{
	OWNED_MEM gid_t *group = NULL;
	int count = GROUPS_FIRST, room;

	do {
		gid_t *larger = reallocarray(group, (size_t)count, sizeof(*group));

		if (!larger)
			return -ENOMEM;
		group = larger;
		room = count;
		if (!name) {
			group[0] = gid;
			count = 1;
			break;
		}
	} while (getgrouplist(name, gid, group, &count) < 0 && count > room &&
		 count <= NGROUPS_MAX);
	if (count < 0 || count > room)
		return -E2BIG;
	*ret_count = (size_t)count;
	*ret_group = TAKE(group);
	return 0;
}
