/* SPDX-License-Identifier: BSD-2-Clause */
#include "elf/debug_paths.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/root_file.h"

#define DEBUG_ROOT "/usr/lib/debug"

void debug_files_release(struct debug_files *files)
{
	for (size_t i = 0; i < DEBUG_FILES_MAX; i++)
		close_owned_fd(&files->fd[i]);
}

/* Returns whether a debug file may be used.  Its path came from the file or from the process that
 * maps it, so it may name anything: we accept a file that belongs to root and that all may read,
 * because its names are no secret, or one that belongs to the image's owner. */
static bool may_name(uint32_t owner, int fd)
{
	struct stat status;

	if (fstat(fd, &status) || status.st_mode & S_IWOTH)
		return false;
	return status.st_uid == owner || (!status.st_uid && status.st_mode & S_IROTH);
}

static void try_path(const char *root, const char *path, uint32_t owner, int *ret_fd)
{
	OWNED_FD int fd = -1;

	if (!root_file_open(root, path, &fd) && may_name(owner, fd))
		*ret_fd = TAKE_FD(fd);
}

static void try_build_id(const struct debug_names *names, const char *root, uint32_t owner,
			 int *ret_fd)
{
	char path[sizeof(DEBUG_ROOT) + 256];
	int used;

	if (names->build_id_bytes < 2)
		return;
	used = snprintf(path, sizeof(path), DEBUG_ROOT "/.build-id/%02x/", names->build_id[0]);
	for (size_t i = 1; i < names->build_id_bytes; i++)
		used += snprintf(path + used, sizeof(path) - (size_t)used, "%02x",
				 names->build_id[i]);
	snprintf(path + used, sizeof(path) - (size_t)used, ".debug");
	try_path(root, path, owner, ret_fd);
}

void debug_files_open(const struct debug_names *names, const char *root, const char *path,
		      uint32_t owner, struct debug_files *ret_files)
{
	static const char *const shapes[] = {"%.*s/%s", "%.*s/.debug/%s", DEBUG_ROOT "%.*s/%s"};
	const char *slash = strrchr(path, '/');
	char candidate[PATH_MAX];

	*ret_files = DEBUG_FILES_NONE;
	try_build_id(names, root, owner, &ret_files->fd[0]);
	if (!slash || path[0] != '/' || !names->link[0])
		return;
	for (size_t i = 0; i < ARRAY_SIZE(shapes); i++) {
		int size;

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
		size = snprintf(candidate, sizeof(candidate), shapes[i], (int)(slash - path), path,
				names->link);
#pragma GCC diagnostic pop
		if (size > 0 && (size_t)size < sizeof(candidate))
			try_path(root, candidate, owner, &ret_files->fd[1 + i]);
	}
}
