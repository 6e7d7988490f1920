/* SPDX-License-Identifier: BSD-2-Clause */
#include "reader/source_open.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/magic.h>
#include <pwd.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statfs.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/root_file.h"
#include "base/sudo_user.h"

#define PATH_BYTES 4096U /* PATH_MAX; a longer name is no file's */
#define GROUPS_MAX 256	 /* that we had ourselves */

/* ---- which files ---- */

/* Python and what extensions and native code are written in.  A program without an ending
 * (/usr/bin/tool) is read with --source. */
static bool ends_as_source(const char *path)
{
	static const char *const ending[] = {
		"py",  "pyw", "pyx",  "pxd", "pxi",   "pyi", "c",     "h",   "cc",  "cpp",
		"cxx", "c++", "hh",   "hpp", "hxx",   "inc", "inl",   "ipp", "tcc", "cu",
		"cuh", "s",   "S",    "asm", "go",    "rs",  "zig",   "d",   "nim", "f",
		"f90", "for", "java", "kt",  "scala", "js",  "mjs",   "ts",  "lua", "rb",
		"pl",  "pm",  "php",  "jl",  "ml",    "hs",  "swift", "m",
	};
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
	const char *dot = strrchr(name, '.');

	for (size_t i = 0; dot && dot > name && i < sizeof(ending) / sizeof(ending[0]); i++)
		if (!strcmp(dot + 1, ending[i]))
			return true;
	return false;
}

/* Returns whether the file's bytes are made by the kernel when they are read: what is asked there
 * may wait, or change something. */
static bool is_made_by_kernel(int path_fd)
{
	static const unsigned long magic[] = {
		PROC_SUPER_MAGIC, SYSFS_MAGIC,	      DEBUGFS_MAGIC,	   TRACEFS_MAGIC,
		SECURITYFS_MAGIC, CGROUP_SUPER_MAGIC, CGROUP2_SUPER_MAGIC, BPF_FS_MAGIC,
		PSTOREFS_MAGIC,	  EFIVARFS_MAGIC,     DEVPTS_SUPER_MAGIC,
	};
	struct statfs status;

	if (fstatfs(path_fd, &status))
		return true;
	for (size_t i = 0; i < sizeof(magic) / sizeof(magic[0]); i++)
		if ((unsigned long)status.f_type == magic[i])
			return true;
	return false;
}

/* Returns whether the file that was found, behind all links, is named as a source file. */
static bool is_source_itself(int path_fd)
{
	char self[32], path[PATH_BYTES];
	ssize_t size;

	snprintf(self, sizeof(self), "/proc/self/fd/%d", path_fd);
	size = readlink(self, path, sizeof(path) - 1);
	if (size <= 0)
		return false;
	path[size] = '\0';
	return ends_as_source(path);
}

/* ---- whose rights ---- */

/* The rights that we had before those of another user. */
struct rights {
	bool are_lent;
	int group_count;
	gid_t group[GROUPS_MAX];
};

/* Sets the groups that the user has at login; at least `gid`. */
static int set_groups_of(uid_t uid, gid_t gid)
{
	const struct passwd *user = getpwuid(uid);
	OWNED_MEM gid_t *group = NULL;
	size_t count;
	int err = user_groups(user ? user->pw_name : NULL, gid, &group, &count);

	if (err)
		return err;
	return setgroups(count, group) ? -errno : 0;
}

static void return_rights(struct rights *rights)
{
	/* Each fails only when we have less than we should: then files cannot be read. */
	if (rights->are_lent && !seteuid(0) && !setegid(0))
		(void)!setgroups((size_t)rights->group_count, rights->group);
	rights->are_lent = false;
}

/* Takes the rights of the user who called sudo.  Returns 0, also when nobody did, or -errno. */
static int lend_rights(struct rights *ret_rights)
{
	uid_t uid = 0;
	gid_t gid = 0;
	int err = geteuid() ? 0 : sudo_user_ids(&uid, &gid);

	ret_rights->are_lent = false;
	if (err && err != -ENOENT)
		return err; /* who called sudo cannot be told */
	if (!uid)
		return 0;
	ret_rights->group_count = getgroups(GROUPS_MAX, ret_rights->group);
	if (ret_rights->group_count < 0)
		return -errno;
	ret_rights->are_lent = true;
	err = set_groups_of(uid, gid);
	if (!err && (setegid(gid) || seteuid(uid)))
		err = -errno;
	if (err)
		return_rights(ret_rights);
	return err;
}

/* ---- opening ---- */

static int refuse(const char *why, const char **ret_why)
{
	*ret_why = why;
	return 1;
}

static int explain(int err, bool with_lent_rights, const char **ret_why)
{
	switch (err) {
	case -ENOMEM:
		return err;
	case -ENOENT:
	case -ENOTDIR:
		return refuse("is not here", ret_why);
	case -EINVAL:
		return refuse("is not a regular file", ret_why);
	case -EACCES:
		if (with_lent_rights)
			return refuse("may not be read by the user who called sudo", ret_why);
		return refuse("cannot be read", ret_why);
	default:
		return refuse("cannot be read", ret_why);
	}
}

static int open_named_by_user(const char *path, int *ret_fd, const char **ret_why)
{
	/* Does not wait for a FIFO's writer. */
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);

	if (fd < 0)
		return explain(-errno, false, ret_why);
	*ret_fd = fd;
	return 0;
}

static int look(const char *path, int *ret_fd, const char **ret_why)
{
	char whole[2 * PATH_BYTES], here[PATH_BYTES];
	OWNED_FD int path_fd = -1;
	int err;

	if (strlen(path) >= PATH_BYTES)
		return refuse("is not here", ret_why);
	/* root_file_look() looks below the root. */
	if (path[0] != '/' && !getcwd(here, sizeof(here)))
		return explain(-errno, false, ret_why);
	snprintf(whole, sizeof(whole), "%s%s%s", path[0] == '/' ? "" : here,
		 path[0] == '/' ? "" : "/", path);
	err = root_file_look("/", whole, ROOT_FILE_LINKS, &path_fd);
	if (err)
		return err;
	if (is_made_by_kernel(path_fd))
		return refuse("is not on a disk", ret_why);
	if (!is_source_itself(path_fd))
		return refuse("is a link to a file that is no source", ret_why);
	return root_file_open_seen(path_fd, ret_fd);
}

static int open_named_by_profile(const char *path, int *ret_fd, const char **ret_why)
{
	struct rights rights;
	bool are_lent;
	int err;

	if (!ends_as_source(path))
		return refuse("has not the ending of a source file", ret_why);
	err = lend_rights(&rights);
	if (err)
		return refuse("cannot be read", ret_why);
	are_lent = rights.are_lent;
	err = look(path, ret_fd, ret_why);
	return_rights(&rights);
	return err < 0 ? explain(err, are_lent, ret_why) : err;
}

int source_open(const char *path, enum source_named named, int *ret_fd, struct stat *ret_status,
		const char **ret_why)
{
	OWNED_FD int fd = -1;
	int err = named == SOURCE_NAMED_BY_USER ? open_named_by_user(path, &fd, ret_why)
						: open_named_by_profile(path, &fd, ret_why);

	if (err)
		return err;
	if (fstat(fd, ret_status))
		return explain(-errno, false, ret_why);
	if (!S_ISREG(ret_status->st_mode))
		return explain(-EINVAL, false, ret_why);
	*ret_fd = TAKE_FD(fd);
	return 0;
}
