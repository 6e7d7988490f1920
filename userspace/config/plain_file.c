/* SPDX-License-Identifier: BSD-2-Clause */
#include "config/plain_file.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "base/sudo_user.h"

int plain_file_read(const char *path, size_t max_bytes, struct plain_file *ret_file)
{
	OWNED_FD int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	OWNED_MEM char *text = NULL;
	struct stat status;
	int err;

	if (fd < 0 || fstat(fd, &status))
		return -errno;
	if (!S_ISREG(status.st_mode))
		return -EINVAL;
	if ((size_t)status.st_size > max_bytes)
		return -EFBIG;
	text = malloc((size_t)status.st_size + 1);
	if (!text)
		return -ENOMEM;
	err = pread_full(fd, text, (size_t)status.st_size, 0);
	if (err)
		return err;
	text[status.st_size] = '\0';
	*ret_file = (struct plain_file){.text = TAKE(text),
					.size = (size_t)status.st_size,
					.mode = status.st_mode,
					.uid = status.st_uid};
	return 0;
}

bool plain_file_is_trusted(uid_t uid)
{
	uid_t caller;
	gid_t group;

	return !uid || uid == geteuid() ||
	       (!geteuid() && !sudo_user_ids(&caller, &group) && uid == caller);
}
