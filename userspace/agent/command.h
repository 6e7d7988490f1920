/* SPDX-License-Identifier: BSD-2-Clause */
/* `-- COMMAND…`: started stopped before its first instruction, so that it is known before it runs. */
#ifndef AGENT_COMMAND_H
#define AGENT_COMMAND_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/resource.h>

struct command; /* NULL stands for "none" in all functions */

/* What pyprofd changed of itself and its command is not to inherit. */
struct command_setting {
	int nice;
	struct rlimit files, locked_memory;
};

/* Forks; the child waits for command_release() and then runs argv with that setting.  0 or -errno. */
int command_start(char *const *argv, const struct command_setting *setting,
		  struct command **ret_command, uint32_t *ret_pid);
void command_release(struct command *command);
/* Passes a signal on. */
void command_signal(const struct command *command, int signal);
/* Reaps it; true when it has ended: the status is its exit code, or 128 + signal. */
bool command_has_ended(struct command *command, int *ret_status);
bool command_is_running(const struct command *command);
/* Ends it when it still waits for its release, and waits for its end otherwise not at all. */
void command_free(struct command *command);

#endif
