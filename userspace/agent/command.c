/* SPDX-License-Identifier: BSD-2-Clause */
#include "agent/command.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "agent/command_user.h"
#include "base/cleanup.h"
#include "child/spawn.h"

struct command {
	pid_t pid; /* 0: reaped */
	int gate;  /* write end; closing it without a byte means "never mind" */
};

/* What the child needs of ours. */
struct beginning {
	const char *name;
	const struct command_setting *setting;
	int gate[2];
};

static int prepare(void *context)
{
	const struct beginning *beginning = context;
	const struct command_setting *setting = beginning->setting;
	char go;

	close(beginning->gate[1]);
	if (read(beginning->gate[0], &go, 1) != 1)
		_exit(CHILD_EXIT_NOT_RUN);
	signal(SIGUSR1, setting->on_usr1);
	(void)setpriority(PRIO_PROCESS, 0, setting->nice);
	(void)setrlimit(RLIMIT_NOFILE, &setting->files);
	(void)setrlimit(RLIMIT_MEMLOCK, &setting->locked_memory);
	return setting->user ? command_user_become(setting->user) : 0;
}

static void tell(void *context, int err)
{
	const struct beginning *beginning = context;
	const struct command_user *user = beginning->setting->user;

	if (user)
		fprintf(stderr,
			"pyprofd: cannot run '%s' as user %u, who called sudo (capture.as-root=yes "
			"runs it "
			"as root): %s\n",
			beginning->name, user->uid, strerror(-err));
	else
		fprintf(stderr, "pyprofd: cannot run '%s': %s\n", beginning->name, strerror(-err));
}

int command_start(char *const *argv, const struct command_setting *setting,
		  struct command **ret_command, uint32_t *ret_pid)
{
	struct beginning beginning = {.name = argv[0], .setting = setting};
	const struct child_start start = {.program = argv[0],
					  .argv = argv,
					  .prepare = prepare,
					  .tell = tell,
					  .context = &beginning};
	OWNED_MEM struct command *command = calloc(1, sizeof(*command));
	int err;

	if (!command)
		return -ENOMEM;
	if (pipe2(beginning.gate, O_CLOEXEC))
		return -errno;
	err = child_spawn(CHILD_COMMAND, &start, &command->pid);
	close(beginning.gate[0]);
	command->gate = beginning.gate[1];
	if (err) {
		close(command->gate);
		return err;
	}
	*ret_pid = (uint32_t)command->pid;
	*ret_command = TAKE(command);
	return 0;
}

void command_release(struct command *command)
{
	if (!command)
		return;
	(void)!write(command->gate, "", 1);
	close_owned_fd(&command->gate);
	command->gate = -1;
}

void command_signal(const struct command *command, int signal)
{
	if (command && command->pid > 0)
		kill(command->pid, signal);
}

bool command_has_ended(struct command *command, int *ret_status)
{
	int status;

	if (!command || !command->pid || waitpid(command->pid, &status, WNOHANG) != command->pid)
		return false;
	command->pid = 0;
	*ret_status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
	return true;
}

pid_t command_pid(const struct command *command)
{
	return command ? command->pid : 0;
}

bool command_is_running(const struct command *command)
{
	return command && command->pid > 0;
}

void command_free(struct command *command)
{
	if (!command)
		return;
	close_owned_fd(&command->gate);
	free(command);
}
