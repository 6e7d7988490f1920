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

#define EXIT_NOT_FOUND 127
#define EXIT_NOT_RUN 126

struct command {
	pid_t pid; /* 0: reaped */
	int gate;  /* write end; closing it without a byte means "never mind" */
};

static void run_child(char *const *argv, int gate, const struct command_setting *setting)
{
	sigset_t none;
	int err;
	char go;

	if (read(gate, &go, 1) != 1)
		_exit(EXIT_NOT_RUN);
	signal(SIGUSR1, setting->on_usr1);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	(void)setpriority(PRIO_PROCESS, 0, setting->nice);
	(void)setrlimit(RLIMIT_NOFILE, &setting->files);
	(void)setrlimit(RLIMIT_MEMLOCK, &setting->locked_memory);
	err = setting->user ? command_user_become(setting->user) : 0;
	if (!err) {
		execvp(argv[0], argv);
		err = -errno;
	}
	if (setting->user)
		fprintf(stderr,
			"pyprofd: cannot run '%s' as user %u, who called sudo (capture.as-root=yes "
			"runs it "
			"as root): %s\n",
			argv[0], setting->user->uid, strerror(-err));
	else
		fprintf(stderr, "pyprofd: cannot run '%s': %s\n", argv[0], strerror(-err));
	_exit(err == -ENOENT ? EXIT_NOT_FOUND : EXIT_NOT_RUN);
}

int command_start(char *const *argv, const struct command_setting *setting,
		  struct command **ret_command, uint32_t *ret_pid)
{
	struct command *command = calloc(1, sizeof(*command));
	int gate[2];

	if (!command)
		return -ENOMEM;
	if (pipe2(gate, O_CLOEXEC)) {
		free(command);
		return -errno;
	}
	command->pid = fork();
	if (command->pid == 0) {
		close(gate[1]);
		run_child(argv, gate[0], setting);
	}
	close(gate[0]);
	command->gate = gate[1];
	if (command->pid < 0) {
		int err = -errno;

		close(gate[1]);
		free(command);
		return err;
	}
	*ret_pid = (uint32_t)command->pid;
	*ret_command = command;
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
