/* SPDX-License-Identifier: BSD-2-Clause */
#include "serve/socket_keeper.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/capabilities.h"
#include "base/cleanup.h"

/* The server's end is the end of the pipe. */
_Noreturn static void keep(int pipe_fd, struct live_listener *listener)
{
	char byte;

	/* A terminal's Ctrl-C and a service's stop reach the whole group. */
	signal(SIGINT, SIG_IGN);
	signal(SIGTERM, SIG_IGN);
	signal(SIGHUP, SIG_IGN);
	/* It has the server's memory, with its secrets. */
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_DUMPABLE, 0) ||
	    capabilities_keep(0, 0))
		_exit(1);
	if (dup2(pipe_fd, STDIN_FILENO) < 0 || syscall(SYS_close_range, STDIN_FILENO + 1, ~0U, 0))
		_exit(1);
	listener->fd = -1;
	while (read(STDIN_FILENO, &byte, 1) < 0 && errno == EINTR)
		;
	live_listener_close(listener);
	_exit(0);
}

int socket_keeper_start(const struct live_listener *listener, struct socket_keeper *ret_keeper)
{
	struct live_listener kept = *listener;
	OWNED_FD int reader = -1, writer = -1;
	int ends[2];
	pid_t pid;

	if (pipe2(ends, O_CLOEXEC))
		return -errno;
	reader = ends[0];
	writer = ends[1];
	pid = fork();
	if (pid < 0)
		return -errno;
	if (!pid)
		keep(reader, &kept);
	*ret_keeper = (struct socket_keeper){.fd = TAKE_FD(writer), .pid = pid};
	return 0;
}

void socket_keeper_end(struct socket_keeper *keeper)
{
	if (keeper->fd < 0)
		return;
	close_owned_fd(&keeper->fd);
	while (waitpid(keeper->pid, NULL, 0) < 0 && errno == EINTR)
		;
	*keeper = (struct socket_keeper)SOCKET_KEEPER_NONE;
}
