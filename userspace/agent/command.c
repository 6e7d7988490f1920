/* SPDX-License-Identifier: BSD-2-Clause */
#include "agent/command.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/types.h>
#include <sys/wait.h>

#include "base/cleanup.h"
#include "base/safe_file.h"
#include "child/spawn.h"

/* ---- the user ---- */

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
		{"HOME", user->home ?: "/"}, {"USER", user->name}, {"LOGNAME", user->name},
		{"SHELL", user->shell},	     {"MAIL", NULL},	   {"SUDO_UID", NULL},
		{"SUDO_GID", NULL},	     {"SUDO_USER", NULL},  {"SUDO_COMMAND", NULL},
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
