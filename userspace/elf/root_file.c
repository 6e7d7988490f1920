/* SPDX-License-Identifier: BSD-2-Clause */
#include "elf/root_file.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"

#define OPEN_FLAGS (O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)

int root_file_open(const char *root, const char *path, int *ret_fd)
{
	struct open_how how = {.flags = OPEN_FLAGS, .resolve = RESOLVE_IN_ROOT};
	OWNED_FD int root_fd = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
	OWNED_FD int fd = -1;
	struct stat status;

	if (root_fd < 0)
		return -errno;
	fd = (int)syscall(SYS_openat2, root_fd, path, &how, sizeof(how));
	/* An old container runtime's filter answers ENOSYS or EPERM to calls it does not know. */
	if (fd < 0 && (errno == ENOSYS || errno == EPERM) && root[0] == '/' && !root[1])
		fd = open(path, OPEN_FLAGS);
	if (fd < 0)
		return -errno;
	if (fstat(fd, &status))
		return -errno;
	if (!S_ISREG(status.st_mode))
		return -EINVAL;
	*ret_fd = TAKE_FD(fd);
	return 0;
}
