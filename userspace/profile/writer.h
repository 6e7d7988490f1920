/* SPDX-License-Identifier: BSD-2-Clause */
/* The comment in which a profile names the program that wrote it:
 * "pyprofd 0.1.0 cpu 99Hz host=box".  It is written and read here only. */
#ifndef PROFILE_WRITER_H
#define PROFILE_WRITER_H

#include <stdbool.h>
#include <stddef.h>

#define WRITER_TEXT_BYTES 192U

struct profile_writer {
	char version[32];
	char kind[33];
	unsigned int hz;
	char host[64];
};

void profile_writer_format(const struct profile_writer *writer, char text[WRITER_TEXT_BYTES]);
/* Returns false for any other comment.  A later version may write more or less behind its number:
 * what is not there is "" or 0. */
bool profile_writer_parse(const char *comment, struct profile_writer *ret_writer);

#endif
