/* SPDX-License-Identifier: BSD-2-Clause */
#include "reader/output_file.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/safe_file.h"
#include "reader/complain.h"
#include "reader/verb.h"

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
