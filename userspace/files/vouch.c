/* SPDX-License-Identifier: BSD-2-Clause */
#include "files/vouch.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <linux/magic.h>
#include <linux/nsfs.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"

/* Not in the headers of Debian 11, or in none. */
#define EROFS_MAGIC 0xe0f5e1e2U
#define ZFS_MAGIC 0x2fc12fc1U
#define BCACHEFS_MAGIC 0xca451a4eU
#define JFS_MAGIC 0x3153464aU

#define MOUNTINFO_MAX_BYTES (4U << 20) /* some 30,000 mounts */
#define FDINFO_BYTES 1024U

bool file_system_is_local(uint64_t type)
{
	static const uint32_t local[] = {
		EXT4_SUPER_MAGIC, XFS_SUPER_MAGIC, BTRFS_SUPER_MAGIC, F2FS_SUPER_MAGIC,
		TMPFS_MAGIC,	  RAMFS_MAGIC,	   SQUASHFS_MAGIC,    EROFS_MAGIC,
		ZFS_MAGIC,	  BCACHEFS_MAGIC,  ISOFS_SUPER_MAGIC, JFS_MAGIC,
		HUGETLBFS_MAGIC,
	};

	for (size_t i = 0; i < ARRAY_SIZE(local); i++)
		if (type == local[i])
			return true;
	return false;
}

bool file_system_name_is_local(const char *name)
{
	static const char *const local[] = {"ext2", "ext3",  "ext4",	 "xfs",	     "btrfs",
					    "f2fs", "tmpfs", "ramfs",	 "squashfs", "erofs",
					    "zfs",  "jfs",   "bcachefs", "iso9660",  "overlay"};

	for (size_t i = 0; i < ARRAY_SIZE(local); i++)
		if (!strcmp(name, local[i]))
			return true;
	return false;
}

/* One mount of a text like /proc/PID/mountinfo.  The parts are not terminated. */
struct mount_line {
	uint32_t mount, major, minor;
	const char *type, *options; /* each up to the next blank, or the end of the line */
	const char *end;
};

/* Returns what is behind the next blank before `end`; NULL: nothing, or `at` is NULL. */
static const char *next_word(const char *at, const char *end)
{
	at = at ? memchr(at, ' ', (size_t)(end - at)) : NULL;
	return at ? at + 1 : NULL;
}

/* Takes the next mount of a text.  Returns whether there is one. */
static bool next_mount(const char **text, struct mount_line *ret_line)
{
	/* The first lone hyphen ends the optional fields: type, source and options follow.  Blanks
	 * in paths are escaped. */
	static const char separator[] = " - ";

	while (**text) {
		struct mount_line line = {.end = strchrnul(*text, '\n')};
		const char *begin = *text;

		*text = line.end + (*line.end != '\0');
		line.type =
			memmem(begin, (size_t)(line.end - begin), separator, sizeof(separator) - 1);
		if (line.type)
			line.type += sizeof(separator) - 1;
		line.options = next_word(next_word(line.type, line.end), line.end);
		if (!line.options || sscanf(begin, "%" SCNu32 " %*u %" SCNu32 ":%" SCNu32,
					    &line.mount, &line.major, &line.minor) != 3)
			continue;
		*ret_line = line;
		return true;
	}
	return false;
}

bool mountinfo_type(const char *text, uint32_t major, uint32_t minor, char *type, size_t size)
{
	struct mount_line line;

	while (next_mount(&text, &line)) {
		const size_t bytes = strcspn(line.type, " ");

		if (line.major != major || line.minor != minor || bytes >= size)
			continue;
		memcpy(type, line.type, bytes);
		type[bytes] = '\0';
		return true;
	}
	return false;
}

const char *mountinfo_options(const char *text, uint32_t mount, size_t *ret_bytes)
{
	struct mount_line line;

	while (next_mount(&text, &line)) {
		if (line.mount != mount)
			continue;
		*ret_bytes = (size_t)(line.end - line.options);
		return line.options;
	}
	return NULL;
}

/* ---- overlayfs ---- */

static bool is_octal(const char *digits, size_t bytes)
{
	return bytes >= 3 && digits[0] >= '0' && digits[0] <= '3' && digits[1] >= '0' &&
	       digits[1] <= '7' && digits[2] >= '0' && digits[2] <= '7';
}

/* Decodes \040 and the like, and the backslash before a colon or a comma. */
static void decode(const char *text, size_t bytes, char *path, size_t path_bytes)
{
	size_t used = 0;

	for (size_t i = 0; i < bytes && used < path_bytes; i++) {
		if (text[i] == '\\' && is_octal(text + i + 1, bytes - i - 1)) {
			path[used++] = (char)((text[i + 1] - '0') << 6 | (text[i + 2] - '0') << 3 |
					      (text[i + 3] - '0'));
			i += 3;
		} else if (text[i] == '\\' && i + 1 < bytes) {
			path[used++] = text[++i];
		} else {
			path[used++] = text[i];
		}
	}
	path[used < path_bytes ? used : 0] = '\0';
}

/* Returns how long the layer at the beginning is: to a colon or a comma that is not escaped. */
static size_t layer_bytes(const char *text, size_t bytes)
{
	size_t i = 0;

	for (; i < bytes && text[i] != ':' && text[i] != ','; i++)
		if (text[i] == '\\' && !is_octal(text + i + 1, bytes - i - 1))
			i++;
	return i < bytes ? i : bytes;
}

/* Returns how long the name of an option with layers is, which begins here; 0: it is none. */
static size_t layer_option(const char *text, size_t bytes)
{
	static const char *const names[] = {"lowerdir=", "lowerdir+=", "datadir+=", "upperdir="};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (bytes > strlen(names[i]) && !memcmp(text, names[i], strlen(names[i])))
			return strlen(names[i]);
	return 0;
}

bool mount_options_next_layer(const char *options, size_t bytes, size_t *at, char *path,
			      size_t path_bytes)
{
	while (*at < bytes) {
		const bool is_begin = !*at || options[*at - 1] == ',';
		const size_t name = is_begin ? layer_option(options + *at, bytes - *at) : 0;
		const size_t from = *at + name, size = layer_bytes(options + from, bytes - from);
		const bool is_layer = name || (*at && options[*at - 1] == ':');

		*at = from + size + 1;
		if (!is_layer || !size) /* "::" is before layers that have data alone */
			continue;
		decode(options + from, size, path, path_bytes);
		return true;
	}
	return false;
}

/* Returns whether layers, as the mount names them, are on local file systems.  Of those that are
 * not there under that name here (the names are those of whoever mounted it) nothing is known: root
 * has chosen them. */
static bool are_layers_local(const char *options, size_t bytes)
{
	char path[PATH_MAX];
	size_t at = 0;

	while (mount_options_next_layer(options, bytes, &at, path, sizeof(path))) {
		struct statfs system;

		if (path[0] == '/' && !statfs(path, &system) &&
		    (uint64_t)system.f_type != OVERLAYFS_SUPER_MAGIC &&
		    !file_system_is_local((uint64_t)system.f_type))
			return false;
	}
	return true;
}

/* ---- mounts ---- */

/* Reads the number of the mount that an open file is on. */
static int read_mount(int fd, uint32_t *ret_mount)
{
	OWNED_MEM char *text = NULL;
	char path[40];
	const char *line;
	int err;

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fd);
	err = read_file(path, FDINFO_BYTES, &text, NULL);
	if (err)
		return err;
	line = strstr(text, "mnt_id:");
	return line && sscanf(line, "mnt_id: %" SCNu32, ret_mount) == 1 ? 0 : -EBADMSG;
}

/* Returns whether a task's mount namespace belongs to this program's user namespace. */
static bool is_of_our_users(pid_t tid)
{
	OWNED_FD int mounts = -1, users = -1;
	struct stat owner, ours;
	char path[40];

	snprintf(path, sizeof(path), "/proc/%d/ns/mnt", tid);
	mounts = open(path, O_RDONLY | O_CLOEXEC);
	if (mounts < 0)
		return false;
	users = ioctl(mounts, NS_GET_USERNS);
	return users >= 0 && !fstat(users, &owner) && !stat("/proc/self/ns/user", &ours) &&
	       owner.st_ino == ours.st_ino && owner.st_dev == ours.st_dev;
}

static bool is_vouched_in(pid_t tid, uint32_t mount)
{
	OWNED_MEM char *text = NULL;
	const char *options;
	char path[40];
	size_t bytes;

	snprintf(path, sizeof(path), "/proc/%d/mountinfo", tid);
	if (!is_of_our_users(tid) || read_file(path, MOUNTINFO_MAX_BYTES, &text, NULL))
		return false;
	options = mountinfo_options(text, mount, &bytes);
	return options && are_layers_local(options, bytes);
}

bool file_is_vouched_for(int fd, pid_t tid)
{
	struct statfs system;
	uint32_t mount;

	if (fstatfs(fd, &system))
		return false;
	if ((uint64_t)system.f_type != OVERLAYFS_SUPER_MAGIC)
		return file_system_is_local((uint64_t)system.f_type);
	return !read_mount(fd, &mount) && (is_vouched_in(tid, mount) || is_vouched_in(1, mount));
}
