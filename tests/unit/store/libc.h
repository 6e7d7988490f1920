/* SPDX-License-Identifier: BSD-2-Clause */
/* Calls of libc that a test can let fail, and whose flags it can look at.  Include it in one file
 * of a program. */
#ifndef TESTS_STORE_LIBC_H
#define TESTS_STORE_LIBC_H

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define SYNCED_MAX 8U

static struct {
	const char *call; /* that fails; NULL: none */
	int err;
	unsigned int skip, times; /* how often it works first; how often it fails then */
} failing;
/* Of all calls since libc_begin(): the flags that each open() had, and those that some had. */
static int common_flags, opened_flags;
static unsigned int opened, lock_calls, bad_closes;
static ino_t synced[SYNCED_MAX]; /* the files that were given to fsync(), in order */
static unsigned int synced_count;
static void (*before_lock)(void);

static void libc_begin(void)
{
	failing.call = NULL;
	common_flags = -1;
	opened_flags = 0;
	opened = lock_calls = bad_closes = synced_count = 0;
	before_lock = NULL;
}

static inline void let_fail(const char *call, int err, unsigned int skip, unsigned int times)
{
	failing.call = call;
	failing.err = err;
	failing.skip = skip;
	failing.times = times;
}

static bool is_failing(const char *call)
{
	if (!failing.call || strcmp(failing.call, call) || !failing.times)
		return false;
	if (failing.skip) {
		failing.skip--;
		return false;
	}
	failing.times--;
	errno = failing.err;
	return true;
}

/* The descriptor that the next open() would return. */
static inline int next_descriptor(void)
{
	int fd = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 0);

	close(fd);
	return fd;
}

static int real_openat(int directory_fd, const char *path, int flags, mode_t mode)
{
	opened++;
	common_flags &= flags;
	opened_flags |= flags;
	return is_failing("open") ? -1 : (int)syscall(SYS_openat, directory_fd, path, flags, mode);
}

int openat(int directory_fd, const char *path, int flags, ...)
{
	mode_t mode = 0;
	va_list more;

	va_start(more, flags);
	if (flags & O_CREAT)
		mode = va_arg(more, mode_t);
	va_end(more);
	return real_openat(directory_fd, path, flags, mode);
}

int open(const char *path, int flags, ...)
{
	mode_t mode = 0;
	va_list more;

	va_start(more, flags);
	if (flags & O_CREAT)
		mode = va_arg(more, mode_t);
	va_end(more);
	return real_openat(AT_FDCWD, path, flags, mode);
}

/* What _FORTIFY_SOURCE makes of them where the flags are no constant. */
int __openat_2(int directory_fd, const char *path, int flags);
int __openat_2(int directory_fd, const char *path, int flags)
{
	return real_openat(directory_fd, path, flags, 0);
}

int __open_2(const char *path, int flags);
int __open_2(const char *path, int flags)
{
	return real_openat(AT_FDCWD, path, flags, 0);
}

int close(int fd)
{
	int err = (int)syscall(SYS_close, fd);

	bad_closes += err != 0;
	return err;
}

int fsync(int fd)
{
	struct stat stat;

	if (synced_count < SYNCED_MAX && !fstat(fd, &stat))
		synced[synced_count++] = stat.st_ino;
	return is_failing("fsync") ? -1 : (int)syscall(SYS_fsync, fd);
}

int fchmod(int fd, mode_t mode)
{
	return is_failing("fchmod") ? -1 : (int)syscall(SYS_fchmod, fd, mode);
}

int fchown(int fd, uid_t uid, gid_t gid)
{
	return is_failing("fchown") ? -1 : (int)syscall(SYS_fchown, fd, uid, gid);
}

int flock(int fd, int operation)
{
	lock_calls++;
	if (before_lock)
		before_lock();
	return is_failing("flock") ? -1 : (int)syscall(SYS_flock, fd, operation);
}

int renameat(int old_fd, const char *old_path, int new_fd, const char *new_path)
{
	return is_failing("renameat")
		       ? -1
		       : (int)syscall(SYS_renameat2, old_fd, old_path, new_fd, new_path, 0);
}

/* Somebody else may have deleted it: then the file is gone, and the call fails. */
int unlinkat(int directory_fd, const char *path, int flags)
{
	int err = (int)syscall(SYS_unlinkat, directory_fd, path, flags);

	return is_failing("unlinkat") ? -1 : err;
}

ssize_t pwrite(int fd, const void *bytes, size_t size, off_t offset)
{
	return is_failing("pwrite") ? -1 : (ssize_t)syscall(SYS_pwrite64, fd, bytes, size, offset);
}

#endif
