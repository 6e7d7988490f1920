/* SPDX-License-Identifier: BSD-2-Clause */
#include "reader/verb.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/safe_file.h"
#include "base/utf8.h"

#define MESSAGE_BYTES 8192U /* a path of 4 KiB and a sentence; longer ones are cut */

int complain(const char *format, ...)
{
	char text[MESSAGE_BYTES] = "", clean[MESSAGE_BYTES * UTF8_CLEAN_MAX_GROWTH];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	fprintf(stderr, "pyprof: %.*s\n", (int)utf8_clean(text, strlen(text), clean), clean);
	return READER_BAD_INPUT;
}

int complain_of(const char *name, int err)
{
	if (err == -ENOMEM)
		return complain("%s: needs more memory than pyprof takes, %llu MiB, or than there "
				"is: choose less with --since, --pid or --focus",
				name, MEMORY_MAX_BYTES >> 20);
	return complain("%s: %s", name, strerror(-err));
}

void memory_limit(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_DATA, &limit) || limit.rlim_cur <= MEMORY_MAX_BYTES)
		return;
	/* The hard limit stays, for a pyprofd that is started for --live. */
	limit.rlim_cur = MEMORY_MAX_BYTES;
	(void)setrlimit(RLIMIT_DATA, &limit);
}

/* ---- the file that -o names ---- */

#define FILE_MODE 0666 /* less the umask, as with > FILE */

static const char *shown(const char *path)
{
	return strcmp(path, "-") ? path : "standard output";
}

static int refuse(const char *path, int err)
{
	if (err == -EINVAL)
		return complain("%s: is a FIFO or a socket: give the name of a file, or write to "
				"standard output",
				path);
	if (err == -EEXIST)
		return complain("%s: belongs to another user and is left alone: give another name",
				path);
	return complain("%s: %s", shown(path), strerror(-err));
}

/* A descriptor that was open before goes on where it is, as with >> FILE. */
static int empty(const char *path, int fd)
{
	struct stat stat;

	if (named_descriptor(path) >= 0 || fstat(fd, &stat) || !S_ISREG(stat.st_mode))
		return 0;
	return ftruncate(fd, 0) ? -errno : 0;
}

int output_file_open(const char *path, FILE **ret_file)
{
	OWNED_FD int fd = -1;
	int err = safe_file_open(path, SAFE_FILE_OUTPUT, FILE_MODE, &fd);
	FILE *file;

	if (!err)
		err = empty(path, fd);
	if (err)
		return refuse(path, err);
	file = fdopen(fd, "w");
	if (!file)
		return refuse(path, -errno);
	(void)TAKE_FD(fd);
	*ret_file = file;
	return 0;
}

int output_file_close(const char *path, FILE *file, int err)
{
	if (fclose(file) && !err)
		err = -errno;
	return err ? complain_of(shown(path), err) : READER_OK;
}
