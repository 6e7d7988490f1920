/* SPDX-License-Identifier: BSD-2-Clause */
/* The user that `-- COMMAND` runs as: who called sudo, not root.  The environment becomes what it
 * was before sudo, as far as that is known: HOME, USER, LOGNAME and SHELL; PATH stays sudo's. */
#ifndef AGENT_COMMAND_USER_H
#define AGENT_COMMAND_USER_H

#include <stddef.h>
#include <sys/types.h>

#include "base/cleanup.h"

struct command_user {
	uid_t uid;
	gid_t gid;
	gid_t *group; /* owned; supplementary */
	size_t group_count;
	char *name, *home, *shell; /* owned; all NULL: the user has no entry */
};

/* Finds who called sudo.  Sets NULL when the command runs as pyprofd does: without sudo, when root
 * called it, and when pyprofd is not root.  Returns 0; -EINVAL when SUDO_UID and SUDO_GID are not
 * ids; -ENOMEM; -errno of the user database. */
int command_user_find(struct command_user **ret_user);
void command_user_free(struct command_user *user);
DEFINE_OWNED(struct command_user, command_user)

/* Turns the calling process, a child that is about to exec, into that user for good: ids, groups
 * and environment.  Returns 0 or -errno; the process must not go on after an error. */
int command_user_become(const struct command_user *user);

#endif
