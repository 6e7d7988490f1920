/* SPDX-License-Identifier: BSD-2-Clause */
#include "serve/listen.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "child/sandbox.h"
#include "child/spawn.h"
#include "live/listener.h"

/* ---- the keeper of the socket ---- */

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

#define BACKLOG 1024
#define UNIX_MODE 0666

static int listen_unix(const char *path, int *ret_fd, struct socket_keeper *ret_keeper)
{
	struct live_listener listener = {.fd = -1};
	int err = live_listener_open(path, UNIX_MODE, &listener);

	if (!err)
		err = socket_keeper_start(&listener, ret_keeper);
	if (err) {
		live_listener_close(&listener);
		return err;
	}
	*ret_fd = listener.fd;
	return 0;
}

static int make_address(const struct config_address *address, struct sockaddr_storage *ret_room,
			socklen_t *ret_size)
{
	struct sockaddr_in four = {.sin_family = AF_INET, .sin_port = htons(address->port)};
	struct sockaddr_in6 six = {.sin6_family = AF_INET6, .sin6_port = htons(address->port)};

	if (inet_pton(AF_INET, address->host, &four.sin_addr) == 1) {
		memcpy(ret_room, &four, sizeof(four));
		*ret_size = sizeof(four);
		return 0;
	}
	if (inet_pton(AF_INET6, address->host, &six.sin6_addr) != 1)
		return -EINVAL;
	memcpy(ret_room, &six, sizeof(six));
	*ret_size = sizeof(six);
	return 0;
}

int listen_at(const struct config_address *address, int *ret_fd, struct socket_keeper *ret_keeper)
{
	const int yes = 1;
	struct sockaddr_storage room = {0};
	socklen_t size;
	int err;

	if (address->is_unix)
		return listen_unix(address->host, ret_fd, ret_keeper);
	err = make_address(address, &room, &size);
	if (err)
		return err;
	OWNED_FD int fd =
		socket(room.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, IPPROTO_TCP);

	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes)) ||
	    bind(fd, (const struct sockaddr *)&room, size) || listen(fd, BACKLOG))
		return -errno;
	*ret_fd = TAKE_FD(fd);
	return 0;
}
