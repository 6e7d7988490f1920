/* SPDX-License-Identifier: BSD-2-Clause */
#include "agent/command_user.h"

#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <string.h>

#include "base/sudo_user.h"

#define ENTRY_MAX_BYTES (1U << 20) /* of the user database; glibc hints at 1 KiB */

/* Reads the user's entry.  Returns 0, also when there is none; -ENOMEM, -errno. */
static int read_entry(struct command_user *user)
{
	OWNED_MEM char *buffer = NULL;
	struct passwd entry, *found = NULL;
	int err = ERANGE;

	for (size_t size = 1024; err == ERANGE && size <= ENTRY_MAX_BYTES; size *= 4) {
		free(buffer);
		buffer = malloc(size);
		if (!buffer)
			return -ENOMEM;
		err = getpwuid_r(user->uid, &entry, buffer, size, &found);
	}
	if (err)
		return -err;
	if (!found)
		return 0;
	user->name = strdup(entry.pw_name);
	user->home = strdup(entry.pw_dir);
	user->shell = strdup(entry.pw_shell);
	return user->name && user->home && user->shell ? 0 : -ENOMEM;
}

int command_user_find(struct command_user **ret_user)
{
	OWNED(command_user) struct command_user *user = NULL;
	uid_t uid;
	gid_t gid;
	int err = geteuid() ? -ENOENT : sudo_user_ids(&uid, &gid);

	if (err == -ENOENT || (!err && !uid)) {
		*ret_user = NULL;
		return 0;
	}
	if (err)
		return err;
	user = calloc(1, sizeof(*user));
	if (!user)
		return -ENOMEM;
	user->uid = uid;
	user->gid = gid;
	err = read_entry(user);
	if (!err)
		err = user_groups(user->name, gid, &user->group, &user->group_count);
	if (!err)
		*ret_user = TAKE(user);
	return err;
}

void command_user_free(struct command_user *user)
{
	if (!user)
		return;
	free(user->group);
	free(user->name);
	free(user->home);
	free(user->shell);
	free(user);
}

static int set_variable(const char *name, const char *value)
{
	return (value ? setenv(name, value, 1) : unsetenv(name)) ? -errno : 0;
}

static int set_environment(const struct command_user *user)
{
	const struct {
		const char *name, *value; /* NULL: not set */
	} variable[] = {
		{"HOME", user->home ?: "/"}, {"USER", user->name},   {"LOGNAME", user->name},
		{"SHELL", user->shell},	     {"MAIL", NULL},	     {"SUDO_UID", NULL},
		{"SUDO_GID", NULL},	     {"SUDO_USER", NULL},    {"SUDO_COMMAND", NULL},
		{"SUDO_HOME", NULL},
	};
	int err = 0;

	for (size_t i = 0; i < ARRAY_SIZE(variable) && !err; i++)
		err = set_variable(variable[i].name, variable[i].value);
	return err;
}

int command_user_become(const struct command_user *user)
{
	uid_t real, effective, saved;

	/* The user's last: without root's id the others cannot be changed. */
	if (setgroups(user->group_count, user->group) ||
	    setresgid(user->gid, user->gid, user->gid) ||
	    setresuid(user->uid, user->uid, user->uid))
		return -errno;
	if (getresuid(&real, &effective, &saved) || real != user->uid || effective != user->uid ||
	    saved != user->uid)
		return -EPERM;
	return set_environment(user);
}
