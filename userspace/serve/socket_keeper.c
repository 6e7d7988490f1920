/* SPDX-License-Identifier: BSD-2-Clause */
#include "serve/socket_keeper.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "child/sandbox.h"
#include "child/spawn.h"

/* The server's end is the end of the pipe. */
static int keep(void *context)
{
	struct live_listener *listener = context;
	char byte;

	/* It has the server's memory, with its secrets. */
	if (sandbox_begin(CHILD_SOCKET))
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
	int ends[2], err;
	pid_t pid;

	if (pipe2(ends, O_CLOEXEC))
		return -errno;
	reader = ends[0];
	writer = ends[1];
	err = child_spawn(CHILD_SOCKET,
			  &(struct child_start){.fd = &reader, .prepare = keep, .context = &kept},
			  &pid);
	if (!err)
		*ret_keeper = (struct socket_keeper){.fd = TAKE_FD(writer), .pid = pid};
	return err;
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
