/* SPDX-License-Identifier: BSD-2-Clause */
/* A source file as it is now, and whether it is still the one that ran. */
#ifndef READER_SOURCE_H
#define READER_SOURCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SOURCE_MAX_BYTES (32U << 20)

/* Release with source_release(), also when empty. */
struct source {
	char *text;  /* NUL-terminated, without control codes but tabs */
	char **line; /* line i + 1; in text */
	uint32_t count;
	const char *error;  /* why there is none; NULL: there is */
	int64_t modified_s; /* since 1970 */
};

/* Never fails but for memory: 0 or -ENOMEM. */
int source_read(const char *path, struct source *ret_source);
void source_release(struct source *source);
/* NULL: there is no such line. */
const char *source_line(const struct source *source, uint32_t line);
/* Is `name` (of a function, qualified) defined at that line, or decorated there? */
bool source_defines(const struct source *source, uint32_t line, const char *name);
/* The last line of the block that is defined at that line: what is indented deeper. */
uint32_t source_block_end(const struct source *source, uint32_t line);

#endif
