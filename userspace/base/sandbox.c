/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/landlock.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/capabilities.h"
#include "base/cleanup.h"

#define READ_FILES LANDLOCK_ACCESS_FS_READ_FILE
#define READ_TREE (LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR)
#define WRITE_FILES (LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_WRITE_FILE)
#define WRITE_TREE                                                                                 \
	(WRITE_FILES | LANDLOCK_ACCESS_FS_MAKE_REG | LANDLOCK_ACCESS_FS_REMOVE_FILE)
/* Everything that the first version of Landlock knows. */
#define HANDLED (LANDLOCK_ACCESS_FS_MAKE_SYM * 2 - 1)

/* Allows something below a path; one that is not there needs no right. */
static int allow(int rules, const char *path, uint64_t access)
{
	OWNED_FD int fd = open(path, O_PATH | O_CLOEXEC);
	const struct landlock_path_beneath_attr beneath = {.allowed_access = access,
							   .parent_fd = fd};

	if (fd < 0)
		return 0;
	return syscall(SYS_landlock_add_rule, rules, LANDLOCK_RULE_PATH_BENEATH, &beneath, 0)
		       ? -errno
		       : 0;
}

int sandbox_add(struct sandbox_paths *paths, const char *path, bool may_write)
{
	if (!path)
		return 0;
	if (paths->count == SANDBOX_PATHS_MAX)
		return -E2BIG;
	paths->path[paths->count++] = (struct sandbox_path){path, may_write};
	return 0;
}

int sandbox_add_network(struct sandbox_paths *paths)
{
	static const char *const always[] = {
		"/etc/resolv.conf", "/run/systemd/resolve", "/etc/hosts", "/etc/nsswitch.conf",
		"/etc/host.conf", "/etc/gai.conf", "/etc/services", "/etc/ld.so.cache", "/lib",
		"/lib64", "/usr/lib", "/usr/lib64", "/etc/ssl", "/etc/pki",
		"/usr/share/ca-certificates", "/usr/local/share/ca-certificates", "/dev/urandom"};
	int err = 0;

	for (size_t i = 0; !err && i < ARRAY_SIZE(always); i++)
		err = sandbox_add(paths, always[i], false);
	return err;
}

/* Allows a file or a folder; rights of folders are none of a file's. */
static int allow_path(int rules, const struct sandbox_path *path)
{
	uint64_t access = READ_TREE;
	struct stat status;

	if (stat(path->path, &status))
		return 0;
	if (!S_ISDIR(status.st_mode))
		access = READ_FILES;
	else if (path->may_write)
		access |= WRITE_TREE;
	return allow(rules, path->path, access);
}

/* Returns 0; -ENOSYS, -EOPNOTSUPP: the kernel has no Landlock; -errno. */
static int enter_landlock(const char *store, const struct sandbox_paths *more)
{
	const struct landlock_ruleset_attr handled = {.handled_access_fs = HANDLED};
	const char *temporary = getenv("TMPDIR");
	OWNED_FD int rules =
		(int)syscall(SYS_landlock_create_ruleset, &handled, sizeof(handled), 0);
	int err;

	if (rules < 0)
		return -errno;
	err = store ? allow(rules, store, READ_TREE) : 0;
	if (!err)
		err = allow(rules, "/proc", READ_FILES);
	if (!err)
		err = allow(rules, "/dev/null", WRITE_FILES);
	if (!err)
		err = allow(rules, temporary && temporary[0] ? temporary : "/tmp",
			    WRITE_FILES | LANDLOCK_ACCESS_FS_MAKE_REG |
				    LANDLOCK_ACCESS_FS_REMOVE_DIR);
	for (size_t i = 0; !err && i < more->count; i++)
		err = allow_path(rules, &more->path[i]);
	if (!err && syscall(SYS_landlock_restrict_self, rules, 0))
		err = -errno;
	return err;
}

int sandbox_enter(const char *store, const struct sandbox_paths *more, bool *ret_has_landlock)
{
	int err;

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_DUMPABLE, 0))
		return -errno;
	err = enter_landlock(store, more);
	if (err && err != -ENOSYS && err != -EOPNOTSUPP)
		return err;
	*ret_has_landlock = !err;
	return capabilities_keep(0, 0);
}
