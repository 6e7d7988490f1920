/* SPDX-License-Identifier: BSD-2-Clause */
#include "store/lock_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/io.h"

#define OPEN_TRIES 16U
#define MAX_PID_BYTES 32U
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
			return errno == EWOULDBLOCK ? -EBUSY : -errno;
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
