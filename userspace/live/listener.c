/* SPDX-License-Identifier: BSD-2-Clause */
#include "live/listener.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"

/* How many connections wait to be accepted; further ones wait in connect(). */
#define BACKLOG 64

/* Returns whether a server listens: a socket whose server has died refuses. */
static bool is_served(const struct sockaddr_un *address)
{
	OWNED_FD int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0)
		return true;
	return !connect(fd, (const struct sockaddr *)address, sizeof(*address)) ||
	       errno != ECONNREFUSED;
}

static int clear_path(const struct sockaddr_un *address)
{
	const char *slash = strrchr(address->sun_path, '/');
	struct stat status;

	if (lstat(address->sun_path, &status)) {
		char directory[sizeof(address->sun_path)] = "";

		if (errno != ENOENT)
			return -errno;
		if (slash && slash > address->sun_path) {
			memcpy(directory, address->sun_path, (size_t)(slash - address->sun_path));
			(void)mkdir(directory, 0755); /* bind() reports what is wrong */
		}
		return 0;
	}
	if (!S_ISSOCK(status.st_mode))
		return -EEXIST;
	if (is_served(address))
		return -EADDRINUSE;
	return unlink(address->sun_path) ? -errno : 0;
}

static int bind_path(struct live_listener *listener, mode_t mode)
{
	const struct sockaddr *address = (const struct sockaddr *)&listener->address;
	struct stat status;
	int err = clear_path(&listener->address);

	if (err)
		return err;
	if (bind(listener->fd, address, sizeof(listener->address)))
		return -errno;
	if (stat(listener->address.sun_path, &status))
		return -errno;
	listener->device = status.st_dev;
	listener->inode = status.st_ino;
	/* Nobody can connect before listen(). */
	if (chmod(listener->address.sun_path, mode) || listen(listener->fd, BACKLOG))
		return -errno;
	return 0;
}

int live_listener_open(const char *path, mode_t mode, struct live_listener *ret_listener)
{
	struct live_listener listener = {.address.sun_family = AF_UNIX};
	size_t size = strlen(path);
	int err;

	if (!size || size >= sizeof(listener.address.sun_path))
		return -ENAMETOOLONG;
	memcpy(listener.address.sun_path, path, size);
	listener.fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (listener.fd < 0)
		return -errno;
	err = bind_path(&listener, mode);
	if (err) {
		live_listener_close(&listener);
		return err;
	}
	*ret_listener = listener;
	return 0;
}

void live_listener_close(struct live_listener *listener)
{
	struct stat status;

	if (listener->inode && !stat(listener->address.sun_path, &status) &&
	    status.st_dev == listener->device && status.st_ino == listener->inode)
		unlink(listener->address.sun_path);
	close_owned_fd(&listener->fd);
	*listener = (struct live_listener){.fd = -1};
}
