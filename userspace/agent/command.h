/* SPDX-License-Identifier: BSD-2-Clause */
/* `-- COMMAND…`: starts a command that waits before its first instruction, so that its process is
 * known before it runs. */
#ifndef AGENT_COMMAND_H
#define AGENT_COMMAND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/types.h>

#include "base/cleanup.h"

/* The user that the command runs as: who called sudo, not root.  The environment becomes what it
 * was before sudo, as far as that is known: HOME, USER, LOGNAME and SHELL; PATH stays sudo's. */
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

struct command; /* all functions accept NULL: there is none */

/* What pyprofd has for itself, and its command must not inherit. */
struct command_setting {
	int nice;
	struct rlimit files, locked_memory;
	void (*on_usr1)(int); /* the handler of SIGUSR1, which pyprofd's children ignore */
	const struct command_user *user; /* borrowed by command_start(); NULL: pyprofd's own */
};

/* Forks a child that waits for command_release() and then runs argv with that setting.  Returns 0
 * or -errno. */
int command_start(char *const *argv, const struct command_setting *setting,
		  struct command **ret_command, uint32_t *ret_pid);
void command_release(struct command *command);
/* Sends the command a signal. */
void command_signal(const struct command *command, int signal);
/* Reaps the command.  Returns true when it has ended: the status is its exit code, or 128 +
 * signal. */
bool command_has_ended(struct command *command, int *ret_status);
/* Returns its process; 0: it was reaped. */
pid_t command_pid(const struct command *command);
bool command_is_running(const struct command *command);
/* Ends a command that still waits for its release.  One that runs goes on. */
void command_free(struct command *command);

#endif
