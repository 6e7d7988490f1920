/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads a whole file that must be a regular one: a FIFO would block, a device might never end. */
#ifndef CONFIG_PLAIN_FILE_H
#define CONFIG_PLAIN_FILE_H

#include <stddef.h>
#include <sys/stat.h>

struct plain_file {
	char *text; /* owned by the caller; ends in NUL */
	size_t size;
	mode_t mode;
};

/* Returns 0; -EINVAL: not a regular file; -EFBIG: longer than max_bytes; -errno. */
int plain_file_read(const char *path, size_t max_bytes, struct plain_file *ret_file);

#endif
