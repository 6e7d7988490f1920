/* SPDX-License-Identifier: BSD-2-Clause */
#include "live/access.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/io.h"

#define STATUS_MAX_BYTES 65536U

/* Returns whether all of "Uid:\treal\teffective\tsaved\tfs" are this uid. */
static bool has_uid_alone(const char *status, uid_t uid)
{
	const char *line = strstr(status, "\nUid:\t");
	unsigned int real, effective, saved, fs;

	return line &&
	       sscanf(line, "\nUid:\t%u\t%u\t%u\t%u", &real, &effective, &saved, &fs) == 4 &&
	       real == uid && effective == uid && saved == uid && fs == uid;
}

static bool has_no_capabilities(const char *status)
{
	const char *line = strstr(status, "\nCapPrm:\t");
	uint64_t permitted;

	return line && sscanf(line, "\nCapPrm:\t%" SCNx64, &permitted) == 1 && !permitted;
}

bool live_may_see(uid_t uid, uint32_t tgid)
{
	OWNED_MEM char *status = NULL;
	char path[64];
	struct stat file;
	size_t size;
	pid_t tid;

	if (!uid)
		return true;
	if (process_live_task((pid_t)tgid, &tid))
		return false;
	/* When a process is not dumpable, all files in its directory belong to root
	 * (fs/proc/base.c, task_dump_owner()). */
	snprintf(path, sizeof(path), "/proc/%d/environ", tid);
	if (stat(path, &file) || file.st_uid != uid)
		return false;
	snprintf(path, sizeof(path), "/proc/%d/status", tid);
	return !read_file(path, STATUS_MAX_BYTES, &status, &size) && has_uid_alone(status, uid) &&
	       has_no_capabilities(status);
}
