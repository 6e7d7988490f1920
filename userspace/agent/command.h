/* SPDX-License-Identifier: BSD-2-Clause */
/* `-- COMMAND…`: starts a command that waits before its first instruction, so that its process is
 * known before it runs. */
#ifndef AGENT_COMMAND_H
#define AGENT_COMMAND_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/types.h>

struct command_user;
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
