/* SPDX-License-Identifier: BSD-2-Clause */
#include "probes/command_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int command_file_open(const char *command, char *ret_path, size_t path_size)
{
	const char *const all = getenv("PATH");
	const char *from = all ? all : "/usr/bin:/bin";
	int fd = -1;

	if (strchr(command, '/')) {
		snprintf(ret_path, path_size, "%s", command);
		return open(command, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	}
	while (fd < 0 && *from) {
		const size_t size = strcspn(from, ":");

		snprintf(ret_path, path_size, "%.*s/%s", (int)size, from, command);
		if (!access(ret_path, X_OK))
			fd = open(ret_path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
		from += size + (from[size] == ':');
	}
	return fd;
}
