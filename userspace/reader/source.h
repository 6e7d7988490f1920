/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads a source file as it is now, and checks whether it is still the one that ran. */
#ifndef READER_SOURCE_H
#define READER_SOURCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum source_named {
	/* A regular file on a disk, whose name, and the name of the file that a link leads to, ends
	 * as source files do; under sudo, with the rights of the user who called it. */
	SOURCE_NAMED_BY_PROFILE,
	SOURCE_NAMED_BY_USER, /* any regular file, with our own rights */
};

#define SOURCE_MAX_BYTES (8U << 20) /* generated sources have some MiB */

/* Release with source_release(), even when it is empty. */
struct source {
	char *text;  /* NUL-terminated; utf8_clean() of each line, but tabs stay */
	char **line; /* line i + 1; in text */
	uint32_t count;
	const char *error;  /* why there is no text, as "is not here"; NULL: there is */
	int64_t modified_s; /* since 1970 */
};

/* Reads a file, if it may be shown.  Returns 0, even when that fails (source.error), or -ENOMEM. */
int source_read(const char *path, enum source_named named, struct source *ret_source);
void source_release(struct source *source);
/* Returns NULL when there is no such line. */
const char *source_line(const struct source *source, uint32_t line);
/* Returns whether the function `name` (a qualified name) is defined or decorated at that line. */
bool source_defines(const struct source *source, uint32_t line, const char *name);
/* Returns the last line of the block defined at that line: the lines below with more
 * indentation. */
uint32_t source_block_end(const struct source *source, uint32_t line);

#endif
