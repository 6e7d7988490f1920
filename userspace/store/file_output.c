/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/io.h"
#include "store/lock_file.h"
#include "store/store.h"

#define FILE_MODE 0640
#define FOLDER_FLAGS (O_RDONLY | O_DIRECTORY | O_CLOEXEC)
#define TEMPORARY_TRIES 100U
#define MAX_TEMPORARY_CHARS 64U
#define LOCK_SUFFIX ".lock"

/* Returns the open descriptor that "/dev/stdout" and similar names mean: opening the name again
 * would lose its offset, and renaming over it would replace the name for everyone.
 * -ENOENT: it is not such a name. */
static int named_descriptor(const char *path)
{
	static const char *const folders[] = {"/dev/fd/", "/proc/self/fd/"};
	char *end;
	long fd;

	if (!strcmp(path, "-") || !strcmp(path, "/dev/stdout"))
		return STDOUT_FILENO;
	if (!strcmp(path, "/dev/stderr"))
		return STDERR_FILENO;
	for (size_t i = 0; i < ARRAY_SIZE(folders); i++) {
		size_t size = strlen(folders[i]);

		if (strncmp(path, folders[i], size) || path[size] < '0' || path[size] > '9')
			continue;
		fd = strtol(path + size, &end, 10);
		return *end || fd > INT32_MAX ? -ENOENT : (int)fd;
	}
	return -ENOENT;
}

/* Returns whether the path itself, not through a link, is a device or FIFO. */
static bool is_special(const char *path)
{
	struct stat stat;

	return !lstat(path, &stat) && !S_ISREG(stat.st_mode) && !S_ISDIR(stat.st_mode) &&
	       !S_ISLNK(stat.st_mode);
}

static int write_special(const char *path, const void *bytes, size_t size)
{
	OWNED_FD int fd = open(path, O_WRONLY | O_CLOEXEC | O_NOCTTY | O_NOFOLLOW);

	return fd < 0 ? -errno : write_full(fd, bytes, size);
}

/* Opens the directory of a file; *ret_name points into path. */
static int open_folder_of(const char *path, const char **ret_name, int *ret_fd)
{
	const char *slash = strrchr(path, '/');
	const char *name = slash ? slash + 1 : path;
	OWNED_MEM char *folder = NULL;
	int fd;

	if (!name[0] || !strcmp(name, ".") || !strcmp(name, ".."))
		return path[0] ? -EISDIR : -ENOENT;
	folder = slash ? strndup(path, (size_t)(name - path)) : strdup(".");
	if (!folder)
		return -ENOMEM;
	fd = open(folder, FOLDER_FLAGS);
	if (fd < 0)
		return -errno;
	*ret_name = name;
	*ret_fd = fd;
	return 0;
}

static int create_temporary(int folder_fd, char name[MAX_TEMPORARY_CHARS], int *ret_fd)
{
	for (unsigned int i = 0; i < TEMPORARY_TRIES; i++) {
		int fd;

		snprintf(name, MAX_TEMPORARY_CHARS, ".pyprofd-%d-%u.tmp", getpid(), i);
		fd = openat(folder_fd, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
			    FILE_MODE);
		if (fd >= 0) {
			*ret_fd = fd;
			return 0;
		}
		if (errno != EEXIST)
			return -errno;
	}
	return -EEXIST;
}

static int fill_temporary(int fd, const void *bytes, size_t size, uid_t uid, gid_t gid)
{
	int err = write_full(fd, bytes, size);

	/* Set the mode while we own the file: afterwards CAP_FOWNER is needed. */
	if (!err && fchmod(fd, FILE_MODE))
		err = -errno;
	if (err)
		return err;
	/* Without CAP_CHOWN the file stays ours, which is better than no file. */
	if ((uid != (uid_t)-1 || gid != (gid_t)-1) && fchown(fd, uid, gid) && errno != EPERM)
		return -errno;
	return fsync(fd) ? -errno : 0;
}

/* Replaces a link at PATH instead of following it: in a shared directory it may be anyone's. */
static int replace_file(int folder_fd, const char *name, const void *bytes, size_t size, uid_t uid,
			gid_t gid)
{
	char temporary[MAX_TEMPORARY_CHARS];
	OWNED_FD int fd = -1;
	int err = create_temporary(folder_fd, temporary, &fd);

	if (err)
		return err;
	err = fill_temporary(fd, bytes, size, uid, gid);
	if (!err && renameat(folder_fd, temporary, folder_fd, name))
		err = -errno;
	if (err) {
		unlinkat(folder_fd, temporary, 0);
		return err;
	}
	/* The file is complete and has its name.  Some file systems cannot sync a directory;
	 * whether the name survives a power cut there is not worth failing for. */
	(void)!fsync(folder_fd);
	return 0;
}

int file_output_write(const char *path, const void *bytes, size_t size, uid_t uid, gid_t gid)
{
	OWNED_FD int folder_fd = -1;
	const char *name;
	int err;

	if (named_descriptor(path) >= 0)
		return write_full(named_descriptor(path), bytes, size);
	if (is_special(path))
		return write_special(path, bytes, size);
	err = open_folder_of(path, &name, &folder_fd);
	return err ? err : replace_file(folder_fd, name, bytes, size, uid, gid);
}

static int lock_name_of(const char *path, int *ret_folder_fd, char **ret_lock_name)
{
	OWNED_FD int folder_fd = -1;
	const char *name;
	char *lock_name;
	int err = open_folder_of(path, &name, &folder_fd);

	if (err)
		return err;
	if (asprintf(&lock_name, "%s" LOCK_SUFFIX, name) < 0)
		return -ENOMEM;
	*ret_folder_fd = TAKE_FD(folder_fd);
	*ret_lock_name = lock_name;
	return 0;
}

int file_output_lock(const char *path, int *ret_fd)
{
	OWNED_FD int folder_fd = -1;
	OWNED_MEM char *lock_name = NULL;
	struct stat stat_at_path;
	int err;

	if (named_descriptor(path) >= 0) {
		if (fcntl(named_descriptor(path), F_GETFD) < 0)
			return -errno;
		*ret_fd = -1;
		return 0;
	}
	if (is_special(path)) {
		if (faccessat(AT_FDCWD, path, W_OK, AT_EACCESS))
			return -errno;
		*ret_fd = -1;
		return 0;
	}
	err = lock_name_of(path, &folder_fd, &lock_name);
	if (err)
		return err;
	if (!lstat(path, &stat_at_path) && S_ISDIR(stat_at_path.st_mode))
		return -EISDIR;
	if (faccessat(folder_fd, ".", W_OK | X_OK, AT_EACCESS))
		return -errno;
	return lock_file_take(folder_fd, lock_name, ret_fd);
}

void file_output_unlock(const char *path, int fd)
{
	OWNED_FD int folder_fd = -1;
	OWNED_MEM char *lock_name = NULL;

	if (fd < 0)
		return;
	if (lock_name_of(path, &folder_fd, &lock_name))
		close(fd);
	else
		lock_file_remove(folder_fd, lock_name, fd);
}

int file_output_lock_owner(const char *path, pid_t *ret_pid)
{
	OWNED_FD int folder_fd = -1;
	OWNED_MEM char *lock_name = NULL;
	int err = lock_name_of(path, &folder_fd, &lock_name);

	return err ? err : lock_file_owner(folder_fd, lock_name, ret_pid);
}
