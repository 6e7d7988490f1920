/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/root_file.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"

int root_file_look(const char *root, const char *path, enum root_file_links links, int *ret_path_fd)
{
	struct open_how how = {
		.flags = O_PATH | O_CLOEXEC,
		.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS |
			   (links == ROOT_FILE_NO_LINKS ? RESOLVE_NO_SYMLINKS : 0),
	};
	OWNED_FD int root_fd = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
	OWNED_FD int path_fd = -1;
	struct stat status;

	if (root_fd < 0)
		return -errno;
	path_fd = (int)syscall(SYS_openat2, root_fd, path, &how, sizeof(how));
	/* An old container runtime's filter answers ENOSYS or EPERM to calls it does not know. */
	if (path_fd < 0 && (errno == ENOSYS || errno == EPERM) && links == ROOT_FILE_LINKS &&
	    root[0] == '/' && !root[1])
		path_fd = open(path, O_PATH | O_CLOEXEC);
	if (path_fd < 0)
		return -errno;
	if (fstat(path_fd, &status))
		return -errno;
	if (!S_ISREG(status.st_mode))
		return -EINVAL;
	*ret_path_fd = TAKE_FD(path_fd);
	return 0;
}

int root_file_open_seen(int path_fd, int *ret_fd)
{
	OWNED_FD int fd = -1;
	struct stat seen, opened;
	char self[32];

	if (fstat(path_fd, &seen))
		return -errno;
	if (!S_ISREG(seen.st_mode))
		return -EINVAL;
	snprintf(self, sizeof(self), "/proc/self/fd/%d", path_fd);
	fd = open(self, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd < 0 || fstat(fd, &opened))
		return -errno;
	if (!S_ISREG(opened.st_mode) || opened.st_dev != seen.st_dev ||
	    opened.st_ino != seen.st_ino)
		return -ESTALE;
	*ret_fd = TAKE_FD(fd);
	return 0;
}

int root_file_open(const char *root, const char *path, int *ret_fd)
{
	OWNED_FD int path_fd = -1;
	int err = root_file_look(root, path, ROOT_FILE_LINKS, &path_fd);

	return err ? err : root_file_open_seen(path_fd, ret_fd);
}
