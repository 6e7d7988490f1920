/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/program.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

void program_find(const char *name, char ret_path[PROGRAM_PATH_BYTES])
{
	ssize_t size = readlink("/proc/self/exe", ret_path, PROGRAM_PATH_BYTES - 1);
	size_t folder;
	char *slash;

	ret_path[size > 0 ? size : 0] = '\0';
	slash = strrchr(ret_path, '/');
	folder = slash ? (size_t)(slash + 1 - ret_path) : 0;
	if (slash && folder + strlen(name) < PROGRAM_PATH_BYTES) {
		memcpy(slash + 1, name, strlen(name) + 1);
		if (!access(ret_path, X_OK))
			return;
	}
	snprintf(ret_path, PROGRAM_PATH_BYTES, "%s", name);
}
