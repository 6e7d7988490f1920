/* SPDX-License-Identifier: BSD-2-Clause */
#include "discover/file_open.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "base/safe_file.h"

#define INODE_LOW_BITS 0xffffffffffffULL

int file_key_from_fd(int fd, struct file_key *ret_key)
{
	struct file_key key = {0};
	struct stat status;
	int generation = 0;

	if (fstat(fd, &status) != 0)
		return -errno;
	key.major = major(status.st_dev);
	key.minor = minor(status.st_dev);
	key.inode = status.st_ino;
	/* The kernel stores an int, although the ioctl's name says long. */
	if (ioctl(fd, FS_IOC_GETVERSION, &generation) == 0)
		key.inode_generation = (uint32_t)generation;
	*ret_key = key;
	return 0;
}

bool file_key_is_of_mapping(const struct file_key *file, const struct file_key *mapping)
{
	if (!mapping->inode)
		return true;
	if (file->major == mapping->major && file->minor == mapping->minor)
		return file->inode == mapping->inode &&
		       (!file->inode_generation || !mapping->inode_generation ||
			file->inode_generation == mapping->inode_generation);
	return !((file->inode ^ mapping->inode) & INODE_LOW_BITS);
}

static int open_looked_at(int path_fd, const struct file_key *wanted, int *ret_fd)
{
	OWNED_FD int fd = -1;
	struct file_key key;
	int err = root_file_open_seen(path_fd, &fd);

	if (!err)
		err = file_key_from_fd(fd, &key);
	if (err)
		return err;
	if (!file_key_is_of_mapping(&key, wanted))
		return -ESTALE;
	*ret_fd = TAKE_FD(fd);
	return 0;
}

static int open_map_file(pid_t tid, const struct mapping *mapping, int *ret_fd)
{
	OWNED_FD int path_fd = -1;
	int err = process_open_mapped(tid, mapping->start, mapping->end, &path_fd);

	return err ? err : open_looked_at(path_fd, &mapping->key, ret_fd);
}

static int open_below(const char *root, const struct mapping *mapping, int *ret_fd)
{
	OWNED_FD int path_fd = -1;
	int err = root_file_look(root, mapping->path, ROOT_FILE_LINKS, &path_fd);

	return err ? err : open_looked_at(path_fd, &mapping->key, ret_fd);
}

int file_open(uint32_t tgid, const struct mapping *mapping, int *ret_fd)
{
	char root[32];
	int err, map_files_err;
	pid_t tid = (pid_t)tgid;

	if (mapping->path[0] != '/')
		return -ENOENT;
	map_files_err = open_map_file(tid, mapping, ret_fd);
	if ((map_files_err == -ENOENT || map_files_err == -ESRCH) &&
	    !process_live_task((pid_t)tgid, &tid) && tid != (pid_t)tgid)
		map_files_err = open_map_file(tid, mapping, ret_fd);
	/* When it is not a regular file, the name leads to nothing better. */
	if (!map_files_err || map_files_err == -EINVAL)
		return map_files_err;
	snprintf(root, sizeof(root), "/proc/%d/root", tid);
	err = open_below(root, mapping, ret_fd);
	/* In our own root the same name does not prove that it is the same file. */
	if (err == -ENOENT && mapping->key.inode)
		err = open_below("/proc/self/root", mapping, ret_fd);
	if (err == -ENOENT && map_files_err == -ESTALE)
		return -ESTALE;
	if (err != -ENOENT)
		return err;
	snprintf(root, sizeof(root), "/proc/%u", tgid);
	return access(root, F_OK) == 0 ? -ENOENT : -ESRCH;
}
