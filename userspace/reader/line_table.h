/* SPDX-License-Identifier: BSD-2-Clause */
/* Time by line of one source file: its own, with what it calls, and waiting. */
#ifndef READER_LINE_TABLE_H
#define READER_LINE_TABLE_H

#include "reader/input.h"
#include "render/totals.h"

struct line_row {
	uint32_t line;
	const struct totals_sum *self, *total; /* NULL: never on the CPU */
	int64_t wait;			       /* in ns */
	const char *reason;		       /* of most of it; NULL: unknown */
	int64_t reason_wait;
};

struct line_function {
	const char *name;
	uint32_t start_line, last_line; /* last_line: the last one with a sample */
	int64_t self;
};

/* Release with line_file_release(). */
struct line_file {
	const char *path;
	uint32_t path_string;
	struct line_row *row; /* sorted by line */
	uint32_t count;
	struct line_function *function; /* sorted by start_line */
	uint32_t function_count;
};

/* The totals by CODE_BY_SOURCE_LINE of what ran, and of what waited (NULL: not known), the latter
 * grouped by GROUP_BY_WAIT. */
struct line_sources {
	const struct profile *profile;
	const struct totals *ran;
	const struct totals *waited;
};

/* Does a path of a profile fit what the user typed: "w.py", "pkg/w.py", "/app/pkg/w.py"? */
bool line_path_matches(const char *path, const char *wanted);
/* Fills everything but path, path_string, which are given.  0 or -ENOMEM. */
int line_file_fill(struct line_file *file, const struct line_sources *sources);
void line_file_release(struct line_file *file);
const struct line_row *line_file_find(const struct line_file *file, uint32_t line);

#endif
