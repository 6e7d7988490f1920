/* SPDX-License-Identifier: BSD-2-Clause */
#include "store/file_output.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "base/safe_file.h"

/* ---- a lock file ---- */

#define OPEN_TRIES 16U
#define MAX_PID_BYTES 32U
#define STATUS_MAX_BYTES 16384U
#define LOCK_MODE 0640

/* Tries without O_CREAT first: with fs.protected_regular even root may not open another user's file
 * in /tmp with O_CREAT. */
static int open_or_create(int dir_fd, const char *name)
{
	int flags = O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK;
	int fd = openat(dir_fd, name, flags);

	if (fd >= 0 || errno != ENOENT)
		return fd < 0 ? -errno : fd;
	fd = openat(dir_fd, name, flags | O_CREAT | O_EXCL, LOCK_MODE);
	if (fd < 0)
		return -errno;
	/* The umask may have removed bits; the lock works without them. */
	(void)!fchmod(fd, LOCK_MODE);
	return fd;
}

/* Returns whether the name still means the locked file, after the lock was taken. */
static int is_current(int dir_fd, const char *name, int fd)
{
	struct stat locked, named;

	return !fstat(fd, &locked) && !fstatat(dir_fd, name, &named, AT_SYMLINK_NOFOLLOW) &&
	       locked.st_ino == named.st_ino && locked.st_dev == named.st_dev;
}

static void write_pid(int fd)
{
	char text[MAX_PID_BYTES];
	int size = snprintf(text, sizeof(text), "%d\n", getpid());

	/* The pid is only for messages: a full disk must not keep anyone from running. */
	if (!ftruncate(fd, 0))
		(void)!pwrite(fd, text, (size_t)size, 0);
}

/* Reads a line of hexadecimal signals in a /proc/PID/status. */
static bool has_kill(const char *status, const char *name)
{
	const char *line = strstr(status, name);

	return line && strtoull(line + strlen(name), NULL, 16) >> (SIGKILL - 1) & 1;
}

/* Returns whether who holds the lock was killed: a thread of it waits for what cannot be
 * interrupted, or only its main thread has ended. */
static bool is_of_killed(int fd)
{
	OWNED_MEM char *status = NULL;
	char text[MAX_PID_BYTES] = "", path[32];
	size_t size;

	if (pread_up_to(fd, text, sizeof(text) - 1, &size))
		return false;
	snprintf(path, sizeof(path), "/proc/%ld/status", strtol(text, NULL, 10));
	if (read_file(path, STATUS_MAX_BYTES, &status, NULL))
		return false;
	return strstr(status, "\nState:\tZ") || has_kill(status, "\nSigPnd:") ||
	       has_kill(status, "\nShdPnd:");
}

int lock_file_take(int dir_fd, const char *name, int *ret_fd)
{
	int opened = -EBUSY;

	for (unsigned int i = 0; i < OPEN_TRIES; i++) {
		OWNED_FD int fd = -1;
		struct stat stat;

		opened = open_or_create(dir_fd, name);
		if (opened == -EEXIST || opened == -ENOENT)
			continue; /* created or removed between the two attempts to open it */
		if (opened < 0)
			return opened;
		fd = opened;
		if (fstat(fd, &stat) || !S_ISREG(stat.st_mode))
			return -EINVAL;
		if (flock(fd, LOCK_EX | LOCK_NB))
			return errno != EWOULDBLOCK ? -errno
			       : is_of_killed(fd)   ? -EOWNERDEAD
						    : -EBUSY;
		if (!is_current(dir_fd, name, fd))
			continue;
		write_pid(fd);
		*ret_fd = TAKE_FD(fd);
		return 0;
	}
	return opened < 0 ? opened : -EBUSY;
}

void lock_file_remove(int dir_fd, const char *name, int fd)
{
	if (fd < 0)
		return;
	/* Remove it while it is locked: whoever locks the removed file then finds that its name is
	 * gone. */
	unlinkat(dir_fd, name, 0);
	close(fd);
}

#define FILE_MODE 0640
#define TEMPORARY_TRIES 100U
#define TEMPORARY_CHARS 48U
#define LOCK_SUFFIX ".lock"

/* The name cannot be guessed: in a shared directory anybody could have taken it before. */
static int create_temporary(int directory_fd, char name[TEMPORARY_CHARS], int *ret_fd)
{
	for (unsigned int i = 0; i < TEMPORARY_TRIES; i++) {
		uint64_t number;
		int fd;

		if (getrandom(&number, sizeof(number), 0) != sizeof(number))
			return -errno;
		snprintf(name, TEMPORARY_CHARS, ".pyprofd-%016" PRIx64 ".tmp", number);
		fd = openat(directory_fd, name,
			    O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, FILE_MODE);
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
	if (fchown(fd, uid, gid) && errno != EPERM)
		return -errno;
	return fsync(fd) ? -errno : 0;
}

/* Replaces a link or FIFO at PATH instead of writing into it: in a shared directory it may be
 * anyone's. */
static int replace_file(int directory_fd, const char *name, const void *bytes, size_t size,
			uid_t uid, gid_t gid)
{
	char temporary[TEMPORARY_CHARS];
	OWNED_FD int fd = -1;
	int err = create_temporary(directory_fd, temporary, &fd);

	if (err)
		return err;
	err = fill_temporary(fd, bytes, size, uid, gid);
	if (!err && renameat(directory_fd, temporary, directory_fd, name))
		err = -errno;
	if (err) {
		unlinkat(directory_fd, temporary, 0);
		return err;
	}
	/* The file is complete and has its name.  Some file systems cannot sync a directory;
	 * whether the name survives a power cut there is not worth failing for. */
	(void)!fsync(directory_fd);
	return 0;
}

/* A rename would replace /dev/null by a file. */
static int refuse_device(const char *path)
{
	struct stat stat;

	return !lstat(path, &stat) && (S_ISCHR(stat.st_mode) || S_ISBLK(stat.st_mode)) ? -EINVAL
										       : 0;
}

int file_output_write(const char *path, const void *bytes, size_t size, uid_t uid, gid_t gid)
{
	OWNED_FD int directory_fd = -1;
	const char *name;
	int err;

	if (named_descriptor(path) >= 0)
		return write_full(named_descriptor(path), bytes, size);
	err = refuse_device(path);
	if (!err)
		err = open_directory_of(path, 0, &name, &directory_fd);
	return err ? err : replace_file(directory_fd, name, bytes, size, uid, gid);
}

static int lock_name_of(const char *path, int *ret_directory_fd, char **ret_lock_name)
{
	OWNED_FD int directory_fd = -1;
	const char *name;
	char *lock_name;
	int err = open_directory_of(path, 0, &name, &directory_fd);

	if (err)
		return err;
	if (asprintf(&lock_name, "%s" LOCK_SUFFIX, name) < 0)
		return -ENOMEM;
	*ret_directory_fd = TAKE_FD(directory_fd);
	*ret_lock_name = lock_name;
	return 0;
}

int file_output_lock(const char *path, int *ret_fd)
{
	OWNED_FD int directory_fd = -1;
	OWNED_MEM char *lock_name = NULL;
	struct stat stat_at_path;
	int err;

	if (named_descriptor(path) >= 0) {
		if (fcntl(named_descriptor(path), F_GETFD) < 0)
			return -errno;
		*ret_fd = -1;
		return 0;
	}
	err = lock_name_of(path, &directory_fd, &lock_name);
	if (err)
		return err;
	if (!lstat(path, &stat_at_path) && !S_ISREG(stat_at_path.st_mode) &&
	    !S_ISLNK(stat_at_path.st_mode))
		return S_ISDIR(stat_at_path.st_mode) ? -EISDIR : -EINVAL;
	if (faccessat(directory_fd, ".", W_OK | X_OK, AT_EACCESS))
		return -errno;
	return lock_file_take(directory_fd, lock_name, ret_fd);
}

void file_output_unlock(const char *path, int fd)
{
	OWNED_FD int directory_fd = -1;
	OWNED_MEM char *lock_name = NULL;

	if (fd < 0)
		return;
	if (lock_name_of(path, &directory_fd, &lock_name))
		close(fd);
	else
		lock_file_remove(directory_fd, lock_name, fd);
}
