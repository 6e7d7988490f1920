/* SPDX-License-Identifier: BSD-2-Clause */
#include "store/store_child.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "base/cleanup.h"
#include "store/merge_child.h"

#define ARGV0_CHARS 32U

extern char **environ;

/* Duplicates a descriptor above those of the child, so that no dup2() closes the other one. */
static int move_up(int fd)
{
	return fcntl(fd, F_DUPFD_CLOEXEC, MERGE_SOCKET_FD + 1);
}

static int spawn(const char *program, const char *argv0, int socket_fd, int store_fd,
		 pid_t *ret_pid)
{
	char name[ARGV0_CHARS];
	char *const argv[] = {name, NULL};
	posix_spawn_file_actions_t actions;
	int err = posix_spawn_file_actions_init(&actions);

	if (err)
		return -err;
	snprintf(name, sizeof(name), "%s", argv0);
	err = posix_spawn_file_actions_adddup2(&actions, store_fd, MERGE_STORE_FD);
	if (!err)
		err = posix_spawn_file_actions_adddup2(&actions, socket_fd, MERGE_SOCKET_FD);
	if (!err)
		err = posix_spawn(ret_pid, program, &actions, NULL, argv, environ);
	posix_spawn_file_actions_destroy(&actions);
	return -err;
}

int store_child_start(struct store_child *child, const char *argv0)
{
	OWNED_FD int ours = -1, theirs = -1, high_socket_fd = -1, high_store_fd = -1;
	int pair[2], err;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
		return -errno;
	ours = pair[0];
	theirs = pair[1];
	high_socket_fd = move_up(theirs);
	high_store_fd = move_up(child->store_fd);
	if (high_socket_fd < 0 || high_store_fd < 0)
		return -errno;
	err = spawn(child->program, argv0, high_socket_fd, high_store_fd, &child->pid);
	if (err)
		return err;
	child->socket_fd = TAKE_FD(ours);
	return 0;
}

int store_child_init(struct store_child *child, const char *program, const char *store,
		     int store_fd)
{
	*child = (struct store_child){.program = strdup(program),
				      .store = strdup(store),
				      .store_fd = store_fd,
				      .socket_fd = -1};
	return child->program && child->store ? 0 : -ENOMEM;
}

void store_child_release(struct store_child *child)
{
	/* It may wait for a disk that does not answer: nobody waits for it. */
	if (child->pid) {
		kill(child->pid, SIGKILL);
		waitpid(child->pid, NULL, WNOHANG);
	}
	store_child_forget(child);
	free(child->program);
	free(child->store);
}

bool store_child_has_ended(struct store_child *child)
{
	return child->pid && waitpid(child->pid, NULL, WNOHANG);
}

void store_child_forget(struct store_child *child)
{
	close_owned_fd(&child->socket_fd);
	child->socket_fd = -1;
	child->pid = 0;
}
