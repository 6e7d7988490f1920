/* SPDX-License-Identifier: BSD-2-Clause */
/* Opens a source file to show its lines.  A profile names files, and whoever ran the program chose
 * these names: with root's rights, a view would print any file of the machine to whom the view is
 * shown. */
#ifndef READER_SOURCE_OPEN_H
#define READER_SOURCE_OPEN_H

#include <sys/stat.h>

enum source_named {
	/* A regular file on a disk, whose name, and the name of the file that a link leads to, ends
	 * as source files do; under sudo, with the rights of the user who called it. */
	SOURCE_NAMED_BY_PROFILE,
	SOURCE_NAMED_BY_USER, /* any regular file, with our own rights */
};

/* Returns 0; 1: the file is not for us to show, and *ret_why tells why, as "is not here" (a
 * literal); -ENOMEM.  *ret_fd belongs to the caller. */
int source_open(const char *path, enum source_named named, int *ret_fd, struct stat *ret_status,
		const char **ret_why);

#endif
