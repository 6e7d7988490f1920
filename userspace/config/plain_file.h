/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads a whole file that must be a regular one: a FIFO would block, a device might never end. */
#ifndef CONFIG_PLAIN_FILE_H
#define CONFIG_PLAIN_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>

struct plain_file {
	char *text; /* owned by the caller; ends in NUL */
	size_t size;
	mode_t mode;
	uid_t uid; /* whose it is */
};

/* Returns 0; -EINVAL: not a regular file; -EFBIG: longer than max_bytes; -errno. */
int plain_file_read(const char *path, size_t max_bytes, struct plain_file *ret_file);

/* Returns whether what belongs to this user may say what we do: root's, our own user's, and as root
 * that of the user who called us through sudo. */
bool plain_file_is_trusted(uid_t uid);

#endif
