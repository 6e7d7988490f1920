/* SPDX-License-Identifier: BSD-2-Clause */
/* Tells code from claims: a file of a few KiB may say that its code spans terabytes.  No state. */
#ifndef ATTACH_FILE_TEXT_H
#define ATTACH_FILE_TEXT_H

#include <stddef.h>

#include "attach/file_identity.h"
#include "files/protocol.h"

/* Checks that a file's executable segments have bytes behind what they span; holes do not count.
 * Segments lie far apart only in forged files.  Returns 0; -EFBIG. */
int file_text_check(int fd, const struct file_identity *identity,
		    const struct foreign_segment *segment, size_t count);

#endif
