/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/running.h"

#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/io.h"

#define STAT_MAX_BYTES 4096U

bool task_is_running(pid_t tid)
{
	OWNED_MEM char *text = NULL;
	const char *end;
	char path[32];

	snprintf(path, sizeof(path), "/proc/%d/stat", tid);
	if (read_file(path, STAT_MAX_BYTES, &text, NULL))
		return false;
	end = strrchr(text, ')');
	return end && !strncmp(end, ") R", 3);
}
