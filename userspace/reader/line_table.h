/* SPDX-License-Identifier: BSD-2-Clause */
/* Time by line of one source file: self, total, and waiting; or hits and time of exact lines. */
#ifndef READER_LINE_TABLE_H
#define READER_LINE_TABLE_H

#include "query/input.h"
#include "render/totals.h"

struct line_row {
	uint32_t line;
	const struct totals_sum *self, *total; /* NULL: never seen on the CPU */
	int64_t wait;			       /* in ns */
	const char *reason;		       /* the reason of most of it; NULL: unknown */
	int64_t reason_wait;
	/* of exact lines */
	int64_t hits, time; /* time in ns */
	uint32_t function;  /* in function[] of struct line_file */
};

struct line_function {
	const char *name;
	uint32_t start_line, last_line; /* last_line: the last one with a sample */
	int64_t time;			/* of exact lines: of all its lines */
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

/* Totals by CODE_BY_SOURCE_LINE of samples on the CPU, and of waits (NULL: not known) grouped by
 * GROUP_BY_WAIT. */
struct line_sources {
	const struct profile *profile;
	const struct totals *ran;
	const struct totals *waited;
};

/* Returns whether a profile's path matches what the user typed: "w.py", "pkg/w.py",
 * "/app/pkg/w.py". */
bool line_path_matches(const char *path, const char *wanted);
/* Fills all fields but path and path_string, which the caller has set.  Returns 0 or -ENOMEM. */
int line_file_fill(struct line_file *file, const struct line_sources *sources);
/* Where the values of exact lines stand in a profile's samples. */
struct line_values {
	unsigned int hits, time;
};
/* Returns false when the profile is not of exact lines. */
bool line_values_find(const struct profile *profile, struct line_values *ret_values);
/* The same as line_file_fill() from a profile of exact lines: rows have `hits` and `time` alone. */
int line_file_fill_exact(struct line_file *file, const struct profile *profile,
			 const struct line_values *values);
void line_file_release(struct line_file *file);
const struct line_row *line_file_find(const struct line_file *file, uint32_t line);

#endif
