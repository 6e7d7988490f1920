/* SPDX-License-Identifier: BSD-2-Clause */
/* Opens files for writing at paths where other users may have put something before: a FIFO, whose
 * reader would get all that is written, a link, or a file of theirs. */
#ifndef BASE_SAFE_FILE_H
#define BASE_SAFE_FILE_H

#include <stdbool.h>
#include <sys/types.h>

/* What may be at the path. */
enum safe_file_kinds {
	SAFE_FILE_REGULAR, /* nothing, or a regular file; a link is -ELOOP */
	SAFE_FILE_OUTPUT,  /* also a link to one, a device (/dev/null) or a name of an open
			    * descriptor (/dev/stdout), which may be a pipe */
};
/* Opens a file and creates it when it does not exist; nothing is truncated yet, nothing blocks.
 * Returns 0; -EINVAL: it is a FIFO, a socket, or for SAFE_FILE_REGULAR any other kind; -EEXIST: a
 * file or link of another user, who is not the one behind sudo, in a directory where each deletes
 * only his own (the sticky bit, as in /tmp); -errno. */
int safe_file_open(const char *path, enum safe_file_kinds kinds, mode_t mode, int *ret_fd);

/* Returns the open descriptor that "-", /dev/stdout, /dev/fd/N and similar names mean: opening the
 * name again would lose its offset, and renaming over it would replace the name for everyone.
 * -ENOENT: it is not such a name. */
int named_descriptor(const char *path);

#endif
