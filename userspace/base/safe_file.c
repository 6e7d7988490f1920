/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/safe_file.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/text.h"

#define GROUPS_FIRST 64

/* Parses a decimal id.  The largest 32-bit number means "no id" to chown(2) and setuid(2). */
static int parse_id(const char *text, uint32_t *ret_id)
{
	uint64_t id;

	if (!text || decimal_parse(text, strlen(text), &id) || id >= UINT32_MAX)
		return -EINVAL;
	*ret_id = (uint32_t)id;
	return 0;
}

int sudo_user_ids(uid_t *ret_uid, gid_t *ret_gid)
{
	const char *uid_text = getenv("SUDO_UID"), *gid_text = getenv("SUDO_GID");
	uint32_t uid, gid;

	if (!uid_text && !gid_text)
		return -ENOENT;
	if (parse_id(uid_text, &uid) || parse_id(gid_text, &gid))
		return -EINVAL;
	*ret_uid = uid;
	*ret_gid = gid;
	return 0;
}

int user_groups(const char *name, gid_t gid, gid_t **ret_group, size_t *ret_count)
{
	OWNED_MEM gid_t *group = NULL;
	int count = GROUPS_FIRST, room;

	do {
		gid_t *larger = reallocarray(group, (size_t)count, sizeof(*group));

		if (!larger)
			return -ENOMEM;
		group = larger;
		room = count;
		if (!name) {
			group[0] = gid;
			count = 1;
			break;
		}
	} while (getgrouplist(name, gid, group, &count) < 0 && count > room &&
		 count <= NGROUPS_MAX);
	if (count < 0 || count > room)
		return -E2BIG;
	*ret_count = (size_t)count;
	*ret_group = TAKE(group);
	return 0;
}

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
