/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/safe_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/sudo_user.h"

int named_descriptor(const char *path)
{
	static const char *const directories[] = {"/dev/fd/", "/proc/self/fd/"};
	char *end;
	long fd;

	if (!strcmp(path, "-") || !strcmp(path, "/dev/stdout"))
		return STDOUT_FILENO;
	if (!strcmp(path, "/dev/stderr"))
		return STDERR_FILENO;
	for (size_t i = 0; i < ARRAY_SIZE(directories); i++) {
		size_t size = strlen(directories[i]);

		if (strncmp(path, directories[i], size) || path[size] < '0' || path[size] > '9')
			continue;
		fd = strtol(path + size, &end, 10);
		return *end || fd > INT32_MAX ? -ENOENT : (int)fd;
	}
	return -ENOENT;
}

/* Reads the status of the directory of a path. */
static int stat_directory(const char *path, struct stat *ret_directory)
{
	const char *slash = strrchr(path, '/');
	OWNED_MEM char *directory = slash ? strndup(path, (size_t)(slash - path) + 1) : strdup(".");

	if (!directory)
		return -ENOMEM;
	return stat(directory, ret_directory) ? -errno : 0;
}

/* As the kernel's fs.protected_regular, whatever that is set to. */
static bool is_foreign(const struct stat *file, const struct stat *directory)
{
	uid_t caller = geteuid();
	gid_t group;

	(void)sudo_user_ids(&caller, &group);
	return directory->st_mode & S_ISVTX && file->st_uid != geteuid() &&
	       file->st_uid != caller && file->st_uid != directory->st_uid;
}

static bool is_accepted(const struct stat *file, enum safe_file_kinds kinds)
{
	return S_ISREG(file->st_mode) ||
	       (kinds == SAFE_FILE_OUTPUT && (S_ISCHR(file->st_mode) || S_ISBLK(file->st_mode)));
}

/* Looks at what is there before it is opened.  *flags loses O_NOFOLLOW for a link that may be
 * followed: what is ours in such a directory nobody else exchanges. */
static int look(const char *path, enum safe_file_kinds kinds, const struct stat *directory,
		int *flags)
{
	struct stat file;

	if (lstat(path, &file))
		return 0; /* open() knows better why */
	if (is_foreign(&file, directory))
		return -EEXIST;
	if (S_ISDIR(file.st_mode))
		return -EISDIR;
	if (!S_ISLNK(file.st_mode))
		return is_accepted(&file, kinds) ? 0 : -EINVAL;
	if (kinds == SAFE_FILE_OUTPUT)
		*flags &= ~O_NOFOLLOW;
	return 0;
}

static int open_checked(const char *path, enum safe_file_kinds kinds, mode_t mode, int *ret_fd)
{
	int flags = O_WRONLY | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;
	struct stat directory, opened;
	OWNED_FD int fd = -1;
	int err = stat_directory(path, &directory);

	if (!err)
		err = look(path, kinds, &directory, &flags);
	if (err)
		return err;
	fd = open(path, flags, mode);
	if (fd < 0)
		return errno == ENXIO ? -EINVAL : -errno; /* ENXIO: a FIFO without a reader */
	if (fstat(fd, &opened))
		return -errno;
	if (!is_accepted(&opened, kinds))
		return -EINVAL;
	if (flags & O_NOFOLLOW && is_foreign(&opened, &directory))
		return -EEXIST;
	/* A terminal would lose bytes without waiting. */
	if (fcntl(fd, F_SETFL, 0))
		return -errno;
	*ret_fd = TAKE_FD(fd);
	return 0;
}

int safe_file_open(const char *path, enum safe_file_kinds kinds, mode_t mode, int *ret_fd)
{
	int fd = kinds == SAFE_FILE_OUTPUT ? named_descriptor(path) : -ENOENT;

	if (fd == -ENOENT)
		return open_checked(path, kinds, mode, ret_fd);
	fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	*ret_fd = fd;
	return 0;
}
