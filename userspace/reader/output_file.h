/* SPDX-License-Identifier: BSD-2-Clause */
/* The file that -o or --pstats names. */
#ifndef READER_OUTPUT_FILE_H
#define READER_OUTPUT_FILE_H

#include <stdio.h>

/* Opens and empties it: a regular file, a device, or a name of an open descriptor (-, /dev/stdout).
 * A FIFO, or what another user has put into a directory like /tmp, is refused.  Returns 0, or
 * READER_BAD_INPUT after one line on stderr. */
int output_file_open(const char *path, FILE **ret_file);
/* Closes it; err: of what was written to it, 0 or -errno.  Returns READER_OK, or READER_BAD_INPUT
 * after one line on stderr. */
int output_file_close(const char *path, FILE *file, int err);

#endif
